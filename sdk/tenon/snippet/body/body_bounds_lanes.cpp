// Interval arithmetic through elementwise operators.
#include <algorithm>
#include <initializer_list>
#include <numbers>
#include <optional>
#include <string_view>

#include <tenon/snippet/body/body_bounds.hpp>
#include <tenon/snippet/body/body_bounds_internal.hpp>

namespace tenon::snippet {
namespace {

using detail::is_less;
using detail::is_nan;
using detail::is_one;
using detail::real_of;

bool is_one_of(Name op, std::initializer_list<std::string_view> names) {
  return std::any_of(names.begin(), names.end(), [op](std::string_view name) { return op.view() == name; });
}
// Whether the result is one of the operands or an integer, or is rounded by definition.
bool is_selection(Name op) {
  return is_one_of(op, {"Neg", "Abs", "Floor", "Ceil", "RoundEven", "Max", "Min", "ClampLow", "ClampHigh", "Round",
                        "Convert", "Fmod", "Mod"});
}
bool is_rounded_once(Name op) { return is_one_of(op, {"Add", "Sub", "Mul", "Div", "Sqrt"}); }

// ---- An operator on the ends of its operands ----

// The intervals of operands, and results at their corners: all combinations of one end of each.
class Corners {
 public:
  Corners(Name op, const Attributes& attributes, std::vector<ElementType> from, std::vector<Bounds> operands,
          ElementType to)
      : op_(op), attributes_(attributes), from_(std::move(from)), to_(to), operands_(std::move(operands)) {}

  Result<Bounds> run() {
    TENON_OK(visit());
    made_.open.assign(made_.size(), 0);
    for (size_t i = 0; i < made_.size(); ++i) {
      const bool known = !has_open(i) && (nans_[i] == 0 || nans_[i] == corners_);
      made_.open[i] = !known || (is_unsure(i) && !holds_what_is_between(i));
    }
    return std::move(made_);
  }

 private:
  Result<void> visit() {
    for (size_t corner = 0; corner < size_t{1} << operands_.size(); ++corner) {
      if (repeats(corner)) continue;
      std::vector<LaneBits> at;
      for (size_t k = 0; k < operands_.size(); ++k)
        at.push_back(corner >> k & 1 ? operands_[k].high : operands_[k].low);
      TENON_TRY(results, evaluate_lanes(op_, attributes_, from_, at, to_));
      take(results);
    }
    return {};
  }
  // Whether the operands equal those of an earlier corner, since the interval of an operand is a single point.
  bool repeats(size_t corner) const {
    for (size_t k = 0; k < operands_.size(); ++k)
      if (corner >> k & 1 && operands_[k].low == operands_[k].high) return true;
    return false;
  }
  void take(const LaneBits& results) {
    if (corners_++ == 0) {
      made_.low = made_.high = results;
      nans_.assign(results.size(), 0);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (is_nan(to_, results[i])) {
        ++nans_[i];
        continue;
      }
      if (is_nan(to_, made_.low[i]) || is_less(to_, results[i], made_.low[i])) made_.low[i] = results[i];
      if (is_nan(to_, made_.high[i]) || is_less(to_, made_.high[i], results[i])) made_.high[i] = results[i];
    }
  }

  bool has_open(size_t i) const {
    return std::any_of(operands_.begin(), operands_.end(), [i](const Bounds& b) { return b.open[i] != 0; });
  }
  bool is_unsure_of(size_t k, size_t i) const { return !is_one(from_[k], operands_[k].low[i], operands_[k].high[i]); }
  bool is_unsure(size_t i) const {
    for (size_t k = 0; k < operands_.size(); ++k)
      if (is_unsure_of(k, i)) return true;
    return is_one_of_zeros(i);
  }
  // Which of two zeros is the greater depends on their order.
  bool is_one_of_zeros(size_t i) const {
    return from_[0].is_float() && is_one_of(op_, {"Max", "Min"}) && low(0, i) == 0 && low(1, i) == 0 &&
           operands_[0].low[i] != operands_[1].low[i];
  }
  double low(size_t k, size_t i) const { return real_of(from_[k], operands_[k].low[i]); }
  double high(size_t k, size_t i) const { return real_of(from_[k], operands_[k].high[i]); }
  bool holds_zero(size_t k, size_t i) const { return low(k, i) <= 0 && high(k, i) >= 0; }

