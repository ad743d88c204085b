// Interval arithmetic through a body: ports, operators over the dims along which their results vary, reductions.
#include <tenon/snippet/body/body_bounds.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <ranges>

#include <tenon/codegen/register.hpp>
#include <tenon/snippet/body/body_bounds_internal.hpp>
#include <tenon/snippet/body/body_elements.hpp>

namespace tenon::snippet {
namespace {

using detail::is_less;
using detail::is_nan;
using detail::real_of;

Bounds points(LaneBits lanes) {
  Bounds made{lanes, lanes, std::vector<char>(lanes.size(), 0)};
  return made;
}

// One element of a fold, term by term. Sums and products of floats are kept as real intervals.
class Fold {
 public:
  Fold(Name op, ElementType lane, uint64_t initial) : op_(op), lane_(lane), low_(initial), high_(initial) {
    if (op == "ReduceProd") magnitude_ = least_ = most_ = 1;
    if (lane.is_float()) take_real(real_of(lane, initial), real_of(lane, initial));
  }
  void add(uint64_t low, uint64_t high, bool open) {
    open_ = open_ || open;
    if (op_ == "ReduceMax" || op_ == "ReduceMin") return take_extreme(low, high);
    if (lane_.is_float()) return take_real(real_of(lane_, low), real_of(lane_, high));
    open_ = open_ || low != high;
    low_ = high_ = wrapped(op_ == "ReduceSum" ? low_ + low : low_ * low);
  }
  // After all terms.
  void finish(uint64_t& low, uint64_t& high, char& open) {
    if (lane_.is_float() && (op_ == "ReduceSum" || op_ == "ReduceProd")) finish_real();
    low = low_;
    high = high_;
    open = open_;
  }

 private:
  uint64_t wrapped(uint64_t bits) const { return lane_.bits() == 64 ? bits : bits & 0xffffffff; }

  void take_extreme(uint64_t low, uint64_t high) {
    const bool greatest = op_ == "ReduceMax";
    for (auto [mine, term] : {std::pair(&low_, low), std::pair(&high_, high)}) {
      if (is_nan(lane_, *mine)) continue;
      const bool further = greatest ? is_less(lane_, *mine, term) : is_less(lane_, term, *mine);
      if (is_nan(lane_, term) || further) *mine = term;
    }
    if (lane_.is_float()) take_zeros(low, high);
  }
  // Which of the two zeros is the extreme depends on the order.
  void take_zeros(uint64_t low, uint64_t high) {
    const uint64_t negative = detail::bits_of(lane_, -0.0);
    if (real_of(lane_, low_) == 0 && (low == negative || high == negative)) low_ = negative;
    if (real_of(lane_, high_) == 0 && (low == 0 || high == 0)) high_ = 0;
  }

  void take_real(double low, double high) {
    ++terms_;
    const double magnitude = std::max(std::abs(low), std::abs(high));
    if (op_ == "ReduceSum") {
      least_ += low;
      most_ += high;
      magnitude_ += magnitude;
      return;
    }
    const double ends[] = {least_ * low, least_ * high, most_ * low, most_ * high};
    least_ = *std::min_element(ends, ends + 4);
    most_ = *std::max_element(ends, ends + 4);
    magnitude_ *= std::max(magnitude, 1.0);
    smallest_ *= std::min(magnitude, 1.0);
  }
  // If a fold in another order may overflow or lose precision completely, the result is open.
  void finish_real() {
    const bool single = lane_ == kF32;
    const double unit = 1.01 * static_cast<double>(terms_) * (single ? 0x1p-24 : 0x1p-51);
    const double limit = single ? 0x1p127 : 0x1p1020;
    const bool sums = op_ == "ReduceSum";
    const bool finite = std::isfinite(least_) && std::isfinite(most_);
    const bool lost = !sums && smallest_ < 1 / limit && smallest_ != 0;
    if (finite && (magnitude_ > limit || lost)) open_ = true;
    if (!finite && !(least_ == most_ || (std::isnan(least_) && std::isnan(most_)))) open_ = true;
    const auto slack = [&](double end) { return finite ? unit * (sums ? magnitude_ : std::abs(end)) : 0.0; };
    low_ = detail::low_end(lane_, least_ - slack(least_));
    high_ = detail::high_end(lane_, most_ + slack(most_));
  }

