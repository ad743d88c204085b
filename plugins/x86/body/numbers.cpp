#include "x86/body/conditions.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "x86/emitters/byte_tables.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

using snippet::Body;
using snippet::BodyNode;
using snippet::BodyPort;
using snippet::ValueId;
using Ids = Numbers::Ids;

constexpr double kLeast = Numbers::kLeast, kMost = Numbers::kMost;
constexpr size_t kMostIds = Numbers::kMostIds;

bool is_int32(ElementType element) { return element.is_int() && element.bits() == 32; }

double least_of(ElementType element) { return element.is_signed_int() ? -std::ldexp(1, element.bits() - 1) : 0; }
double greatest_of(ElementType element) {
  return std::ldexp(1, element.bits() - (element.is_signed_int() ? 1 : 0)) - 1;
}

ElementType element_named(const BodyNode& node) {
  const Attribute* const to = node.attributes.find("to");
  const std::string* const text = to ? to->get_if<std::string>() : nullptr;
  return text ? ElementType::parse(*text).value_or(ElementType{}) : ElementType{};
}

Ids joined(const Ids& a, const Ids& b) {
  Ids all;
  std::ranges::set_union(a, b, std::back_inserter(all));
  return all;
}
Ids common(const Ids& a, const Ids& b) {
  Ids all;
  std::ranges::set_intersection(a, b, std::back_inserter(all));
  return all;
}

bool is_negative_zero(double x) { return x == 0 && std::signbit(x); }
bool may_be_zero(const Numbers& x) { return x.low <= 0 && x.high >= 0; }
bool may_be_infinite(const Numbers& x) { return x.low == -kInfinity || x.high == kInfinity; }
bool has_no_sign(const Numbers& x) { return x.low >= 0 && !is_negative_zero(x.low); }
bool are_within(const Numbers& x, double low, double high) { return x.low >= low && x.high <= high; }

// Outward to the next floats, since f32 code may round, or leave numbers unrounded in a sum of products. Exact ones
// stay.
double below(double x) {
  const auto f = static_cast<float>(x);
  return double{f} == x ? x : double{std::nextafter(f, -std::numeric_limits<float>::infinity())};
}
double above(double x) { return -below(-x); }

class Walk {
 public:
  explicit Walk(const Body& body)
      : body_(body),
        all_(body.values.size()),
        greatest_of_(body.values.size(), -1),
        makers_(body.values.size(), nullptr) {
    for (size_t i = 0; i < all_.size(); ++i) all_[i] = any(static_cast<ValueId>(i), body.values[i].element);
    for (const BodyPort& input : body.inputs)
      if (input.element.is_int() && is_int32(element(input.value))) all_[index(input.value)] = of_type(input.element);
    for (const BodyNode& node : body.nodes) makers_[index(node.result)] = &node, see(node);
  }
  std::vector<Numbers> take() && { return std::move(all_); }

 private:
  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  ElementType element(ValueId id) const { return body_.values[index(id)].element; }

  static Numbers of_type(ElementType type) { return {.low = least_of(type), .high = greatest_of(type)}; }
  static Numbers any(ValueId id, ElementType type) {
    if (is_int32(type)) return of_type(type);
    if (type == kBool) return {.low = 0, .high = 1};
    return {.low = -kInfinity, .high = kInfinity, .only = {id}, .where = {id}};
  }

