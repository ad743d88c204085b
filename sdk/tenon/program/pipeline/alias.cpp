// Shared memory: copies that are views, and results in the place of their operands.
#include <algorithm>

#include <tenon/program/pipeline/plan_internal.hpp>

namespace tenon::program {

Expr alias_index(int dim) { return Expr::symbol(str("alias.", dim)); }

bool Alias::same() const {
  if (map.size() != rank) return false;
  for (size_t d = 0; d < map.size(); ++d)
    if (map[d] != alias_index(static_cast<int>(d))) return false;
  return true;
}

int Plan::root_of(int buffer_id) const {
  while (buffer(buffer_id).alias) buffer_id = buffer(buffer_id).alias->of;
  return buffer_id;
}

namespace {

bool mentions(const Expr& e, const std::vector<std::string>& indices) {
  return std::ranges::any_of(indices, [&](const std::string& i) { return depends_on(e, i); });
}

// Whether e = sum of coefficient * index + rest, where coefficients and rest are free of the indices.
bool is_linear(const Expr& e, const std::vector<std::string>& indices) {
  switch (e.kind()) {
    case ExprKind::constant:
    case ExprKind::symbol: return true;
    case ExprKind::sum:
    case ExprKind::unfolded_sum:
      return std::ranges::all_of(e.operands(), [&](const Expr& t) { return is_linear(t, indices); });
    case ExprKind::product: {
      int64_t degree = 0;
      for (size_t i = 0; i < e.operands().size(); ++i) {
        if (!mentions(e.operands()[i], indices)) continue;
        if (!is_linear(e.operands()[i], indices)) return false;
        degree += e.numbers()[i];
      }
      return degree <= 1;
    }
    case ExprKind::select:
      return !mentions(e.operands()[0], indices) && is_linear(e.operands()[1], indices) &&
             is_linear(e.operands()[2], indices);
    default: return !mentions(e, indices);
  }
}

// For index + c: which index of the list; -1 for any other expression.
int shifted_index(const Expr& e, const std::vector<std::string>& indices) {
  int found = -1;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!depends_on(e, indices[i])) continue;
    if (found >= 0 || mentions(e - Expr::symbol(indices[i]), indices)) return -1;
    found = static_cast<int>(i);
  }
  return found;
}

bool is_plain(const BufferSpec& spec) {
  return std::ranges::all_of(spec.dims, [](const BufferSpec::DimSpec& d) { return !d.stride && !d.fold; });
}

bool is_within(const std::vector<Window>& inner, const std::vector<Window>& outer) {
  for (size_t d = 0; d < inner.size(); ++d)
    if (!prove_le(outer[d].first, inner[d].first) || !prove_le(inner[d].last, outer[d].last)) return false;
  return true;
}

class CopyAliaser {
 public:
  explicit CopyAliaser(Plan& plan) : plan_(plan) {}

  void run() {
    for (const int s : plan_.order)
      if (plan_.spec(s).is_copy()) alias(s);
  }

 private:
  void alias(int s) {
    if (destination_in_source(s)) {
      plan_.stage(s).is_view = true;
      return;
    }
    const StageSpec& spec = plan_.spec(s);
    size_t in_place = 0;
    for (size_t part = 0; part < spec.parts.size(); ++part)
      in_place += source_in_destination(s, static_cast<int>(part));
    const bool all = in_place == spec.parts.size();
    plan_.stage(s).is_view = all && !spec.has_padding();
    plan_.stage(s).pads_only = all && spec.has_padding();
  }

  bool destination_in_source(int s) {
    const StageSpec& spec = plan_.spec(s);
    const int destination = spec.writes[0].buffer, source = spec.reads[0].buffer;
    BufferPlan& d = plan_.buffer(destination);
    if (spec.parts.size() != 1 || spec.has_padding() || plan_.is_declared(destination)) return false;
    if (!is_plain(plan_.buffer_spec(destination)) || !same_kind(destination, source)) return false;
    if (std::ranges::any_of(plan_.buffer_spec(source).dims, [](const auto& dim) { return dim.fold.has_value(); }))
      return false;
    const std::vector<std::string>& indices = spec.writes[0].indices;
    Alias alias{source, {}, indices.size()};
    for (const Expr& e : spec.parts[0].map) {
      if (!is_linear(e, indices)) return false;
      alias.map.push_back(e.substitute(renamed(indices)));
    }
    d.alias = std::move(alias);
    return true;
  }