  // Extends the interval of lane `i` by the results for operands inside their intervals; false: these are not known.
  bool holds_what_is_between(size_t i) {
    if (is_one_of(op_, {"Equal", "NotEqual"})) return may_be_equal(i);
    if (from_[0].is_bool()) return true;
    return from_[0].is_float() ? hull_of_floats(i) : hull_of_integers(i);
  }

  // a = b is possible unless the intervals are disjoint.
  bool may_be_equal(size_t i) {
    const Bounds &a = operands_[0], &b = operands_[1];
    if (is_less(from_[0], a.high[i], b.low[i]) || is_less(from_[0], b.high[i], a.low[i])) return true;
    made_.low[i] = 0;
    made_.high[i] = 1;
    return true;
  }

  bool hull_of_floats(size_t i) {
    if (is_one_of(op_, {"Mod", "Fmod", "BitCast"})) return false;
    if (op_ == "Div") return !holds_zero(1, i);
    if (op_ == "Pow") return low(0, i) > 0 || (!is_unsure_of(1, i) && high(0, i) < 0);
    if (op_ == "Tan") return std::round(low(0, i) / std::numbers::pi) == std::round(high(0, i) / std::numbers::pi);
    if (op_ == "Abs" && holds_zero(0, i)) made_.low[i] = 0;
    if (op_ == "Cosh" && holds_zero(0, i)) made_.low[i] = detail::bits_of(to_, 1);
    if (op_ == "Convert" && to_.is_bool() && holds_zero(0, i)) made_.low[i] = 0;
    if (is_one_of(op_, {"Max", "Min"})) extend_zeros(i);
    if (const auto slope = steepest()) extend(i, (high(0, i) - low(0, i)) * *slope);
    return true;
  }
  void extend_zeros(size_t i) {
    if (real_of(to_, made_.low[i]) == 0) made_.low[i] = detail::bits_of(to_, -0.0);
    if (real_of(to_, made_.high[i]) == 0) made_.high[i] = 0;
  }
  // For functions with extreme values at points other than 0: an upper bound of the magnitude of their derivative.
  std::optional<double> steepest() const {
    if (is_one_of(op_, {"Sin", "Cos"})) return 1;
    if (is_one_of(op_, {"Swish", "Mish", "Gelu"})) return 1.2;
    return std::nullopt;
  }
  // Inside the interval the function differs from the result at either end by at most `rise`.
  void extend(size_t i, double rise) {
    double least = real_of(to_, made_.low[i]), most = real_of(to_, made_.high[i]);
    const double deepest = most - rise, highest = least + rise;
    least = std::min(least, deepest);
    most = std::max(most, highest);
    if (is_one_of(op_, {"Sin", "Cos"})) {
      least = std::max(least, -1.0);
      most = std::min(most, 1.0);
    }
    made_.low[i] = detail::bits_of(to_, least);
    made_.high[i] = detail::bits_of(to_, most);
  }

  bool hull_of_integers(size_t i) {
    if (is_one_of(op_, {"Max", "Min", "ClampLow", "ClampHigh", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}))
      return true;
    if (is_one_of(op_, {"Add", "Sub"})) return width_of(to_, made_, i) == sum_of_widths(i);
    if (op_ != "Convert") return false;
    if (to_.is_bool() || to_.is_float()) {
      if (to_.is_bool()) made_.low[i] = 0;
      return true;
    }
    return width_of(to_, made_, i) == sum_of_widths(i);  // no number was truncated
  }
  // The width of a result interval; if all corners or none wrapped around, it equals the sum of the operands' widths.
  static uint64_t width_of(ElementType element, const Bounds& bounds, size_t i) {
    const uint64_t width = bounds.high[i] - bounds.low[i];
    return element.bits() == 64 ? width : width & ((uint64_t{1} << element.bits()) - 1);
  }
  uint64_t sum_of_widths(size_t i) const {
    uint64_t width = 0;
    for (size_t k = 0; k < operands_.size(); ++k) width += width_of(from_[k], operands_[k], i);
    return width;
  }

