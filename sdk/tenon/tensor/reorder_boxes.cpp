// Ragged and swizzled layouts. Their offset is not a sum over variables. In a box that crosses no block border and
// keeps the swizzling bits, however, each index adds its own term, so the strides are found by evaluating offsets.
#include <algorithm>
#include <functional>

#include <tenon/tensor/reorder_parts_internal.hpp>

namespace tenon::detail {
namespace {

// Values of a group: the first one, and loops of (count, step).
struct LoopedRange {
  int64_t first = 0;
  std::vector<std::pair<int64_t, int64_t>> loops;
};

// One variable of one side: where its digits begin (its bits, where they are swizzled), and what must be constant in a
// box because it swizzles another digit: floor(z / begin) mod (end / begin).
struct Chain {
  Term term;
  std::vector<int64_t> places;
  std::vector<std::pair<int64_t, int64_t>> fixed;

  // Whether the stride may change between y - 1 and y, which are values of the variable.
  bool is_border(int64_t x) const {
    if (x % term.div != 0) return false;
    const int64_t y = x / term.div % term.size;
    int64_t z = y + term.offset;
    if (term.fold) z %= term.fold;
    const auto ends = [&](int64_t place) { return z % place == 0; };
    return term.div > 1 || y == 0 || (term.fold && z == 0) ||
           std::ranges::any_of(places, [&](int64_t place) { return place > 1 && ends(place); }) ||
           std::ranges::any_of(fixed, [&](const auto& bits) { return ends(bits.first); });
  }
};

std::vector<Chain> chains_of(const Layout& layout, const Side& side) {
  std::vector<Chain> out;
  for (const Term& term : side.terms) {
    Chain chain{.term = term};
    for (const LayoutDigit& digit : layout.digits()) {
      if (digit.variable == term.variable && digit.extent > 1) {
        const int64_t end = digit.xor_variable < 0 ? digit.place + 1 : digit.place * digit.extent;
        for (int64_t place = digit.place; place < end; place *= 2) chain.places.push_back(place);
      }
      if (digit.xor_variable == term.variable) {
        chain.fixed.emplace_back(digit.xor_place, digit.xor_place * digit.extent);
      }
    }
    out.push_back(std::move(chain));
  }
  return out;
}

class GroupCutter {
 public:
  GroupCutter(const Layout& from, const Layout& to, const Group& group)
      : extent_(group.extent), chains_{chains_of(from, group.from), chains_of(to, group.to)} {}

  std::optional<std::vector<LoopedRange>> cut() const {
    if (const auto places = common_places()) return cut_blocks(*places);
    return cut_at_borders();
  }

 private:
  // In x, if they nest.
  std::optional<std::vector<int64_t>> common_places() const {
    std::vector<int64_t> places{1};
    for (const auto& chains : chains_) {
      for (size_t t = 0; t < chains.size(); ++t) {
        const Term& term = chains[t].term;
        if (term.offset || term.fold) return std::nullopt;
        const auto add = [&](int64_t place) { places.push_back(place * term.div); };
        std::ranges::for_each(chains[t].places, add);
        for (const auto& [begin, end] : chains[t].fixed) add(begin), add(end);
        if (t > 0) add(term.size);
      }
    }
    std::ranges::sort(places);
    const auto same = std::ranges::unique(places);
    places.erase(same.begin(), same.end());
    std::erase_if(places, [&](int64_t place) { return place > 1 && place >= extent_; });
    for (size_t i = 0; i + 1 < places.size(); ++i) {
      if (places[i + 1] % places[i] != 0) return std::nullopt;
    }
    return places;
  }

  bool is_fixed(int64_t place) const {
    const auto fixes = [&](const Chain& chain) {
      const int64_t at = place / chain.term.div;
      return place % chain.term.div == 0 &&
             std::ranges::any_of(chain.fixed, [&](const auto& bits) { return bits.first <= at && at < bits.second; });
    };
    return std::ranges::any_of(chains_, [&](const auto& chains) { return std::ranges::any_of(chains, fixes); });
  }

