// Removes checks and work from bodies, based on value ranges.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "x86/body/conditions.hpp"
#include "x86/body/identities.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

using snippet::Body;
using snippet::BodyNode;
using snippet::ValueId;

// Products that are read by anything but one sum: they keep their rounding, also if that sum is all that remains.
std::vector<char> rounded_products(const Body& body) {
  const auto index = [](ValueId id) { return static_cast<size_t>(id); };
  std::vector<int> reads(body.values.size(), 0);
  std::vector<const BodyNode*> reader(body.values.size(), nullptr);
  for (const snippet::BodyPort& output : body.outputs) ++reads[index(output.value)];
  for (const BodyNode& node : body.nodes)
    for (const ValueId operand : node.operands) ++reads[index(operand)], reader[index(operand)] = &node;
  const auto only_reader = [&](ValueId id) { return reads[index(id)] == 1 ? reader[index(id)] : nullptr; };
  std::vector<char> rounded(body.values.size(), 0);
  for (const BodyNode& node : body.nodes) {
    if (node.op != kMul || !body.values[index(node.result)].element.is_float()) continue;
    const BodyNode* user = only_reader(node.result);
    if (user && user->op == kNeg) user = only_reader(user->result);
    rounded[index(node.result)] = !user || (user->op != kAdd && user->op != kSub);
  }
  return rounded;
}

class Rewriter {
 public:
  Rewriter(Body body, std::vector<char>& rounded_products)
      : body_(std::move(body)),
        numbers_(numbers_of(body_)),
        same_(body_.values.size()),
        readers_(body_.values.size(), 0),
        rounded_products_(rounded_products) {
    for (size_t i = 0; i < same_.size(); ++i) same_[i] = static_cast<ValueId>(i);
    for (const BodyNode& node : body_.nodes)
      for (const ValueId operand : node.operands) ++readers_[index(operand)];
    for (const snippet::BodyPort& output : body_.outputs) ++readers_[index(output.value)];
  }

  // Returns the body, and whether it has fewer nodes.
  std::pair<Body, bool> run() && {
    std::vector<BodyNode> all;
    find_roots();
    for (BodyNode& node : body_.nodes) {
      for (ValueId& operand : node.operands) operand = same_[index(operand)];
      const ValueId wanted = node.result;
      take_uniform(node);
      if (node.op == kWhere) take_implied(node, all);
      if (node.op == kWhere && node.operands[1] != node.operands[2]) join_choices(node, all);
      if (auto bound = compare_unconverted(node)) all.push_back(*std::move(bound));
      const std::optional<ValueId> x = same_as(node);
      if (x && alike(*x, node.result))
        same_[index(node.result)] = *x;
      else
        simplify(node);
      if (x && is_uniform_form(*x, node.result)) node = spread_of(node.result, *x, node.label);
      if (auto number = known_number(node)) {
        all.push_back(*std::move(number));
        node = spread_of(node.result, all.back().result, node.label);
      }
      if (node.op == kRoundEven) rounded_[node.result] = node.operands[0];
      if (is_exact(node)) {
        wholes_[node.result] = node.operands[0];
        if (readers_[index(wanted)] == 1) integers_[node.result] = node.operands[0];
      }
      if (auto bound = bound_of_square(node)) all.push_back(*std::move(bound));
      if (node.op == kConvert && is_narrow(node)) all.push_back(in_range(node));
      if (node.op == kConvertInRange) round_at_once(node);
      if (fits_i32(node)) node.attributes.set("fits_i32", 1);
      if (node.op == kWhere) choices_[node.result] = all.size();
      if (node.op == kAnd || node.op == kOr) joins_[node.result] = all.size();
      all.push_back(std::move(node));
      if (const ValueId made = all.back().result; made != wanted)
        all.push_back(spread_of(wanted, uniform(same_[index(made)]), all.back().label));
    }
    body_.nodes = std::move(all);
    rounded_products_.resize(body_.values.size());
    for (snippet::BodyPort& output : body_.outputs) output.value = same_[index(output.value)];
    if (drop_unread() == 0) return {std::move(body_), false};
    for (BodyNode& node : body_.nodes)
      if (rounded_products_[index(node.result)]) node.attributes.set("rounded", 1);
    return {std::move(body_), true};
  }