  bool source_in_destination(int s, int part_index) {
    const StageSpec& spec = plan_.spec(s);
    const CopyPart& part = spec.parts[static_cast<size_t>(part_index)];
    const int destination = spec.writes[0].buffer, source = spec.reads[static_cast<size_t>(part_index)].buffer;
    BufferPlan& src = plan_.buffer(source);
    if (plan_.is_declared(source) || src.alias || !is_plain(plan_.buffer_spec(source)) ||
        !same_kind(destination, source))
      return false;
    if (plan_.buffer(destination).role == Role::output && has_fold(destination)) return false;
    std::optional<Alias> alias = inverse(s, part, whole_box(plan_, source));
    if (!alias || !fits(s, part, source, *alias)) return false;
    alias->of = destination;
    // Other readers of the source must not read it after the lifetime of the destination.
    for (const Use& use : src.uses)
      if (use.stage != s && !reads_whole_at_root(use)) return false;
    src.alias = std::move(alias);
    return true;
  }

  bool reads_whole_at_root(const Use& use) const {
    return plan_.stage(use.stage).body().empty() && plan_.is_declared(plan_.spec(use.stage).writes[0].buffer);
  }

  // The index of the destination for each element of the source, if each has one. `whole`: the whole source.
  std::optional<Alias> inverse(int s, const CopyPart& part, const std::vector<Window>& whole) const {
    const StageSpec& spec = plan_.spec(s);
    const std::vector<std::string>& indices = spec.writes[0].indices;
    std::vector<std::optional<Expr>> map(indices.size());
    for (size_t j = 0; j < part.map.size(); ++j) {
      if (whole[j] == Window(part.map[j])) continue;  // a dim with one index
      const int d = shifted_index(part.map[j], indices);
      if (d < 0 || map[static_cast<size_t>(d)]) return {};
      map[static_cast<size_t>(d)] =
          alias_index(static_cast<int>(j)) - (part.map[j] - Expr::symbol(indices[static_cast<size_t>(d)]));
    }
    Alias alias{-1, {}, part.map.size()};
    for (size_t d = 0; d < map.size(); ++d) {
      const bool pinned = part.part && part.part_dim == static_cast<int>(d) && part.part->first == part.part->last;
      if (!map[d] && !pinned) return {};
      alias.map.push_back(map[d] ? *map[d] : part.part->first);
    }
    return alias;
  }

  // Whether all computed elements of the source have a place in the destination.
  bool fits(int s, const CopyPart& part, int source, const Alias& alias) {
    const int destination = plan_.spec(s).writes[0].buffer;
    const std::vector<Window> whole = whole_box(plan_, source);
    SymbolWindows symbols;
    for (size_t d = 0; d < whole.size(); ++d) symbols.emplace_back(alias_index(static_cast<int>(d)).name(), whole[d]);
    std::vector<Window> box;
    for (const Expr& e : alias.map) box.push_back(with_known_bounds(plan_, image(e, symbols)));
    std::vector<Window> around = whole_box(plan_, destination);
    if (!part.part || !plan_.is_declared(destination)) return is_within(box, around);
    // An output that has only some of the parts would have no place for the others: the caller provides all.
    Window& place = around[static_cast<size_t>(part.part_dim)];
    const Expr holds = less_equal(place.first, part.part->first) * less_equal(part.part->last, place.last);
    place = with_known_bounds(plan_, *part.part);
    if (!is_within(box, around)) return false;
    plan_.checks.push_back({holds, str("'", plan_.buffer_spec(destination).name, "' must hold the indices ",
                                       part.part->first.to_string(), " to ", part.part->last.to_string(), " of dim ",
                                       part.part_dim, ", which '", plan_.buffer_spec(source).name, "' is laid into")});
    return true;
  }

  bool has_fold(int buffer) const {
    return std::ranges::any_of(plan_.buffer_spec(buffer).dims, [](const auto& d) { return d.fold.has_value(); });
  }
  bool same_kind(int a, int b) const {
    const BufferSpec &x = plan_.buffer_spec(a), &y = plan_.buffer_spec(b);
    return x.element == y.element && x.space == y.space;
  }
  static Substitution renamed(const std::vector<std::string>& indices) {
    Substitution map;
    for (size_t d = 0; d < indices.size(); ++d) map[indices[d]] = alias_index(static_cast<int>(d));
    return map;
  }

  Plan& plan_;
};

}  // namespace