  // Whole blocks of the largest place, then of the next one in the remainder, and so on.
  std::optional<std::vector<LoopedRange>> cut_blocks(const std::vector<int64_t>& places) const {
    std::vector<LoopedRange> out;
    int64_t x = 0;
    for (size_t top = places.size(); top-- > 0;) {
      const int64_t blocks = (extent_ - x) / places[top];
      if (blocks == 0) continue;
      std::vector<LoopedRange> ranges{{x, {}}};
      for (size_t i = top + 1; i-- > 0;) {
        const int64_t count = i == top ? blocks : places[i + 1] / places[i];
        if (!is_fixed(places[i])) {
          for (LoopedRange& range : ranges) range.loops.emplace_back(count, places[i]);
          continue;
        }
        if (static_cast<int64_t>(ranges.size()) > static_cast<int64_t>(kMaxNests) / count) return std::nullopt;
        std::vector<LoopedRange> apart;
        for (const LoopedRange& range : ranges) {
          for (int64_t k = 0; k < count; ++k) apart.push_back({range.first + k * places[i], range.loops});
        }
        ranges = std::move(apart);
      }
      out.insert(out.end(), ranges.begin(), ranges.end());
      x += blocks * places[top];
    }
    return out;
  }

  std::optional<std::vector<LoopedRange>> cut_at_borders() const {
    const auto is_border = [&](int64_t x) {
      const auto bends = [&](const Chain& chain) { return chain.is_border(x); };
      return std::ranges::any_of(chains_, [&](const auto& chains) { return std::ranges::any_of(chains, bends); });
    };
    std::vector<LoopedRange> out;
    for (int64_t x = 0; x < extent_;) {
      int64_t end = x + 1;
      while (end < extent_ && !is_border(end)) ++end;
      out.push_back({x, {{end - x, 1}}});
      if (out.size() > kMaxNests) return std::nullopt;
      x = end;
    }
    return out;
  }

  int64_t extent_;
  std::vector<Chain> chains_[2];
};

// The offsets of both sides for values of the groups.
class Offsets {
 public:
  Offsets(const Layout& from, const Layout& to, const std::vector<Group>& groups)
      : from_(from), to_(to), groups_(groups), index_(from.shape().size()) {}

  std::pair<int64_t, int64_t> at(const std::vector<int64_t>& values) {
    for (size_t g = 0; g < groups_.size(); ++g) {
      int64_t x = values[g];
      for (size_t i = groups_[g].dims.size(); i-- > 0;) {
        const auto d = static_cast<size_t>(groups_[g].dims[i]);
        index_[d] = x % from_.shape()[d];
        x /= from_.shape()[d];
      }
    }
    return {bit_offset(from_, index_), bit_offset(to_, index_)};
  }

 private:
  const Layout &from_, &to_;
  const std::vector<Group>& groups_;
  Dims index_;
};

// The nest over a product of ranges; nothing if the offsets do not agree with its strides.
std::optional<Nest> nest_of(Offsets& offsets, const std::vector<const LoopedRange*>& ranges, int64_t element_bits) {
  std::vector<int64_t> values;
  for (const LoopedRange* range : ranges) values.push_back(range->first);
  const auto [from, to] = offsets.at(values);
  Nest nest{.from_base = from, .to_base = to, .unit = element_bits};
  auto last = std::pair(from, to);
  std::vector<int64_t> ends = values;
  for (size_t g = 0; g < ranges.size(); ++g) {
    for (const auto& [count, step] : ranges[g]->loops) {
      if (count == 1) continue;
      values[g] += step;
      const auto next = offsets.at(values);
      values[g] -= step;
      nest.loops.push_back({count, next.first - from, next.second - to});
      ends[g] += (count - 1) * step;
      last.first += (count - 1) * nest.loops.back().from;
      last.second += (count - 1) * nest.loops.back().to;
    }
  }
  if (offsets.at(ends) != last) return std::nullopt;
  prepare(nest);
  return nest;
}

}  // namespace

std::optional<std::vector<Nest>> box_nests(const Layout& from, const Layout& to, const std::vector<Group>& groups) {
  std::vector<std::vector<LoopedRange>> ranges;
  size_t count = 1;
  for (const Group& group : groups) {
    auto cut = GroupCutter(from, to, group).cut();
    if (!cut) return std::nullopt;
    count *= cut->size();
    if (count > kMaxNests) return std::nullopt;
    ranges.push_back(std::move(*cut));
  }
  std::vector<Nest> out;
  Offsets offsets(from, to, groups);
  std::vector<const LoopedRange*> chosen(ranges.size());
  for (size_t n = 0; n < count; ++n) {
    size_t rest = n;
    for (size_t g = ranges.size(); g-- > 0; rest /= ranges[g].size()) chosen[g] = &ranges[g][rest % ranges[g].size()];
    auto nest = nest_of(offsets, chosen, to.element_bits());
    if (!nest) return std::nullopt;
    out.push_back(std::move(*nest));
  }
  return out;
}

}  // namespace tenon::detail