 private:
  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  const Numbers& of(const BodyNode& node, size_t i) const { return numbers_[index(node.operands[i])]; }
  bool is(ValueId id, ElementType element) const { return body_.values[index(id)].element == element; }
  bool alike(ValueId a, ValueId b) const {
    return body_.values[index(a)].element == body_.values[index(b)].element &&
           body_.values[index(a)].varies == body_.values[index(b)].varies;
  }
  snippet::DimSet varies(ValueId id) const { return body_.values[index(id)].varies; }
  // Whether `x` is what `id` is, computed for fewer elements.
  bool is_uniform_form(ValueId x, ValueId id) const {
    return varies(x) != varies(id) && (varies(x) & ~varies(id)) == 0 && is(x, body_.values[index(id)].element);
  }
  // The same value, computed for as few elements as possible.
  ValueId uniform(ValueId id) const {
    const auto found = uniform_.find(id);
    return found == uniform_.end() ? id : found->second;
  }
  // Replaces operands by uniform forms, computed for fewer elements. Where no operand varies as the result does, the
  // result is a new value, which is computed for fewer elements.
  void take_uniform(BodyNode& node) {
    if (snippet::is_reduction(node.op)) return;
    snippet::DimSet all = 0;
    for (ValueId& operand : node.operands) all |= varies(operand = uniform(operand));
    if (node.op == kSpread) uniform_[node.result] = node.operands[0];
    if (node.op == kSpread || all == varies(node.result)) return;
    const ValueId wanted = std::exchange(node.result, body_.add_value({body_.values[index(node.result)].element, all}));
    add_made(node.result, Numbers(numbers_[index(wanted)]));
    readers_[index(node.result)] = readers_[index(wanted)];
    rounded_products_[index(node.result)] = rounded_products_[index(wanted)];
  }
  // Records the range of the newest value.
  void add_made(ValueId id, Numbers numbers) {
    while (same_.size() < body_.values.size()) same_.push_back(static_cast<ValueId>(same_.size()));
    numbers_.resize(body_.values.size());
    numbers_[index(id)] = std::move(numbers);
    readers_.resize(body_.values.size());
    rounded_products_.resize(body_.values.size());
  }
  // A Spread that gives `id` the value of `x` for each element.
  BodyNode spread_of(ValueId id, ValueId x, const std::string& label) {
    uniform_[id] = x;
    return {.op = kSpread, .attributes = {}, .operands = {x}, .result = id, .label = label};
  }
  // For a choice nested in a choice, with conditions on the same value: takes the alternative that is chosen wherever
  // the nested choice is read.
  void take_implied(BodyNode& node, const std::vector<BodyNode>& made) const {
    for (const size_t i : {size_t{1}, size_t{2}}) {
      const auto found = choices_.find(node.operands[i]);
      if (found == choices_.end()) continue;
      const BodyNode& inner = made[found->second];
      const ValueId outer_holds = node.operands[0], inner_holds = inner.operands[0];
      std::optional<bool> truth;
      if (i == 1 && follows(outer_holds, inner_holds, made)) truth = true;
      if (i == 1 && excludes(of(node, 0), of(inner, 0))) truth = false;
      if (i == 2 && follows(inner_holds, outer_holds, made)) truth = false;
      if (!truth) continue;
      const ValueId chosen = inner.operands[*truth ? 1 : 2];
      if ((varies(node.operands[0]) | varies(chosen) | varies(node.operands[3 - i])) == varies(node.result))
        node.operands[i] = chosen;
    }
  }
  // A choice nested in a choice with a common alternative: becomes one choice by both conditions. A condition that has
  // to be negated for that must be computed for fewer elements.
  void join_choices(BodyNode& node, std::vector<BodyNode>& made) {
    static const Name kNot("Not");
    for (const size_t i : {size_t{1}, size_t{2}}) {
      const auto found = choices_.find(node.operands[i]);
      if (found == choices_.end() || readers_[index(node.operands[i])] != 1) continue;
      const std::vector<ValueId> inner = made[found->second].operands;
      const ValueId other = node.operands[3 - i];
      if (inner[1] != other && inner[2] != other) continue;
      const size_t same = inner[1] == other ? 1 : 2;
      ValueId c = node.operands[0], d = inner[0];
      ValueId* const negated = same == i ? (i == 1 ? &d : &c) : nullptr;
      if (negated && varies(*negated) == varies(node.result)) continue;
      const auto condition = [&](Name op, std::vector<ValueId> of) {
        snippet::DimSet all = 0;
        for (const ValueId operand : of) all |= varies(operand);
        const ValueId id = body_.add_value({kBool, all});
        add_made(id, {.low = 0, .high = 1});
        made.push_back({.op = op, .attributes = {}, .operands = std::move(of), .result = id, .label = node.label});
        return id;
      };
      if (negated) *negated = condition(kNot, {*negated});
      const bool any = !negated && i == 2;
      const ValueId by = condition(any ? kOr : kAnd, {c, d}), left = inner[3 - same];
      node.operands = any ? std::vector{by, other, left} : std::vector{by, left, other};
      return;
    }
  }
  // Whether condition `b` holds wherever `a` does. Looks a few steps into operands of And and Or.
  bool follows(ValueId a, ValueId b, const std::vector<BodyNode>& made, int steps = 4) const {
    if (a == b || implies(numbers_[index(a)], numbers_[index(b)])) return true;
    if (steps == 0) return false;
    const auto joins = [&](ValueId id, Name op) -> const BodyNode* {
      const auto found = joins_.find(id);
      return found != joins_.end() && made[found->second].op == op ? &made[found->second] : nullptr;
    };
    const auto part_of_b = [&](ValueId part) { return follows(a, part, made, steps - 1); };
    const auto part_of_a = [&](ValueId part) { return follows(part, b, made, steps - 1); };
    const BodyNode *const any = joins(b, kOr), *const all = joins(a, kAnd);
    if (any && std::ranges::any_of(any->operands, part_of_b)) return true;
    if (all && std::ranges::any_of(all->operands, part_of_a)) return true;
    const BodyNode *const each = joins(b, kAnd), *const either = joins(a, kOr);
    return (each && std::ranges::all_of(each->operands, part_of_b)) ||
           (either && std::ranges::all_of(either->operands, part_of_a));
  }
  // A value with only one possible number, as a constant.
  std::optional<BodyNode> known_number(const BodyNode& node) {
    const Numbers& x = numbers_[index(node.result)];
    const bool is_int = is(node.result, kI32) || is(node.result, kU32);
    const bool is_float =
        is(node.result, kF32) && is_number(x) && std::isfinite(x.low) && (x.low != 0 || !std::signbit(x.low));
    if (!(is_int || is_float) || x.low != x.high || varies(node.result) == 0 || snippet::is_reduction(node.op) ||
        uniform_.contains(node.result))
      return std::nullopt;
    const Numbers alone{.low = x.low, .high = x.high};  // before `x` moves
    const ElementType lane = body_.values[index(node.result)].element;
    BodyNode made = body_.make_scalar(lane, snippet::lane_bits(lane, alone.low), node.label);
    add_made(made.result, alone);
    return made;
  }
  static bool is_number(const Numbers& x) { return x.only.empty(); }
  // For a divisor s: 1 / s is no denormal, and the remainder of its nearest float is not close to one.
  static bool is_moderate(const Numbers& s) { return s.least >= 0x1p-126 && s.most <= 0x1p122; }

