// Padding as nests of zeros, so that a destination with little padding is not written twice.
#include <algorithm>
#include <functional>
#include <utility>

#include <tenon/tensor/reorder_parts_internal.hpp>

namespace tenon::detail {
namespace {

constexpr size_t kMaxZeroNests = 1024;
// The cost of a run of zeros, in bytes of one long run.
constexpr int64_t kRunCost = 32;

// Values of a variable: [first, second).
using Range = std::pair<int64_t, int64_t>;
// Loops of one variable over a range of its values, as nests without a unit.
using Pieces = std::vector<Part>;

// Divides the range at the borders of the digits up to number `top`: the rest of a block, whole blocks, the remainder.
void cut_range(const std::vector<BitDigit>& digits, size_t top, Range range, int64_t base, Pieces& out) {
  const auto [begin, end] = range;
  if (begin == end) return;
  const BitDigit& digit = digits[top];
  const int64_t first = ceil_div(begin, digit.place), last = end / digit.place;
  if (first > last) {  // within one block
    const int64_t start = last * digit.place;
    return cut_range(digits, top - 1, {begin - start, end - start}, base + last * digit.bits, out);
  }
  if (const int64_t rest = first * digit.place - begin; rest > 0) {
    cut_range(digits, top - 1, {digit.place - rest, digit.place}, base + (first - 1) * digit.bits, out);
  }
  if (first < last) {
    Part part{0, base + first * digit.bits, {{last - first, digit.bits, digit.bits}}};
    for (size_t i = top; i-- > 0;) part.loops.push_back({digits[i].extent, digits[i].bits, digits[i].bits});
    out.push_back(std::move(part));
  }
  if (const int64_t rest = end - last * digit.place; rest > 0) {
    cut_range(digits, top - 1, {0, rest}, base + last * digit.bits, out);
  }
}

class ZeroNests {
 public:
  ZeroNests(const Layout& to, int done) : to_(to), done_(done) {
    for (int v = 0; v < static_cast<int>(to.variables().size()); ++v) {
      digits_.push_back(digits_of(to.data(), to.bytes_per_bank() * 8, v));
    }
  }

  std::optional<std::vector<Nest>> make() {
    if (!add_gaps()) return std::nullopt;
    // The padding of one variable, with any value of those after it, and only elements of those before it.
    std::vector<int> order;
    for (int v = 0; v < static_cast<int>(digits_.size()); ++v) {
      if (v != done_) order.push_back(v);
    }
    if (done_ >= 0) order.push_back(done_);
    for (size_t i = 0; i < order.size(); ++i) {
      std::vector<Range> used = used_ranges(to_.data(), static_cast<size_t>(order[i]));
      std::ranges::sort(used);
      int64_t begin = 0;
      const auto add_up_to = [&](int64_t end) { return begin == end || add_box(order, i, {begin, end}); };
      for (const Range& range : used) {
        if (!add_up_to(range.first)) return std::nullopt;
        begin = range.second;
      }
      if (order[i] == done_) begin = round_up(begin, digits_at(done_)[0].extent);
      if (!add_up_to(to_.padded_extent(order[i]))) return std::nullopt;
    }
    return cost_ <= to_.bytes() ? std::optional(std::move(nests_)) : std::nullopt;
  }

 private:
  const std::vector<BitDigit>& digits_at(int v) const { return digits_[static_cast<size_t>(v)]; }

  // Adds what is between two values of a digit and is not reached by the digits inside it.
  bool add_gaps() {
    std::vector<NestLoop> loops;
    for (const auto& digits : digits_) {
      for (const BitDigit& digit : digits) {
        if (digit.extent > 1) loops.push_back({digit.extent, digit.bits, digit.bits});
      }
    }
    std::ranges::sort(loops, std::greater(), &NestLoop::to);
    int64_t end = to_.bytes() * 8;
    for (size_t outer = 0; outer <= loops.size(); ++outer) {
      const int64_t begin = outer == loops.size() ? to_.element_bits() : loops[outer].to * loops[outer].count;
      if (begin > end) return false;
      if (begin < end) {
        add({.to_base = begin,
             .unit = end - begin,
             .loops = {loops.begin(), loops.begin() + static_cast<long>(outer)}});
      }
      if (outer < loops.size()) end = loops[outer].to;
    }
    return true;
  }

  // Adds `range` of the variable order[at], times ranges of all others.
  bool add_box(const std::vector<int>& order, size_t at, Range range) {
    std::vector<Pieces> pieces;
    size_t count = 1;
    for (size_t i = 0; i < order.size(); ++i) {
      const int v = order[i];
      std::vector<Range> ranges{{0, to_.padded_extent(v)}};
      if (i < at) ranges = used_ranges(to_.data(), static_cast<size_t>(v));
      if (i == at) ranges = {range};
      pieces.emplace_back();
      for (const Range& some : ranges) cut_range(digits_at(v), digits_at(v).size() - 1, some, 0, pieces.back());
      count *= pieces.back().size();
      if (count > kMaxZeroNests) return false;
    }
    for (size_t n = 0; n < count; ++n) {
      Nest nest{.unit = to_.element_bits()};
      size_t rest = n;
      for (const Pieces& some : pieces) {
        const Part& part = some[rest % some.size()];
        rest /= some.size();
        nest.to_base += part.to;
        nest.loops.insert(nest.loops.end(), part.loops.begin(), part.loops.end());
      }
      add(std::move(nest));
    }
    return nests_.size() <= kMaxZeroNests;
  }

  void add(Nest nest) {
    // As if copied in place, so that loops are merged.
    nest.from_base = nest.to_base;
    prepare(nest);
    nest.kind = Nest::Kind::zeros;
    int64_t runs = kRunCost;
    for (const NestLoop& loop : nest.loops) runs *= loop.count;
    cost_ += runs;
    nests_.push_back(std::move(nest));
  }

  const Layout& to_;
  const int done_;
  std::vector<std::vector<BitDigit>> digits_;
  std::vector<Nest> nests_;
  int64_t cost_ = 0;
};

bool is_whole_bytes(const Layout& layout) {
  return layout.element_bits() % 8 == 0 && layout.word_bits() % 8 == 0 && !layout.lane_msb();
}

}  // namespace

std::optional<std::vector<Nest>> zero_nests(const Layout& to, int done) {
  if (to.fill() != 0 || !is_whole_bytes(to) || !to.has_digits() || to.is_ragged() || to.data().has_xor) {
    return std::nullopt;
  }
  return ZeroNests(to, done).make();
}

}  // namespace tenon::detail
