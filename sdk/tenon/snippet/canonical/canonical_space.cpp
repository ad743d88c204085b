#include <tenon/snippet/canonical/canonical_space_internal.hpp>

#include <algorithm>

namespace tenon::snippet {

// ---- Of one operator ----

Result<ValueAxes> Space::add_shape(const Shape& shape) {
  if (!shape.ranked()) return error(Code::unsupported, "a shape of unknown rank");
  ValueAxes axes;
  for (const Dim& dim : shape.dims()) {
    if (!dim.known()) return error(Code::unsupported, "the shape ", shape, ", one extent of which is not known");
    axes.emplace_back();
    if (!dim.expr().is_constant(1)) axes.back().push_back(add_axis(dim.expr()));
  }
  return axes;
}

AxisId Space::add_axis(Expr extent) {
  const auto id = static_cast<AxisId>(axes_.size());
  axes_.push_back({std::move(extent)});
  order_.push_back(id);
  return id;
}

Result<void> Space::set(const Value& value, ValueAxes axes) {
  const auto [place, added] = values_.try_emplace(&value, std::move(axes));
  // `axes` equal those of the value's first occurrence.
  if (added || place->second == axes) return {};
  return error(Code::unsupported, "%", value.name(), " is read along two different axes");
}

// ---- Reading ----

const ValueAxes* Space::find(const Value& value) const {
  const auto found = values_.find(&value);
  return found == values_.end() ? nullptr : &found->second;
}

bool Space::folds() const {
  return std::any_of(order_.begin(), order_.end(), [&](AxisId id) { return axis(id).folded; });
}

// ---- Of several ----

// The correspondence between the axes of another space and those of this one.
struct Space::Matching {
  std::vector<AxisId> here;   // by axis of the other space; -1: none
  std::vector<AxisId> there;  // by axis of this space
  std::string why;
  // An axis that is split on the other side.
  struct Refinement {
    bool of_other = false;
    AxisId axis = -1;
    std::vector<Expr> extents;
  };
  std::optional<Refinement> refinement;