  // The operand that is the result in every case.
  std::optional<ValueId> same_as(const BodyNode& node) const {
    const auto& in = node.operands;
    if (node.op == kWhere && in[1] == in[2]) return in[1];
    if (node.op == kWhere) {
      const auto truth = truth_of(of(node, 0));
      return truth ? std::optional(in[*truth ? 1 : 2]) : std::nullopt;
    }
    if (node.op == kAnd || node.op == kOr) return stronger(node);
    if (node.op == kConvert && body_.values[index(node.result)].element.is_int())
      if (const auto whole = wholes_.find(in[0]); whole != wholes_.end()) return whole->second;
    if (node.op == kAbs && of(node, 0).low >= 0 && !std::signbit(of(node, 0).low)) return in[0];
    const bool greatest = node.op == kMax || node.op == kClampLow, least = node.op == kMin || node.op == kClampHigh;
    if (!greatest && !least) return std::nullopt;
    const Numbers &a = of(node, 0), &b = of(node, 1);
    if (node.op == kClampLow || node.op == kClampHigh)  // x where both are equal, or x is NaN
      return (greatest ? a.low >= b.high : a.high <= b.low) ? std::optional(in[0]) : std::nullopt;
    if (!is_number(a) || !is_number(b)) return std::nullopt;
    if (greatest ? a.low > b.high : a.high < b.low) return in[0];
    if (greatest ? b.low > a.high : b.high < a.low) return in[1];
    return std::nullopt;
  }