  void see(const BodyNode& node) {
    static const Name kReduceSum("ReduceSum");
    const ElementType type = element(node.result);
    if (node.op == kReduceMax) greatest_of_[index(node.result)] = node.operands[0];
    if (type == kBool) return (void)(all_[index(node.result)] = condition(node));
    if (type == kF32 && node.op == kReduceSum) return keep(node.result, type, sum_of_row(node));
    if (type == kF32 && (node.op == kReduceMax || node.op == kReduceMin))
      return keep(node.result, type, of_magnitudes(node, in(node, 0).least, in(node, 0).most));
    if (snippet::is_reduction(node.op) || (type != kF32 && !is_int32(type))) return;
    Numbers made = all_[index(node.result)];
    if (node.op == kScalar) {
      made = of_scalar(node, type);
    } else if (node.op == kConvert) {
      if (element(node.operands[0]) != kF32 && !is_int32(element(node.operands[0]))) return;
      made = converted(in(node, 0), type);
    } else if (node.op == kWhere) {
      made = chosen(node, type);
    } else if (node.op == kSpread) {
      made = in(node, 0);
    } else {
      const auto rule = (type == kF32 ? float_rules() : integer_rules()).find(node.op);
      const auto other = [&](ValueId operand) { return element(operand) != type; };
      if (rule == (type == kF32 ? float_rules() : integer_rules()).end() || std::ranges::any_of(node.operands, other))
        return;
      made = rule->second(*this, node);
    }
    keep(node.result, type, std::move(made));
  }
  const Numbers& in(const BodyNode& node, size_t i) const { return all_[index(node.operands[i])]; }

  Numbers of_magnitudes(const BodyNode& node, double least, double most) const {
    Numbers made = any(node.result, kF32);
    made.least = least, made.most = most;
    return made;
  }
  // The sum of a row without elements is 0.
  Numbers sum_of_row(const BodyNode& node) const {
    constexpr double kMostElements = 0x1p63;
    const Numbers& x = in(node, 0);
    if (x.low < 0) return of_magnitudes(node, kLeast, x.most * kMostElements);
    // At least one power of a row, that of the maximum, is 1.
    constexpr double kPower = 0.5;
    Numbers made = of_magnitudes(node, reaches_1(node.operands[0]) ? kPower : x.least, x.most * kMostElements);
    made.low = -0.0;
    return made;
  }
  // Whether it is e^(x - the maximum of x in the row).
  bool reaches_1(ValueId power) const {
    const BodyNode* const made = makers_[index(power)];
    const BodyNode* const less = made && made->op == kExp ? makers_[index(made->operands[0])] : nullptr;
    return less && less->op == kSub && greatest_of_[index(less->operands[1])] == less->operands[0];
  }

  Numbers condition(const BodyNode& node) const {
    static const Name kNot("Not");
    if (node.op == kSpread) return in(node, 0);
    if (node.op == kAnd) return both(in(node, 0), in(node, 1));
    if (node.op == kOr) {
      const ValueId of = in(node, 0).of;
      return either(in(node, 0), in(node, 1), of < 0 ? kBool : element(of), all_);
    }
    if (node.op == kNot) return opposite(in(node, 0));
    const bool pair = node.operands.size() == 2 && element(node.operands[0]) == element(node.operands[1]);
    if (!pair || !(element(node.operands[0]) == kF32 || is_int32(element(node.operands[0]))))
      return any(node.result, kBool);
    return compared(node.op, element(node.operands[0]), node.operands[0], node.operands[1], all_);
  }

  // The result of Where.
  Numbers chosen(const BodyNode& node, ElementType type) const {
    const Numbers& condition = in(node, 0);
    if (const auto truth = truth_of(condition)) return in(node, *truth ? 1 : 2);
    Numbers made = hull(where_it_holds(in(node, 1), node.operands[1], condition),
                        where_it_does_not(in(node, 2), node.operands[2], type, condition));
    made.where = common(in(node, 1).where, in(node, 2).where);
    return made;
  }

  void keep(ValueId id, ElementType type, Numbers made) {
    if (is_int32(type)) {
      made.only.clear(), made.where.clear();
      made.low += 0.0;  // not -0
      if (!are_within(made, least_of(type), greatest_of(type))) made = of_type(type);
    } else {
      made.where = joined(made.where, {id});
      if (made.only.size() > kMostIds) made.only = {id};
      if (made.where.size() > kMostIds) made.where = {id};
      if (!(made.low <= made.high)) made.low = -kInfinity, made.high = kInfinity;
      made.least = std::clamp(std::max({made.least, made.low, -made.high}), kLeast, kMost);
      made.most = std::min({made.most, kMost, std::max(std::abs(made.low), std::abs(made.high))});
    }
    all_[index(id)] = std::move(made);
  }

  // ---- Rules ----