  const Name op_;
  const ElementType lane_;
  uint64_t low_, high_;
  bool open_ = false;
  int64_t terms_ = 0;
  double least_ = 0, most_ = 0, magnitude_ = 0, smallest_ = 1;
};

const Name kAdd("Add"), kSub("Sub"), kMul("Mul"), kDiv("Div"), kNeg("Neg"), kSum("ReduceSum"), kScalar("Scalar"),
    kErf("Erf"), kTanh("Tanh"), kExp("Exp"), kGreatest("ReduceMax");

// Moves both ends outward by this many numbers. Half a unit in the last place for each of the three arguments (two of a
// product, and that of the power itself) is one and a half; below a power of two numbers are twice as dense.
constexpr int kStepsOfMoved = 3;
Bounds moved(Bounds argument) {
  for (size_t i = 0; i < argument.size(); ++i) {
    const auto out = [&](uint64_t& bits, float towards) {
      auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
      if (!std::isfinite(x)) return;
      for (int step = 0; step < kStepsOfMoved; ++step) x = std::nextafter(x, towards);
      bits = std::bit_cast<uint32_t>(x);
    };
    // A difference of 0 from the greatest is exact.
    const bool is_zero = real_of(kF32, argument.low[i]) == 0 && real_of(kF32, argument.high[i]) == 0;
    if (argument.open[i] || is_zero) continue;
    out(argument.low[i], -std::numeric_limits<float>::infinity());
    out(argument.high[i], std::numeric_limits<float>::infinity());
  }
  return argument;
}
// For a product of two functions: with mantissas just above 1 and just below 2, the units of one count twice, and
// rounding adds half a unit.
double units_of_moved(double units) { return 3 * units + 0.5; }

// Determines which Erf and Tanh nodes of a body may become tables, and the polynomials of one value that are their
// arguments.
class Tables {
 public:
  explicit Tables(const Body& body)
      : body_(body),
        makers_(body.values.size()),
        bases_(body.values.size()),
        numbers_(body.values.size(), 0),
        sizes_(body.values.size(), kAny) {
    for (size_t i = 0; i < bases_.size(); ++i) bases_[i] = static_cast<ValueId>(i);
    for (const BodyNode& node : body.nodes) {
      makers_[static_cast<size_t>(node.result)] = &node;
      bases_[static_cast<size_t>(node.result)] = base_of(node);
      numbers_[static_cast<size_t>(node.result)] = number_of(node);
    }
    for (const BodyPort& port : body.outputs) sizes_[static_cast<size_t>(port.value)] = 0;
    for (const BodyNode& node : body.nodes | std::views::reverse)
      for (size_t k = 0; k < node.operands.size(); ++k) {
        double& size = sizes_[static_cast<size_t>(node.operands[k])];
        size = std::min(size, most_of_operand(node, k));
      }
  }

  bool may_be_one(const BodyNode& node) const {
    return (node.op == kErf || node.op == kTanh) && is_f32(node.result) &&
           sizes_[static_cast<size_t>(node.result)] >= 1;
  }
  // The node that computes `id` from the value of which it is a polynomial; null: it is that value, or a number.
  const BodyNode* step(ValueId id) const {
    const ValueId base = bases_[static_cast<size_t>(id)];
    return base == id || base == kNumber ? nullptr : makers_[static_cast<size_t>(id)];
  }
  // Whether the result of a step may have a coefficient that none of its operands has.
  bool makes_coefficient(const BodyNode& step) const {
    const auto is_number = [&](ValueId id) { return bases_[static_cast<size_t>(id)] == kNumber; };
    return step.op != kNeg && (step.op != kMul || std::ranges::any_of(step.operands, is_number));
  }

 private:
  static constexpr ValueId kNumber = -1;
  static constexpr double kAny = std::numeric_limits<double>::infinity();

  bool is_f32(ValueId id) const { return body_.values[static_cast<size_t>(id)].element == kF32; }
  bool is_arithmetic(const BodyNode& node) const {
    const bool known = node.op == kAdd || node.op == kSub || node.op == kMul || node.op == kDiv || node.op == kNeg;
    return known && is_f32(node.result);
  }

  ValueId base_of(const BodyNode& node) const {
    if (node.op == kScalar) return kNumber;
    if (!is_arithmetic(node)) return node.result;
    ValueId base = kNumber;
    for (const ValueId id : node.operands) {
      const ValueId other = bases_[static_cast<size_t>(id)];
      if (other == kNumber) continue;
      if ((base != kNumber && base != other) || (node.op == kDiv && id == node.operands[1])) return node.result;
      base = other;
    }
    return base;
  }