  // The condition that decides: for And the one that implies the other, for Or the one that is implied.
  std::optional<ValueId> stronger(const BodyNode& node) const {
    const Numbers &a = of(node, 0), &b = of(node, 1);
    for (const size_t i : {0, 1})
      if (const auto truth = truth_of(of(node, i))) return node.operands[*truth == (node.op == kAnd) ? 1 - i : i];
    const bool all = node.op == kAnd;
    if (implies(a, b)) return node.operands[all ? 0 : 1];
    if (implies(b, a)) return node.operands[all ? 1 : 0];
    return std::nullopt;
  }

  void simplify(BodyNode& node) const {
    if ((node.op == kMax || node.op == kMin) && is(node.result, kF32)) return order(node);
    if (node.op == kExp && is(node.result, kF32) && of(node, 0).high <= 0) node.attributes.set("below_1", 1);
    if (node.op == kDiv && is(node.result, kF32) && is_moderate(of(node, 1))) node.attributes.set("moderate", 1);
    if (node.op == kSqrt && is(node.result, kF32) && of(node, 0).least >= 0x1p-100) node.attributes.set("moderate", 1);
    if (node.op == kPow && is(node.result, kF32)) return raise_by_constant(node);
    if (node.op != kConvert || !is(node.operands[0], kF32)) return;
    const Numbers& x = of(node, 0);
    // There is only a conversion to signed integers; truncation to 0 may be of a number above -1.
    const bool fits =
        x.high < 0x1p31 && (is(node.result, kI32) ? x.low >= -0x1p31 : is(node.result, kU32) && x.low > -1);
    if (!fits || !is_number(x)) return;
    node.op = kConvertInRange;
    node.attributes.set("number", 1);
  }

  void raise_by_constant(BodyNode& node) const {
    const Numbers &base = of(node, 0), &exponent = of(node, 1);
    if (!is_number(exponent) || exponent.low != exponent.high || !std::isfinite(exponent.low) || exponent.low == 0)
      return;
    const bool whole = std::trunc(exponent.low) == exponent.low;
    if (whole && (base.low < 0 || std::signbit(base.low))) return;
    node.op = kPowBy;
    node.operands.pop_back();
    node.attributes.set("exponent", static_cast<int64_t>(std::bit_cast<uint32_t>(static_cast<float>(exponent.low))));
    if (base.low >= 0) node.attributes.set("no_sign", 1);
    if (base.low >= 0 && base.least >= 0x1p-126) node.attributes.set("normal", 1);
  }

  // Floats in the range of 8 or 16 bits, except for NaN. For NaN the conversion gives 0x80000000, whose low bits are
  // the required 0. Where only these are read, as in byte lanes, a later pass drops the Wrap.
  bool is_narrow(const BodyNode& node) const {
    return is(node.operands[0], kF32) && (is(node.result, kI32) || is(node.result, kU32)) &&
           narrow_type(node).has_value();
  }
  std::optional<ElementType> narrow_type(const BodyNode& conversion) const {
    const Numbers& x = of(conversion, 0);
    for (const ElementType type : {kI8, kI16, kU8, kU16}) {
      const bool has_sign = type.is_signed_int();
      const double least = has_sign ? -std::ldexp(1, type.bits() - 1) : 0;
      const double most = least + std::ldexp(1, type.bits()) - 1;
      if (has_sign == is(conversion.result, kI32) && x.low > least - 1 && x.high < most + 1) return type;
    }
    return std::nullopt;
  }
  // Returns the conversion; `node` becomes the Wrap of it.
  BodyNode in_range(BodyNode& node) {
    BodyNode converted = node;
    converted.op = kConvertInRange;
    converted.result = body_.add_value(body_.values[index(node.result)]);
    node.op = Name("Wrap");
    node.attributes = {{"to", narrow_type(node)->to_string()}};
    node.operands = {converted.result};
    round_at_once(converted);
    return converted;
  }