  using Rule = Numbers (*)(const Walk&, const BodyNode&);
  using Rules = std::unordered_map<Name, Rule>;

  static Numbers of_scalar(const BodyNode& node, ElementType type) {
    const auto bits = static_cast<uint32_t>(*node.attributes.find(kBits)->get_if<int64_t>());
    if (type == kU32) return {.low = double(bits), .high = double(bits)};
    if (type == kI32)
      return {.low = double(std::bit_cast<int32_t>(bits)), .high = double(std::bit_cast<int32_t>(bits))};
    const auto x = std::bit_cast<float>(bits);
    if (std::isnan(x)) return any(node.result, type);
    return {.low = x, .high = x};
  }

  // Floats to integers truncate and saturate, NaN is 0; integers to floats are rounded; integers that do not fit
  // another integer type wrap around.
  static Numbers converted(const Numbers& x, ElementType to) {
    if (to == kF32)
      return {.low = static_cast<float>(x.low),
              .high = static_cast<float>(x.high),
              .only = x.only,
              .where = x.where,
              .least = 1};
    Numbers made{.low = std::trunc(x.low), .high = std::trunc(x.high)};
    if (x.where.empty()) return made;
    made = {.low = std::clamp(made.low, least_of(to), greatest_of(to)),
            .high = std::clamp(made.high, least_of(to), greatest_of(to))};
    if (!x.only.empty()) made = {.low = std::min(made.low, 0.0), .high = std::max(made.high, 0.0)};
    return made;
  }

  static Numbers hull(const Numbers& a, const Numbers& b) {
    const bool zeros = a.low == 0 && b.low == 0 && (is_negative_zero(a.low) || is_negative_zero(b.low));
    return {.low = zeros ? -0.0 : std::min(a.low, b.low),
            .high = std::max(a.high, b.high),
            .only = joined(a.only, b.only),
            .least = std::min(a.least, b.least),
            .most = std::max(a.most, b.most)};
  }

  // The maximum or minimum of both. Of two zeros it may be either.
  static Numbers extreme(const Numbers& a, const Numbers& b, bool greater) {
    Numbers made{.low = greater ? std::max(a.low, b.low) : std::min(a.low, b.low),
                 .high = greater ? std::max(a.high, b.high) : std::min(a.high, b.high)};
    if (made.low == 0 && !(has_no_sign(a) && has_no_sign(b))) made.low = -0.0;
    made.only = joined(a.only, b.only), made.where = joined(a.where, b.where);
    made.least = std::min(a.least, b.least), made.most = std::max(a.most, b.most);
    return made;
  }
  template <bool kGreater>
  static Numbers extreme(const Walk& w, const BodyNode& n) {
    return extreme(w.in(n, 0), w.in(n, 1), kGreater);
  }
  // A bound that is NaN bounds nothing.
  template <bool kLow>
  static Numbers clamp(const Walk& w, const BodyNode& n) {
    const Numbers &x = w.in(n, 0), &bound = w.in(n, 1);
    Numbers made = bound.only.empty() ? extreme(x, bound, kLow) : hull(x, bound);
    made.only = x.only, made.where = x.where;
    return made;
  }