  // For a Scalar, and values computed from these only; 0: not a number.
  double number_of(const BodyNode& node) const {
    if (bases_[static_cast<size_t>(node.result)] != kNumber || !is_f32(node.result)) return 0;
    if (node.op == kScalar)
      return real_of(kF32, static_cast<uint64_t>(*node.attributes.find("bits")->get_if<int64_t>()) & 0xffffffff);
    const double a = number(node.operands.front()), b = number(node.operands.back());
    if (node.op == kNeg) return -a;
    if (node.op == kMul) return a * b;
    if (node.op == kDiv) return a / b;
    return node.op == kAdd ? a + b : a - b;
  }
  double number(ValueId id) const { return numbers_[static_cast<size_t>(id)]; }
  // The largest magnitude of operand `k` for which `node` finally adds it to numbers of at least its magnitude; 0: it
  // does not.
  double most_of_operand(const BodyNode& node, size_t k) const {
    if (!is_arithmetic(node)) return 0;
    const double most = sizes_[static_cast<size_t>(node.result)];
    if (node.op == kNeg) return most;
    const double other = std::abs(number(node.operands[1 - k]));
    if (node.op == kAdd || node.op == kSub) return other;
    if (most == 0 || other == 0 || (node.op == kDiv && k == 1)) return 0;
    return node.op == kMul ? most / other : most * other;
  }

  const Body& body_;
  std::vector<const BodyNode*> makers_;  // null: a port's
  std::vector<ValueId> bases_;           // the value of which each is a polynomial
  std::vector<double> numbers_;          // the number that each is, if it is uniform and known
  std::vector<double> sizes_;            // the largest magnitude of each that all its readers add to numbers as large
};

class Walk {
 public:
  Walk(const Body& body, const Dims& extents, const BoundRules& rules)
      : body_(body),
        extents_(extents),
        rules_(rules),
        tables_(body),
        values_(body.values.size()),
        steps_(body.values.size()),
        added_(body.values.size(), 0),
        multiplied_(body.values.size(), 0),
        constant_(body.values.size(), 0),
        levels_(body.values.size(), 0),
        gated_(body.values.size(), 0),
        moved_(body.values.size(), 0) {
    for (const BodyNode& node : body.nodes | std::views::reverse) {
      constant_[static_cast<size_t>(node.result)] = node.op == kScalar;
      const bool passes_on = node.op == kNeg && added_[static_cast<size_t>(node.result)];
      if (node.op == kAdd || node.op == kSub || node.op == kSum || passes_on)
        for (const ValueId id : node.operands) added_[static_cast<size_t>(id)] = 1;
      if (node.op == kMul)
        for (const ValueId id : node.operands) multiplied_[static_cast<size_t>(id)] = 1;
    }
    for (const BodyNode& node : body.nodes) note_gate(node);
    if (rules.moved_powers && !rules.in_any_precision) note_moved();
  }

  Result<std::vector<Bounds>> run(std::span<const void* const> inputs) {
    for (size_t i = 0; i < body_.inputs.size(); ++i) load(body_.inputs[i], inputs[i]);
    for (const BodyNode& node : body_.nodes) {
      TENON_TRY(made, make(node), "bounds of ", node.op, " (", node.label, ")");
      at(node.result) = std::move(made);
    }
    std::vector<Bounds> outputs;
    for (const BodyPort& port : body_.outputs) {
      Bounds bounds = at(port.value);
      for (LaneBits* ends : {&bounds.low, &bounds.high})
        for (uint64_t& bits : *ends) bits = memory_of_lane(port.element, bits);
      outputs.push_back(std::move(bounds));
    }
    return outputs;
  }

 private:
  Bounds& at(ValueId id) { return values_[static_cast<size_t>(id)]; }
  DimSet varies(ValueId id) const { return body_.values[static_cast<size_t>(id)].varies; }
  ElementType lane(ValueId id) const { return body_.values[static_cast<size_t>(id)].element; }