  // ---- Integers that are converted to be compared ----

  // Whether it is a conversion to f32 that is exact for all possible integers.
  bool is_exact(const BodyNode& node) const {
    constexpr double kMost = 0x1p24;
    if (node.op != kConvert || !is(node.result, kF32)) return false;
    const bool is_int = is(node.operands[0], kI32) || is(node.operands[0], kU32);
    return is_int && of(node, 0).low >= -kMost && of(node, 0).high <= kMost;
  }
  // Turns `node` into a comparison of integers, if it compares converted integers with each other or with a constant.
  // In the latter case returns the integer constant.
  std::optional<BodyNode> compare_unconverted(BodyNode& node) {
    constexpr double kMost = 0x1p24;
    if (!is_order(node.op)) return std::nullopt;
    const auto a = integers_.find(node.operands[0]), b = integers_.find(node.operands[1]);
    if (a == integers_.end() && b == integers_.end()) return std::nullopt;
    if (a != integers_.end() && b != integers_.end()) {
      if (body_.values[index(a->second)].element == body_.values[index(b->second)].element)
        node.operands = {a->second, b->second};
      return std::nullopt;
    }
    const size_t i = a != integers_.end() ? 0 : 1;
    const Numbers& bound = of(node, 1 - i);
    const bool is_one = varies(node.operands[1 - i]) == 0 && is_number(bound) && bound.low == bound.high;
    if (!is_one || std::abs(bound.low) > kMost) return std::nullopt;
    const bool less = (node.op == Name("Less") || node.op == Name("LessOrEqual")) == (i == 0);  // an upper bound
    const bool strict = node.op == Name("Less") || node.op == Name("Greater");
    const double up = std::ceil(bound.low), down = std::floor(bound.low);
    const double limit = 0.0 + (less ? (strict ? up : down + 1) : strict ? down : up - 1);  // not -0
    const ValueId integer = i == 0 ? a->second : b->second;
    const ElementType lane = body_.values[index(integer)].element;
    if (limit < 0 && lane == kU32) return std::nullopt;  // always or never true
    BodyNode made = body_.make_scalar(lane, snippet::lane_bits(lane, limit), node.label);
    add_made(made.result, {.low = limit, .high = limit});
    node.op = less ? "Less" : "Greater";
    node.operands = {integer, made.result};
    return made;
  }

  // ---- Roots that are only compared ----

  static bool is_order(Name op) {
    static const Name kNames[] = {Name("Less"), Name("LessOrEqual"), Name("Greater"), Name("GreaterOrEqual")};
    return std::ranges::find(kNames, op) != std::end(kNames);
  }
  // Finds the operands of roots that are only read by comparisons with constants.
  void find_roots() {
    for (const BodyNode& node : body_.nodes) {
      const bool orders = is_order(node.op);
      for (size_t i = 0; i < node.operands.size(); ++i)
        if (!orders || !is_square_bound(node.operands[1 - i])) roots_.erase(node.operands[i]);
      if (node.op == kSqrt && is(node.result, kF32) && of(node, 0).low >= 0) roots_[node.result] = node.operands[0];
    }
    for (const snippet::BodyPort& output : body_.outputs) roots_.erase(output.value);
  }
  bool is_square_bound(ValueId id) const {
    constexpr double kMost = 0x1p60;  // its square is a float
    const Numbers& x = numbers_[index(id)];
    return body_.values[index(id)].varies == 0 && is_number(x) && x.low == x.high && x.low >= 0 && x.low <= kMost;
  }
  // The greatest float whose root is at most `bound`, or the least float whose root is at least `bound`.
  static float square_of(float bound, bool greatest) {
    const auto holds = [&](float x) { return greatest ? std::sqrt(x) <= bound : std::sqrt(x) >= bound; };
    const auto next = [&](float x, bool up) {
      return std::nextafter(x, up ? std::numeric_limits<float>::infinity() : 0.0f);
    };
    float x = bound * bound;
    while (!holds(x)) x = next(x, !greatest);
    while (x != next(x, greatest) && holds(next(x, greatest))) x = next(x, greatest);
    return x;
  }
  // Roots are monotone: `node` becomes a comparison of the operand with the constant that this returns.
  std::optional<BodyNode> bound_of_square(BodyNode& node) {
    if (!is_order(node.op)) return std::nullopt;
    const size_t i = roots_.contains(node.operands[0]) ? 0 : 1;
    const auto root = roots_.find(node.operands[i]);
    if (root == roots_.end() || !is_square_bound(node.operands[1 - i])) return std::nullopt;
    const bool less = node.op == Name("Less") || node.op == Name("LessOrEqual");
    const bool strict = node.op == Name("Less") || node.op == Name("Greater");
    const bool below = less == (i == 0);  // an upper bound of the root
    const auto bound = static_cast<float>(of(node, 1 - i).low);
    BodyNode made = body_.make_scalar(kF32, std::bit_cast<uint32_t>(square_of(bound, below != strict)), node.label);
    node.operands[i] = same_[index(root->second)];
    node.operands[1 - i] = made.result;
    return made;
  }