  // NaN exactly where the operand is NaN.
  static Numbers like(const Numbers& x, double low, double high) {
    return {.low = low, .high = high, .only = x.only, .where = x.where};
  }
  static Numbers with_magnitudes_of(const Numbers& x, Numbers made) {
    made.least = x.least, made.most = x.most;
    return made;
  }
  static Numbers negated(const Walk& w, const BodyNode& n) {
    const Numbers& x = w.in(n, 0);
    return with_magnitudes_of(x, like(x, x.high == 0 ? -0.0 : -x.high, -x.low));
  }
  static Numbers magnitude(const Walk& w, const BodyNode& n) {
    const Numbers& x = w.in(n, 0);
    // The magnitude of the least integer is out of range; keep() handles that.
    return with_magnitudes_of(x, like(x, may_be_zero(x) ? 0.0 : std::min(std::abs(x.low), std::abs(x.high)),
                                      std::max(std::abs(x.low), std::abs(x.high))));
  }
  template <double (*kRound)(double)>
  static Numbers rounded(const Walk& w, const BodyNode& n) {
    const Numbers& x = w.in(n, 0);
    const double low = kRound(x.low);
    return like(x, low == 0 && !has_no_sign(x) ? -0.0 : low, kRound(x.high));
  }
  static constexpr double kOff = 1e-5;  // what code may be off by
  // For non-decreasing functions, evaluated at both ends of x.
  template <double (*kFunction)(double)>
  static Numbers rising(const Walk& w, const BodyNode& n) {
    const Numbers& x = w.in(n, 0);
    return like(x, kFunction(x.low) - kOff, kFunction(x.high) + kOff);
  }
  static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
  static Numbers power(const Walk& w, const BodyNode& n) {
    const Numbers& x = w.in(n, 0);
    return like(x, -0.0, x.high <= 0 ? std::exp(x.high) + kOff : kInfinity);
  }
  static Numbers root(const Walk& w, const BodyNode& n) {
    const Numbers& x = w.in(n, 0);
    Numbers made = like(x, has_no_sign(x) ? below(std::sqrt(x.low)) : -0.0, above(std::sqrt(std::max(x.high, 0.0))));
    made.least = below(std::sqrt(x.least)), made.most = above(std::sqrt(x.most));
    if (x.low < 0) made.only = {n.result};
    return made;
  }