  void load(const BodyPort& port, const void* data) {
    const DimSet set = varies(port.value);
    const PortLayout layout = layout_of(port, set, extents_);
    const auto* const first = static_cast<const std::byte*>(data) + layout.begin_bytes;
    LaneBits lanes;
    for (int64_t i = 0; i < element_count(set, extents_); ++i) {
      int64_t rest = i, offset_bytes = 0;
      for (size_t d = extents_.size(); d-- > 0;) {
        if (!(set >> d & 1)) continue;
        offset_bytes += rest % extents_[d] * layout.strides[d];
        rest /= extents_[d];
      }
      lanes.push_back(lane_of_memory(port.element, load_bits(first + offset_bytes, port.element.bits(), 0)));
    }
    at(port.value) = points(std::move(lanes));
  }

  // Marks gates x (c + f), where f saturates: sums of f and constants, and products of these.
  void note_gate(const BodyNode& node) {
    const auto any = [&](const std::vector<char>& flags) {
      return std::ranges::any_of(node.operands, [&](ValueId id) { return flags[static_cast<size_t>(id)] != 0; });
    };
    const auto result = static_cast<size_t>(node.result);
    const bool by_constant = node.op == kNeg || ((node.op == kMul || node.op == kDiv) && any(constant_));
    const bool sum = (node.op == kAdd || node.op == kSub) && any(constant_) && multiplied_[result];
    levels_[result] = node.op == kErf || node.op == kTanh || (by_constant && any(levels_));
    gated_[result] = (sum && any(levels_)) || ((by_constant || node.op == kMul) && any(gated_));
  }

  // Marks exponentials of f32 minus the maximum.
  void note_moved() {
    std::vector<char> greatest(moved_.size(), 0), less(moved_.size(), 0);
    for (const BodyNode& node : body_.nodes) {
      const auto result = static_cast<size_t>(node.result);
      greatest[result] = node.op == kGreatest;
      less[result] = node.op == kSub && greatest[static_cast<size_t>(node.operands[1])] != 0;
      moved_[result] = node.op == kExp && lane(node.result) == kF32 && less[static_cast<size_t>(node.operands[0])] != 0;
    }
  }

  Result<Bounds> make(const BodyNode& node) {
    if (node.op == "Scalar") {
      const auto bits = static_cast<uint64_t>(*node.attributes.find("bits")->get_if<int64_t>());
      return points(LaneBits(1, lane(node.result).bits() == 64 ? bits : bits & 0xffffffff));
    }
    if (node.op == "ReducedCount") return points({count(lane(node.result))});
    if (node.op.view().starts_with("Reduce")) return fold(node);
    LaneRules lane_rules = rules_of(node);
    if (has_tables() && tables_.may_be_one(node)) {
      lane_rules.error = rules_.table_error;
      TENON_TRY(argument, step(node.operands[0]));
      return make(node, {spread(argument, node.operands[0], varies(node.result))}, lane_rules);
    }
    std::vector<Bounds> operands;
    for (const ValueId id : node.operands) operands.push_back(spread(at(id), id, varies(node.result)));
    if (moved_[static_cast<size_t>(node.result)]) {
      operands[0] = moved(std::move(operands[0]));
      lane_rules.max_ulp = units_of_moved(lane_rules.max_ulp);
    }
    return make(node, operands, lane_rules);
  }
  Result<Bounds> make(const BodyNode& node, const std::vector<Bounds>& operands, const LaneRules& lane_rules) {
    if (operands[0].size() == 0) return Bounds();
    std::vector<ElementType> from;
    for (const ValueId id : node.operands) from.push_back(lane(id));
    if (is_compared_with_itself(node)) return compare_with_itself(node, from[0], operands[0]);
    return bound_lanes(node.op, node.attributes, from, operands, lane(node.result), lane_rules);
  }

  // The reference uses none.
  bool has_tables() const { return rules_.table_error > 0 && !rules_.in_any_precision; }
  // The argument that a table may see for `id`, given bounds of the value of which it is a polynomial.
  Result<Bounds> step(ValueId id) {
    const BodyNode* const node = tables_.step(id);
    if (!node) return at(id);
    std::optional<Bounds>& known = steps_[static_cast<size_t>(id)];
    if (known) return *known;
    LaneRules lane_rules = rules_of(*node);
    lane_rules.exact = true;
    if (tables_.makes_coefficient(*node)) lane_rules.max_ulp = std::max(lane_rules.max_ulp, 1.0);
    std::vector<Bounds> operands;
    for (const ValueId operand : node->operands) {
      TENON_TRY(made, step(operand));
      operands.push_back(spread(made, operand, varies(id)));
    }
    TENON_TRY(made, make(*node, operands, lane_rules));
    known = std::move(made);
    return *known;
  }
  LaneRules rules_of(const BodyNode& node) const {
    double units = rules_.max_ulp ? rules_.max_ulp(body_, node) : 0;
    if (node.op == "Div" && constant_[static_cast<size_t>(node.operands[1])])
      units = std::max(units, rules_.constant_quotient_ulp);
    LaneRules lane_rules{.max_ulp = units > 0.5 ? units : 0};  // half a unit: rounded correctly
    const auto result = static_cast<size_t>(node.result);
    lane_rules.exact =
        rules_.in_any_precision || (rules_.contract && ((node.op == kMul && added_[result]) || gated_[result]));
    return lane_rules;
  }