  void round_at_once(BodyNode& conversion) const {
    const auto found = rounded_.find(conversion.operands[0]);
    if (found == rounded_.end()) return;
    conversion.op = kRoundInRange;
    conversion.operands = {found->second};
  }
  // Unsigned integers that are converted to floats, or compared by order.
  bool fits_i32(const BodyNode& node) const {
    const bool to_float = node.op == kConvert && body_.values[index(node.result)].element.is_float();
    if (!to_float && !is_order(node.op)) return false;
    return std::ranges::all_of(node.operands,
                               [&](ValueId x) { return is(x, kU32) && numbers_[index(x)].high < 0x1p31; });
  }

  // The instruction returns a fixed operand where either is NaN or both are zeros: x for ClampLow and ClampHigh, and
  // for zeros the second operand of Max and Min.
  void order(BodyNode& node) const {
    const Numbers &a = of(node, 0), &b = of(node, 1);
    const Name clamp = node.op == kMax ? kClampLow : kClampHigh;
    const auto may_be_zero = [](const Numbers& x) { return x.low <= 0 && x.high >= 0; };
    const auto has_sign = [](const Numbers& x) { return x.low < 0 || std::signbit(x.low); };
    const bool zeros_meet = may_be_zero(a) && may_be_zero(b) && (has_sign(a) || has_sign(b));
    if (std::ranges::includes(b.where, a.only)) {
      std::swap(node.operands[0], node.operands[1]);
      node.op = clamp;
    } else if (std::ranges::includes(a.where, b.only) && !zeros_meet) {
      node.op = clamp;
    }
  }

  // Returns the number of removed nodes.
  size_t drop_unread() {
    std::vector<char> read(body_.values.size(), 0);
    for (const snippet::BodyPort& output : body_.outputs) read[index(output.value)] = 1;
    for (auto node = body_.nodes.rbegin(); node != body_.nodes.rend(); ++node)
      if (read[index(node->result)])
        for (const ValueId operand : node->operands) read[index(operand)] = 1;
    return std::erase_if(body_.nodes, [&](const BodyNode& node) { return !read[index(node.result)]; });
  }

  Body body_;
  std::vector<Numbers> numbers_;  // for new values: known numbers only
  std::vector<ValueId> same_;
  std::unordered_map<ValueId, ValueId> uniform_;   // the same value over fewer dims
  std::vector<int> readers_;                       // of given values, and of their forms over fewer elements
  std::unordered_map<ValueId, ValueId> rounded_;   // results of RoundEven, with their operands
  std::unordered_map<ValueId, ValueId> wholes_;    // results for which is_exact() holds, with their operands
  std::unordered_map<ValueId, ValueId> integers_;  // the same, where there is a single reader
  std::unordered_map<ValueId, ValueId> roots_;
  std::unordered_map<ValueId, size_t> choices_, joins_;  // positions of each Where, and of each And or Or
  std::vector<char>& rounded_products_;
};

}  // namespace

// Repeats, because removed nodes may make others known, or equal.
Body with_fewer_checks(const Body& body) {
  constexpr int kMostRounds = 3;
  std::vector<char> rounded = rounded_products(body);
  Body made = body;
  bool goes_on = true;
  for (int round = 0; goes_on && round < kMostRounds; ++round)
    std::tie(made, goes_on) = Rewriter(with_identities(std::move(made), rounded), rounded).run();
  return made;
}

}  // namespace tenon::x86