  bool refuse(std::string reason) {
    why = std::move(reason);
    return false;
  }
  bool pair(AxisId mine, AxisId theirs) {
    AxisId& to = here[static_cast<size_t>(theirs)];
    AxisId& from = there[static_cast<size_t>(mine)];
    if ((to != -1 && to != mine) || (from != -1 && from != theirs)) return refuse("one axis would be two");
    to = mine;
    from = theirs;
    return true;
  }
};

namespace {

std::vector<Expr> extents_of(const Space& space, const AxisList& list) {
  std::vector<Expr> extents;
  for (const AxisId id : list) extents.push_back(space.axis(id).extent);
  return extents;
}

}  // namespace

bool Space::match(const Space& other, Matching& matching) const {
  matching.here.assign(other.axes_.size(), -1);
  matching.there.assign(axes_.size(), -1);
  const bool mine_first = values_.size() <= other.values_.size();
  for (const auto& [value, axes] : mine_first ? values_ : other.values_) {
    const ValueAxes* twin = mine_first ? other.find(*value) : find(*value);
    if (!twin) continue;
    const ValueAxes &mine = mine_first ? axes : *twin, &theirs = mine_first ? *twin : axes;
    for (size_t d = 0; d < mine.size(); ++d) {
      if (mine[d].size() != theirs[d].size()) {
        if (mine[d].size() == 1) {
          matching.refinement = {false, mine[d][0], extents_of(other, theirs[d])};
        } else if (theirs[d].size() == 1) {
          matching.refinement = {true, theirs[d][0], extents_of(*this, mine[d])};
        }
        return matching.refuse("a dim is split in two ways");
      }
      for (size_t i = 0; i < mine[d].size(); ++i) {
        if (axis(mine[d][i]).extent != other.axis(theirs[d][i]).extent)
          return matching.refuse("a dim is split in two ways");
        if (!matching.pair(mine[d][i], theirs[d][i])) return false;
      }
    }
  }
  return true;
}

void Space::refine(AxisId id, std::span<const Expr> extents) {
  AxisList parts;
  for (const Expr& extent : extents) {
    parts.push_back(static_cast<AxisId>(axes_.size()));
    axes_.push_back({extent, axis(id).folded});
  }
  const auto replace = [&](std::vector<AxisId>& list) {
    const auto place = std::find(list.begin(), list.end(), id);
    if (place == list.end()) return;
    list.insert(list.erase(place), parts.begin(), parts.end());
  };
  replace(order_);
  for (auto& [value, axes] : values_) {
    for (AxisList& list : axes) replace(list);
  }
}

namespace {

// Whether an axis without a counterpart encloses one that has a counterpart.
bool surrounds(const std::vector<AxisId>& order, const std::vector<AxisId>& twins) {
  bool alone = false;
  for (const AxisId id : order) {
    const bool has_twin = twins[static_cast<size_t>(id)] != -1;
    if (alone && has_twin) return true;
    alone = alone || !has_twin;
  }
  return false;
}

}  // namespace

bool Space::fits(const Space& other, const Matching& matching) const {
  const auto alone = [](const std::vector<AxisId>& order, const std::vector<AxisId>& twins) {
    return std::any_of(order.begin(), order.end(), [&](AxisId id) { return twins[static_cast<size_t>(id)] == -1; });
  };
  const bool more_here = alone(order_, matching.there), more_there = alone(other.order_, matching.here);
  if (more_here && more_there) return false;
  const bool folds_here = folds(), folds_there = other.folds();
  if ((folds_here && more_there) || (folds_there && more_here)) return false;
  if (costly_ && surrounds(other.order_, matching.here)) return false;
  if (other.costly_ && surrounds(order_, matching.there)) return false;
  int last = -1;
  for (const AxisId theirs : other.order_) {
    const AxisId mine = matching.here[static_cast<size_t>(theirs)];
    if (mine == -1) continue;
    const auto place = static_cast<int>(std::find(order_.begin(), order_.end(), mine) - order_.begin());
    if (place < last) return false;
    last = place;
    if (folds_here && folds_there && axis(mine).folded != other.axis(theirs).folded) return false;
  }
  return true;
}

void Space::take(Space&& other, const Matching& matching) {
  std::vector<AxisId> name(other.axes_.size(), -1);
  std::vector<AxisId> order;
  for (const AxisId theirs : other.order_) {
    AxisId mine = matching.here[static_cast<size_t>(theirs)];
    if (mine == -1) {
      mine = static_cast<AxisId>(axes_.size());
      axes_.push_back(other.axis(theirs));
    } else if (other.axis(theirs).folded) {
      fold(mine);
    }
    name[static_cast<size_t>(theirs)] = mine;
    order.push_back(mine);
  }
  if (order.size() > order_.size()) order_ = std::move(order);
  costly_ = costly_ || other.costly_;
  for (auto& [value, axes] : other.values_) {
    for (AxisList& list : axes) {
      for (AxisId& id : list) id = name[static_cast<size_t>(id)];
    }
    values_.try_emplace(value, std::move(axes));
  }
}

bool Space::merge(Space&& other, std::string* why) {
  Matching matching;
  if (!match(other, matching)) {
    if (matching.refinement) {
      Space mine = *this, theirs = other;
      const Matching::Refinement& part = *matching.refinement;
      (part.of_other ? theirs : mine).refine(part.axis, part.extents);
      if (mine.merge(std::move(theirs), why)) {
        *this = std::move(mine);
        return true;
      }
    } else if (why) {
      *why = matching.why;
    }
    return false;
  }
  if (!fits(other, matching)) {
    if (why) *why = "they have no nest of loops together";
    return false;
  }
  if (other.values_.size() > values_.size()) {
    std::swap(*this, other);
    std::swap(matching.here, matching.there);
  }
  take(std::move(other), matching);
  return true;
}

}  // namespace tenon::snippet