  // x != x is a test for NaN, whatever x may be otherwise.
  bool is_compared_with_itself(const BodyNode& node) const {
    return node.operands.size() == 2 && node.operands[0] == node.operands[1] && lane(node.result).is_bool() &&
           !lane(node.operands[0]).is_bool();
  }
  static Result<Bounds> compare_with_itself(const BodyNode& node, ElementType from, const Bounds& x) {
    const std::vector<ElementType> types(2, from);
    const std::vector<LaneBits> pair(2, x.low);
    TENON_TRY(made, evaluate_lanes(node.op, node.attributes, types, pair, kBool));
    Bounds bounds = points(std::move(made));
    bounds.open = x.open;
    return bounds;
  }

  Bounds spread(const Bounds& from, ValueId id, DimSet to) const {
    Bounds made;
    for (const size_t i : element_places(varies(id), to, extents_)) {
      made.low.push_back(from.low[i]);
      made.high.push_back(from.high[i]);
      made.open.push_back(from.open[i]);
    }
    return made;
  }

  uint64_t count(ElementType lane) const {
    const int64_t value = element_count(body_.reduced_dims(), extents_);
    return lane.is_float() ? detail::bits_of(lane, static_cast<double>(value)) : static_cast<uint64_t>(value);
  }

  Bounds fold(const BodyNode& node) {
    const ValueId operand = node.operands[0];
    const DimSet to = varies(node.result), all = to | body_.reduced_dims();
    const auto initial = static_cast<uint64_t>(*node.attributes.find("initial")->get_if<int64_t>());
    const auto size = static_cast<size_t>(element_count(to, extents_));
    std::vector<Fold> folds(size, Fold(node.op, lane(operand), initial));
    const std::vector<size_t> from_at = element_places(varies(operand), all, extents_),
                              to_at = element_places(to, all, extents_);
    const Bounds& terms = at(operand);
    for (size_t i = 0; i < from_at.size(); ++i)
      folds[to_at[i]].add(terms.low[from_at[i]], terms.high[from_at[i]], terms.open[from_at[i]] != 0);
    Bounds made{LaneBits(size), LaneBits(size), std::vector<char>(size)};
    for (size_t i = 0; i < size; ++i) folds[i].finish(made.low[i], made.high[i], made.open[i]);
    return made;
  }

  const Body& body_;
  const Dims& extents_;
  const BoundRules& rules_;
  const Tables tables_;
  std::vector<Bounds> values_;
  std::vector<std::optional<Bounds>> steps_;  // of polynomials that are arguments of tables
  std::vector<char> added_;                   // values that some node adds, directly or negated
  std::vector<char> multiplied_;              // values that some node multiplies
  std::vector<char> constant_;                // uniform values known when code is generated
  std::vector<char> levels_;                  // Erf and Tanh, negated and times constants
  std::vector<char> gated_;                   // sums of these and constants that are multiplied, and their products
  std::vector<char> moved_;                   // exponentials that may be computed as products of two
};

}  // namespace

Result<std::vector<Bounds>> bound_body(const Body& body, const Dims& extents, std::span<const void* const> inputs,
                                       const BoundRules& rules) {
  return Walk(body, extents, rules).run(inputs);
}

bool is_within(const Bounds& bounds, ElementType element, size_t i, uint64_t bits) {
  if (bounds.open[i] || bits == bounds.low[i] || bits == bounds.high[i]) return true;
  if (is_nan(element, bounds.low[i]) || is_nan(element, bits))
    return is_nan(element, bounds.low[i]) && is_nan(element, bits);
  return !is_less(element, bits, bounds.low[i]) && !is_less(element, bounds.high[i], bits);
}

}  // namespace tenon::snippet