  const Name op_;
  const Attributes& attributes_;
  const std::vector<ElementType> from_;
  const ElementType to_;
  const std::vector<Bounds> operands_;
  Bounds made_;
  std::vector<size_t> nans_;  // per lane: number of corners with a NaN result
  size_t corners_ = 0;
};

// ---- Where ----

// By lane: the chosen side, or the union of both.
Bounds choose(std::span<const Bounds> operands, ElementType to) {
  const Bounds &condition = operands[0], &x = operands[1], &y = operands[2];
  Bounds made;
  for (size_t i = 0; i < condition.size(); ++i) {
    const bool sure = !condition.open[i] && condition.low[i] == condition.high[i];
    const Bounds& one = condition.low[i] ? x : y;
    made.low.push_back(one.low[i]);
    made.high.push_back(one.high[i]);
    made.open.push_back(one.open[i]);
    if (sure) continue;
    const bool nans = is_nan(to, x.low[i]) || is_nan(to, y.low[i]);
    made.open[i] = x.open[i] || y.open[i] || (nans && !(is_nan(to, x.low[i]) && is_nan(to, y.low[i])));
    if (nans) continue;
    made.low[i] = is_less(to, x.low[i], y.low[i]) ? x.low[i] : y.low[i];
    made.high[i] = is_less(to, x.high[i], y.high[i]) ? y.high[i] : x.high[i];
  }
  return made;
}

//  // ---- Numbers before they are rounded to their lanes ----

LaneBits widened(const LaneBits& lanes) {
  LaneBits wide;
  wide.reserve(lanes.size());
  for (const uint64_t bits : lanes) wide.push_back(detail::bits_of(kF64, real_of(kF32, bits)));
  return wide;
}

// f32 is computed in f64, which represents the real numbers. The ends are then rounded outward to floats.
Result<Bounds> bound_wide(Name op, const Attributes& attributes, std::span<const ElementType> from,
                          std::span<const Bounds> operands, ElementType to, double units, double error) {
  const auto wide = [](ElementType lane) { return lane == kF32 ? kF64 : lane; };
  std::vector<ElementType> types;
  std::vector<Bounds> bounds;
  for (size_t k = 0; k < operands.size(); ++k) {
    types.push_back(wide(from[k]));
    bounds.push_back(from[k] == kF32 ? Bounds{widened(operands[k].low), widened(operands[k].high), operands[k].open}
                                     : operands[k]);
  }
  TENON_TRY(made, Corners(op, attributes, std::move(types), std::move(bounds), wide(to)).run());
  for (size_t i = 0; i < made.size(); ++i) {
    const double low = real_of(kF64, made.low[i]), high = real_of(kF64, made.high[i]);
    // The f64 functions are those of std, which are accurate to a unit.
    const bool single = to == kF32;
    const double lowered = single ? detail::lowered(low, high, units) : std::nextafter(low, -INFINITY);
    const double raised = single ? detail::raised(low, high, units) : std::nextafter(high, INFINITY);
    made.low[i] = detail::low_end(to, std::min(lowered, low - error));
    made.high[i] = detail::high_end(to, std::max(raised, high + error));
  }
  return made;
}

}  // namespace

Result<Bounds> bound_lanes(Name op, const Attributes& attributes, std::span<const ElementType> from,
                           std::span<const Bounds> operands, ElementType to, const LaneRules& rules) {
  if (op == "Where") return choose(operands, to);
  const bool function = !is_selection(op) && !is_rounded_once(op) && op != "BitCast";
  const bool unrounded = function || rules.max_ulp > 0 || (rules.exact && is_rounded_once(op));
  const double units = function && rules.exact ? std::max(1.0, rules.max_ulp) : rules.max_ulp;
  if (to.is_float() && from[0].is_float() && unrounded)
    return bound_wide(op, attributes, from, operands, to, units, rules.error);
  return Corners(op, attributes, {from.begin(), from.end()}, {operands.begin(), operands.end()}, to).run();
}

}  // namespace tenon::snippet