void alias_copies(Plan& plan) {
  if (plan.options.alias_copies) CopyAliaser(plan).run();
}

// --- in place ---

namespace {

class InPlaceAliaser {
 public:
  explicit InPlaceAliaser(Plan& plan) : plan_(plan) {
    for (size_t i = 0; i < plan.order.size(); ++i) position_[plan.order[i]] = i;
  }

  // Later stages first, so that a chain ends up in its last result.
  void run() {
    for (size_t i = plan_.order.size(); i-- > 0;)
      for (const auto& [read, write] : plan_.spec(plan_.order[i]).in_place) alias(plan_.order[i], read, write);
  }

 private:
  void alias(int s, int read, int write) {
    const StageSpec& spec = plan_.spec(s);
    const int from = spec.reads[static_cast<size_t>(read)].buffer, to = spec.writes[static_cast<size_t>(write)].buffer;
    BufferPlan& source = plan_.buffer(from);
    const BufferSpec &a = plan_.buffer_spec(from), &b = plan_.buffer_spec(to);
    if (plan_.is_declared(from) || source.alias || taken_.contains(to) || a.rank != b.rank) return;
    if (a.element.bits() != b.element.bits() || a.space != b.space || !is_plain(a) || !is_plain(b)) return;
    if (!reads_points(s, read, write) || !is_last_use(s, from) || !same_boxes(s, from, write)) return;
    if (!source.carried_by.empty() || lies_here(from) || keeps_more(source, plan_.buffer(plan_.root_of(to)).storage))
      return;
    if (plan_.buffer(plan_.root_of(to)).storage.ring_dim >= 0 && !takes_rings(plan_, from)) return;
    Alias alias{to, {}, static_cast<size_t>(a.rank)};
    for (int d = 0; d < a.rank; ++d) alias.map.push_back(alias_index(d));
    source.alias = std::move(alias);
    taken_[to] = true;
  }

  // Whether a buffer in the source's memory is computed outside of loops whose iterations each allocate the memory
  // anew, or for which it is a ring buffer.
  bool keeps_more(const BufferPlan& source, const Storage& storage) const {
    if (source.keep_outside >= plan_.stage(source.producer).location.size()) return false;
    return storage.ring_dim >= 0 || storage.linear || static_cast<size_t>(storage.level) > source.keep_outside;
  }

  bool reads_points(int s, int read, int write) const {
    const StageSpec& spec = plan_.spec(s);
    const Windows& windows = spec.reads[static_cast<size_t>(read)].windows;
    const std::vector<std::string>& indices = spec.writes[static_cast<size_t>(write)].indices;
    for (size_t d = 0; d < windows.size(); ++d)
      if (windows[d] != Window(Expr::symbol(indices[d]))) return false;
    return true;
  }

  bool is_last_use(int s, int buffer) const {
    for (const Use& use : plan_.buffer(buffer).uses)
      if (use.stage != s && position_.at(use.stage) > position_.at(s)) return false;
    return std::ranges::count_if(plan_.buffer(buffer).uses, [&](const Use& use) { return use.stage == s; }) == 1;
  }

  // Both are computed at the same place, and the same indices of them.
  bool same_boxes(int s, int from, int write) const {
    const BufferPlan& source = plan_.buffer(from);
    const StagePlan &p = plan_.stage(source.producer), &q = plan_.stage(s);
    const Path body = q.body();
    if (p.location != body && p.location != q.location) return false;
    for (const Use& use : source.uses)
      if (use.stage != s && plan_.stage(use.stage).location != p.location) return false;
    const size_t depth = p.location.size();
    for (const Iteration i : {Iteration::first, Iteration::later})
      if (write_box(plan_, source.producer, source.write, computed_box(plan_, source.producer, depth, i)) !=
          write_box(plan_, s, write, computed_box(plan_, s, depth, i)))
        return false;
    return true;
  }

  // Whether another buffer shares this one's memory in a way that is not element for element.
  bool lies_here(int buffer) const {
    return std::ranges::any_of(
        plan_.buffers, [&](const BufferPlan& b) { return b.alias && b.alias->of == buffer && !b.alias->same(); });
  }

  Plan& plan_;
  std::map<int, size_t> position_;
  std::map<int, bool> taken_;  // results that already share memory
};

}  // namespace

void alias_in_place(Plan& plan) {
  if (plan.options.alias_in_place) InPlaceAliaser(plan).run();
}

}  // namespace tenon::program