  // For functions with their extrema at the ends of both ranges. NaN where an operand is, and also elsewhere if
  // `makes_nan`.
  static Numbers corners(const BodyNode& n, const Numbers& a, const Numbers& b, bool makes_nan, bool unsigned_zero,
                         std::initializer_list<double> ends) {
    Numbers made{.low = below(std::min(ends)), .high = above(std::max(ends))};
    if (made.low == 0) made.low = unsigned_zero ? 0.0 : -0.0;
    made.only = makes_nan ? Ids{n.result} : joined(a.only, b.only);
    if (makes_nan && std::ranges::any_of(ends, [](double end) { return std::isnan(end); }))
      made.low = -kInfinity, made.high = kInfinity;
    made.where = joined(a.where, b.where);
    return made;
  }
  static Numbers sum(const Walk& w, const BodyNode& n) {
    const Numbers &a = w.in(n, 0), &b = w.in(n, 1);
    const bool makes_nan = (a.high == kInfinity && b.low == -kInfinity) || (a.low == -kInfinity && b.high == kInfinity);
    Numbers made = corners(n, a, b, makes_nan, has_no_sign(a) && has_no_sign(b), {a.low + b.low, a.high + b.high});
    if (a.low >= 0 && b.low >= 0) made.least = std::min(a.least, b.least);
    made.most = above(a.most + b.most);
    return made;
  }
  static Numbers difference(const Walk& w, const BodyNode& n) {
    const Numbers &a = w.in(n, 0), &b = w.in(n, 1);
    const bool makes_nan = (a.high == kInfinity && b.high == kInfinity) || (a.low == -kInfinity && b.low == -kInfinity);
    if (n.operands[0] == n.operands[1]) return {.only = makes_nan ? Ids{n.result} : a.only, .where = a.where};
    Numbers made = corners(n, a, b, makes_nan, false, {a.low - b.high, a.high - b.low});
    if (w.greatest_of_[index(n.operands[1])] == n.operands[0]) made.high = std::min(made.high, 0.0);
    made.most = above(a.most + b.most);
    return made;
  }
  static Numbers product(const Walk& w, const BodyNode& n) {
    const Numbers &a = w.in(n, 0), &b = w.in(n, 1);
    const bool makes_nan = (may_be_infinite(a) && may_be_zero(b)) || (may_be_zero(a) && may_be_infinite(b));
    Numbers made = corners(n, a, b, makes_nan, has_no_sign(a) && has_no_sign(b),
                           {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
    if (n.operands[0] == n.operands[1]) made.low = made.low > 0 ? made.low : 0.0, made.only = a.only;
    made.least = below(a.least * b.least), made.most = above(a.most * b.most);
    return made;
  }

  // The operand of an operator whose result has at least its magnitude, or exactly its magnitude; -1: none.
  ValueId magnitude_within(ValueId id, bool exactly) const {
    const BodyNode* const made = makers_[index(id)];
    if (!made) return -1;
    if (made->op == kNeg || made->op == kAbs) return made->operands[0];
    const bool cuts = made->op == kClampLow || made->op == kClampHigh || made->op == kMax || made->op == kMin;
    if (exactly || !(cuts || made->op == kMul)) return -1;
    const double most = made->op == kMul ? 1 : 0;
    for (const size_t i : {size_t{1}, size_t{0}})
      if (const Numbers& other = in(*made, i); other.only.empty() && are_within(other, -most, most))
        return made->operands[1 - i];
    return -1;
  }
  // Whether |x| is at most `sum`, a sum of numbers that are not below 0.
  bool is_within_sum(ValueId x, ValueId sum) const {
    const BodyNode* const made = makers_[index(sum)];
    if (!made || made->op != kAdd || in(*made, 0).low < 0 || in(*made, 1).low < 0) return false;
    // Longer chains of operators are not followed.
    constexpr int kSteps = 4;
    for (const ValueId part : made->operands) {
      ValueId same = part;
      for (int i = 0; i < kSteps && same >= 0; ++i, same = magnitude_within(same, true)) {
        ValueId of = x;
        for (int k = 0; k < kSteps && of >= 0; ++k, of = magnitude_within(of, false))
          if (of == same) return true;
      }
    }
    return false;
  }
  static Numbers quotient(const Walk& w, const BodyNode& n) {
    constexpr double kOffBy = 0x1p-20;  // relative error, however the quotient is computed
    const Numbers &a = w.in(n, 0), &b = w.in(n, 1);
    if (b.low <= 0 && b.high >= 0) return any(n.result, kF32);
    Numbers made = corners(n, a, b, may_be_infinite(a) && may_be_infinite(b), false,
                           {a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high});
    if (w.is_within_sum(n.operands[0], n.operands[1])) {
      made.low = std::max(made.low, a.low >= 0 ? -0.0 : -1.0);
      made.high = std::min(made.high, a.high <= 0 ? 0.0 : 1.0);
    }
    made.low -= std::abs(made.low) * kOffBy;
    made.high += std::abs(made.high) * kOffBy;
    return made;
  }

  // For bitwise operators on integers: numbers of so many bits, apart from the sign, have no other bits set.
  static double filled(const Numbers& x) {
    const double magnitude = std::max(x.high, -x.low - 1);
    return magnitude < 1 ? 0 : std::ldexp(1, std::ilogb(magnitude) + 1) - 1;
  }
  static Numbers bits_of_both(const Numbers& a, const Numbers& b) {
    const double most = std::max(filled(a), filled(b));
    return {.low = a.low < 0 || b.low < 0 ? -most - 1 : 0, .high = most};
  }
  // The value whose bits are all inverted in `id`, by BitwiseNot or by -1 minus the value; -1: none is known.
  ValueId opposite_of(ValueId id) const {
    const BodyNode* made = makers_[index(id)];
    if (made && made->op == kWrap) {
      const ElementType type = element_named(*made);
      const ValueId wrapped = made->operands[0], of = opposite_of(wrapped);
      return of >= 0 && are_within(all_[index(of)], least_of(type), greatest_of(type)) ? of : -1;
    }
    if (made && made->op == Name("BitwiseNot")) return made->operands[0];
    if (!made || made->op != kSub || !is_int32(element(id))) return -1;
    const Numbers& from = in(*made, 0);
    const double ones = element(id).is_signed_int() ? -1 : greatest_of(kU32);
    return from.low == ones && from.high == ones ? made->operands[1] : -1;
  }
  bool are_opposite(const BodyNode& n) const {
    return opposite_of(n.operands[0]) == n.operands[1] || opposite_of(n.operands[1]) == n.operands[0];
  }
  // Of such operands: the number with all bits set that their type has.
  Numbers all_ones(const BodyNode& n) const {
    const ValueId inverted = n.operands[opposite_of(n.operands[0]) == n.operands[1] ? 0 : 1];
    const BodyNode& made = *makers_[index(inverted)];
    const ElementType type = made.op == kWrap ? element_named(made) : element(inverted);
    const double ones = type.is_signed_int() ? -1 : greatest_of(type);
    return {.low = ones, .high = ones};
  }
  // Without a sign bit the result has no sign bit, and only bits that the operand has.
  static Numbers common_bits(const Walk& w, const BodyNode& n) {
    const Numbers &a = w.in(n, 0), &b = w.in(n, 1);
    if (w.are_opposite(n)) return {};
    if (a.low < 0 && b.low < 0) return bits_of_both(a, b);
    return {.low = 0, .high = std::min(a.low < 0 ? kInfinity : a.high, b.low < 0 ? kInfinity : b.high)};
  }
  static Numbers all_bits(const Walk& w, const BodyNode& n) {
    const Numbers &a = w.in(n, 0), &b = w.in(n, 1);
    if (w.are_opposite(n)) return w.all_ones(n);
    Numbers made = bits_of_both(a, b);
    if (a.low >= 0 && b.low >= 0) made.low = std::max(a.low, b.low);
    return made;
  }
  static Numbers unlike_bits(const Walk& w, const BodyNode& n) {
    return w.are_opposite(n) ? w.all_ones(n) : bits_of_both(w.in(n, 0), w.in(n, 1));
  }
  static Numbers opposite_bits(const Walk& w, const BodyNode& n) {
    const Numbers& x = w.in(n, 0);
    const double ends = w.element(n.result).is_signed_int() ? -1 : greatest_of(w.element(n.result));
    return {.low = ends - x.high, .high = ends - x.low};
  }

  static const Rules& float_rules() {
    static const Rules rules{{"Add", sum},
                             {"Sub", difference},
                             {"Mul", product},
                             {"Div", quotient},
                             {"Neg", negated},
                             {"Abs", magnitude},
                             {"Sqrt", root},
                             {"Exp", power},
                             {"Tanh", rising<std::tanh>},
                             {"Erf", rising<std::erf>},
                             {"Sigmoid", rising<sigmoid>},
                             {"Floor", rounded<std::floor>},
                             {"Ceil", rounded<std::ceil>},
                             {"Trunc", rounded<std::trunc>},
                             {"RoundEven", rounded<std::nearbyint>},
                             {"Max", extreme<true>},
                             {"Min", extreme<false>},
                             {"ClampLow", clamp<true>},
                             {"ClampHigh", clamp<false>}};
    return rules;
  }
  // Results outside the type wrap around: keep() notices that they do not fit.
  static const Rules& integer_rules() {
    static const Rules rules{{"Add", sum},
                             {"Sub", difference},
                             {"Mul", product},
                             {"Neg", negated},
                             {"Abs", magnitude},
                             {"Max", extreme<true>},
                             {"Min", extreme<false>},
                             {"ClampLow", clamp<true>},
                             {"ClampHigh", clamp<false>},
                             {"BitwiseAnd", common_bits},
                             {"BitwiseOr", all_bits},
                             {"BitwiseXor", unlike_bits},
                             {"BitwiseNot", opposite_bits},
                             {kByteTable,
                              [](const Walk&, const BodyNode& n) {
                                const auto [low, high] = range_of_table(n.attributes);
                                return Numbers{.low = double(low), .high = double(high)};
                              }},
                             {"Wrap", [](const Walk& w, const BodyNode& n) {
                                const ElementType to = element_named(n);
                                const Numbers& x = w.in(n, 0);
                                return are_within(x, least_of(to), greatest_of(to)) ? x : of_type(to);
                              }}};
    return rules;
  }

  const Body& body_;
  std::vector<Numbers> all_;
  std::vector<ValueId> greatest_of_;  // by value: the value of whose row it is the maximum; -1: none
  std::vector<const BodyNode*> makers_;
};

}  // namespace

std::vector<Numbers> numbers_of(const Body& body) { return Walk(body).take(); }

}  // namespace tenon::x86
