#include "x86/body/identities.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>

#include "x86/body/linear_sums.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

using snippet::Body;
using snippet::BodyNode;
using snippet::ValueId;

const Name kLess("Less"), kLessOrEqual("LessOrEqual"), kGreater("Greater"), kGreaterOrEqual("GreaterOrEqual"),
    kNotEqual("NotEqual"), kBitwiseNot("BitwiseNot");

ElementType wrapped_to(const BodyNode& wrap) {
  static const Name kTo("to");
  return ElementType::parse(*wrap.attributes.find(kTo)->get_if<std::string>()).value_or(ElementType{});
}

// In which of the three orders of a and b a comparison holds.
struct Orders {
  static constexpr unsigned kBelow = 1, kEqual = 2, kAbove = 4, kAll = 7;
  ValueId a = -1, b = -1;
  unsigned set = 0;

  static unsigned turned(unsigned set) {
    return (set & kEqual) | (set & kBelow ? kAbove : 0) | (set & kAbove ? kBelow : 0);
  }
};

class Identities {
 public:
  Identities(Body body, std::vector<char>& rounded)
      : body_(std::move(body)),
        rounded_(rounded),
        same_(body_.values.size()),
        readers_(body_.values.size(), 0),
        makers_(body_.values.size(), -1) {
    for (size_t i = 0; i < same_.size(); ++i) same_[i] = static_cast<ValueId>(i);
    beside_.assign(same_.size(), 0);
    for (const BodyNode& node : body_.nodes)
      for (const ValueId operand : node.operands) {
        ++readers_[index(operand)];
        beside_[index(operand)] |= std::ranges::any_of(
            node.operands, [&](ValueId other) { return other != operand && varies(other) == varies(operand); });
      }
    for (const snippet::BodyPort& output : body_.outputs) ++readers_[index(output.value)];
    for (const snippet::BodyPort& input : body_.inputs) type_of_[input.value] = input.element;
  }

  Body run() && {
    std::vector<BodyNode> nodes;
    std::swap(nodes, body_.nodes);
    for (BodyNode& node : nodes) {
      for (ValueId& operand : node.operands) operand = same_[index(operand)];
      std::optional<ValueId> same = simplified(node);
      if (!same && is_int(node.result)) same = as_sum(node);
      if (same && alike(*same, node.result)) {
        same_[index(node.result)] = *same;
        continue;
      }
      keep(std::move(node));
    }
    for (snippet::BodyPort& output : body_.outputs) output.value = same_[index(output.value)];
    return std::move(body_);
  }

 private:
  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  ElementType element(ValueId id) const { return body_.values[index(id)].element; }
  snippet::DimSet varies(ValueId id) const { return body_.values[index(id)].varies; }
  bool is_int(ValueId id) const { return element(id).is_int() && element(id).bits() >= 32; }
  bool alike(ValueId a, ValueId b) const { return element(a) == element(b) && varies(a) == varies(b); }
  bool vary_as(std::initializer_list<ValueId> operands, ValueId result) const {
    snippet::DimSet all = 0;
    for (const ValueId operand : operands) all |= varies(operand);
    return all == varies(result);
  }
  const BodyNode* maker(ValueId id) const {
    const int made = index(id) < makers_.size() ? makers_[index(id)] : -1;
    return made < 0 ? nullptr : &body_.nodes[static_cast<size_t>(made)];
  }
  const BodyNode* maker(ValueId id, Name op) const {
    const BodyNode* const made = maker(id);
    return made && made->op == op ? made : nullptr;
  }
  bool is_for_one(ValueId id) const { return index(id) < readers_.size() && readers_[index(id)] == 1; }

  void keep(BodyNode node) {
    if (makers_.size() < body_.values.size()) makers_.resize(body_.values.size(), -1);
    if (whole_.size() < body_.values.size()) whole_.resize(body_.values.size(), 0);
    whole_[index(node.result)] = makes_whole(node);
    makers_[index(node.result)] = static_cast<int>(body_.nodes.size());
    body_.nodes.push_back(std::move(node));
  }
  ValueId scalar(ElementType lane, uint64_t bits, const std::string& label) {
    BodyNode made = body_.make_scalar(lane, bits, label);
    const ValueId id = made.result;
    if (lane.is_int()) see_sum(made);
    keep(std::move(made));
    return id;
  }

  // ---- Signs and choices ----

  std::optional<ValueId> simplified(BodyNode& node) {
    if (node.op == kWhere) return chosen(node);
    if (drops_fraction(node.op) && is_whole(node.operands[0])) return node.operands[0];
    if (node.op == kAnd || node.op == kOr) join(node);
    compare_with_other(node);
    see_order(node);
    if (node.op == kAbs) {
      if (const BodyNode* const inner = maker(node.operands[0], kNeg)) node.operands[0] = inner->operands[0];
    } else if (node.op == kNeg) {
      if (const BodyNode* const inner = maker(node.operands[0], kNeg)) return inner->operands[0];
      const BodyNode* const product = element(node.result) == kF32 ? maker(node.operands[0], kMul) : nullptr;
      if (product && is_for_one(product->result)) negate_factor(node, *product, product->result);
    } else if (node.op == kMul && element(node.result) == kF32) {
      for (const size_t i : {size_t{0}, size_t{1}})
        if (const BodyNode* const inner = maker(node.operands[i], kNeg); inner && is_number(node.operands[1 - i])) {
          node.operands[i] = inner->operands[0];
          negate_factor(node, BodyNode(node), node.result);
          break;
        }
    }
    return std::nullopt;
  }
  bool is_number(ValueId id) const { return maker(id, kScalar) != nullptr; }

  // Floats without a fraction, infinities or NaN. Sums and products of such have none: what is rounded is 2^24 and
  // more.
  static bool drops_fraction(Name op) {
    static const Name kNames[] = {"Floor", "Ceil", "Trunc", "RoundEven"};
    return std::ranges::find(kNames, op) != std::end(kNames);
  }
  bool is_whole(ValueId id) const { return index(id) < whole_.size() && whole_[index(id)]; }
  bool makes_whole(const BodyNode& node) const {
    static const Name kNames[] = {kAdd, kSub, kMul, kNeg, kAbs, kMax, kMin, kClampLow, kClampHigh};
    const auto whole = [&](ValueId id) { return is_whole(id); };
    if (element(node.result) != kF32) return false;
    if (drops_fraction(node.op)) return true;
    if (node.op == kConvert) return element(node.operands[0]).is_int() || element(node.operands[0]).is_bool();
    if (node.op == kScalar) {
      const auto number = std::bit_cast<float>(static_cast<uint32_t>(*node.attributes.find(kBits)->get_if<int64_t>()));
      return std::trunc(number) == number;
    }
    if (node.op == kWhere) return whole(node.operands[1]) && whole(node.operands[2]);
    return std::ranges::find(kNames, node.op) != std::end(kNames) && std::ranges::all_of(node.operands, whole);
  }

  // `node` as `product` with the other sign of its constant, if it has one.
  void negate_factor(BodyNode& node, const BodyNode& product, ValueId of) {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const BodyNode* const number = maker(product.operands[i], kScalar);
      if (!number) continue;
      const auto bits = static_cast<uint32_t>(*number->attributes.find(kBits)->get_if<int64_t>()) ^ 0x80000000u;
      const ValueId other = product.operands[1 - i];
      if (rounded_[index(of)]) rounded_[index(node.result)] = 1;
      const ValueId factor = scalar(kF32, bits, node.label);
      node.op = kMul;
      node.operands = {other, factor};
      return;
    }
  }

  std::optional<Orders> order_of(const BodyNode& node) const {
    static const std::pair<Name, unsigned> kSets[] = {
        {kLess, Orders::kBelow},    {kLessOrEqual, Orders::kBelow | Orders::kEqual},
        {kGreater, Orders::kAbove}, {kGreaterOrEqual, Orders::kAbove | Orders::kEqual},
        {kEqual, Orders::kEqual},   {kNotEqual, Orders::kBelow | Orders::kAbove}};
    const auto found = std::ranges::find(kSets, node.op, &std::pair<Name, unsigned>::first);
    if (found == std::end(kSets) || !(element(node.operands[0]).is_float() || is_int(node.operands[0])))
      return std::nullopt;
    // Of what is not a number NotEqual holds as well.
    if (node.op == kNotEqual && element(node.operands[0]).is_float()) return std::nullopt;
    return Orders{node.operands[0], node.operands[1], found->second};
  }
  // a and the greater or the less of a and y are in an order that a and y have, or in none.
  void compare_with_other(BodyNode& node) {
    const auto order = order_of(node);
    if (!order) return;
    for (const Orders& one : {*order, Orders{order->b, order->a, Orders::turned(order->set)}}) {
      const BodyNode* const made = maker(one.b);
      if (!made || (made->op != kMax && made->op != kMin)) continue;
      const size_t i = made->operands[0] == one.a ? 0 : 1;
      if (made->operands[i] != one.a) continue;
      const ValueId other = made->operands[1 - i];
      const unsigned apart = made->op == kMax ? Orders::kBelow : Orders::kAbove,
                     set = one.set & (apart | Orders::kEqual);
      if (set == (apart | Orders::kEqual)) {
        if (is_int(one.a) && varies(one.a) == varies(node.result)) compare(node, kEqual, one.a, one.a);
      } else if (set == 0) {
        if (varies(one.a) == varies(node.result)) compare(node, kLess, one.a, one.a);
      } else if (set == apart) {
        compare(node, made->op == kMax ? kLess : kGreater, one.a, other);
      } else {
        compare(node, made->op == kMax ? kGreaterOrEqual : kLessOrEqual, one.a, other);
      }
      return;
    }
  }
  void compare(BodyNode& node, Name op, ValueId a, ValueId b) const {
    if (vary_as({a, b}, node.result)) set(node, op, {a, b});
  }
  void see_order(const BodyNode& node) {
    if (const auto order = order_of(node)) orders_[node.result] = *order;
  }
  // Comparisons of the same two integers as one.
  void join(BodyNode& node) {
    const auto left = orders_.find(node.operands[0]), right = orders_.find(node.operands[1]);
    if (left == orders_.end() || right == orders_.end() || !is_int(left->second.a)) return;
    const Orders a = left->second;
    Orders b = right->second;
    if (b.a == a.b && b.b == a.a) b = {b.b, b.a, Orders::turned(b.set)};
    if (a.a != b.a || a.b != b.b || a.a == a.b) return;
    static const Name kNames[] = {kLess, kLess, kEqual, kLessOrEqual, kGreater, kNotEqual, kGreaterOrEqual, kEqual};
    const unsigned set = node.op == kAnd ? a.set & b.set : a.set | b.set;
    const bool is_known = set == 0 || set == Orders::kAll;
    if (is_known && varies(a.a) != varies(node.result)) return;
    node.op = kNames[set];
    node.attributes = {};
    node.operands = {a.a, is_known ? a.a : a.b};  // never less, always equal
  }

  std::optional<ValueId> chosen(BodyNode& node) {
    for (const size_t i : {size_t{1}, size_t{2}})
      if (const BodyNode* const inner = maker(node.operands[i], kWhere);
          inner && inner->operands[0] == node.operands[0])
        if (vary_as({node.operands[0], inner->operands[i], node.operands[3 - i]}, node.result))
          node.operands[i] = inner->operands[i];
    const auto found = orders_.find(node.operands[0]);
    if (found == orders_.end()) return std::nullopt;
    Orders order = found->second;
    if (order.a == node.operands[2] && order.b == node.operands[1])
      order = {order.b, order.a, Orders::turned(order.set)};
    if (order.a != node.operands[1] || order.b != node.operands[2]) return std::nullopt;
    return order.set & Orders::kEqual && !equal_are_alike(order) ? std::nullopt : extreme(node, order);
  }
  // Are a and b the same bits where they are equal? Of zeros there are two.
  bool equal_are_alike(const Orders& order) const {
    const auto is_not_zero = [&](ValueId id) {
      const BodyNode* const number = maker(id, kScalar);
      return number && static_cast<uint64_t>(*number->attributes.find(kBits)->get_if<int64_t>()) << 1 != 0 &&
             element(id) == kF32;
    };
    return is_int(order.a) || is_not_zero(order.a) || is_not_zero(order.b);
  }
  // a where the order holds, else b.
  std::optional<ValueId> extreme(BodyNode& node, const Orders& order) {
    const unsigned apart = order.set & ~Orders::kEqual;
    if (apart == 0) return element(order.a).is_int() ? std::optional(order.b) : std::nullopt;
    if (apart == (Orders::kBelow | Orders::kAbove))
      return element(order.a).is_int() ? std::optional(order.a) : std::nullopt;
    const ElementType type = element(order.a);
    if (type.is_int())
      node.op = apart == Orders::kBelow ? kMin : kMax;
    else
      node.op = apart == Orders::kBelow ? kClampHigh : kClampLow;
    node.attributes = {};
    node.operands = {order.b, order.a};
    return std::nullopt;
  }

  // ---- Integers as sums ----

  struct Sums {
    LinearSum exact, low;  // of all bits; of those that Wraps leave, which it looks through
  };
  int lane_bits(ValueId id) const { return element(id).bits(); }
  Sums own(ValueId id) const { return {LinearSum::of(id, lane_bits(id)), LinearSum::of(id, lane_bits(id))}; }
  const Sums& sums_of(ValueId id) {
    if (sums_.size() < body_.values.size()) sums_.resize(body_.values.size());
    std::optional<Sums>& found = sums_[index(id)];
    return found ? *found : found.emplace(own(id));
  }
  bool renames(const BodyNode& node) const {
    return node.op == kConvert && is_int(node.operands[0]) && lane_bits(node.operands[0]) == lane_bits(node.result);
  }
  std::optional<LinearSum> sum(const BodyNode& node, LinearSum Sums::*which) {
    const int bits = lane_bits(node.result);
    const auto in = [&](size_t i) -> LinearSum { return sums_of(node.operands[i]).*which; };
    if (node.op == kScalar)
      return LinearSum{.constant = static_cast<uint64_t>(*node.attributes.find(kBits)->get_if<int64_t>())}.of_bits(
          bits);
    if (std::ranges::any_of(node.operands, [&](ValueId id) { return !is_int(id) || lane_bits(id) != bits; }))
      return std::nullopt;
    if (node.op == kAdd) return sum_of(in(0), in(1));
    if (node.op == kSub) return sum_of(in(0), in(1).times(~uint64_t{0}));
    if (node.op == kNeg) return in(0).times(~uint64_t{0});
    if (node.op == kBitwiseNot)
      return sum_of(in(0).times(~uint64_t{0}), LinearSum{.constant = ~uint64_t{0}}.of_bits(bits));
    if (renames(node)) return in(0);
    if (node.op != kMul) return std::nullopt;
    for (const size_t i : {size_t{0}, size_t{1}})
      if (const LinearSum factor = sums_of(node.operands[i]).exact; factor.terms.empty())
        return in(1 - i).times(factor.constant);
    return std::nullopt;
  }
  void see_sum(const BodyNode& node) {
    Sums made = own(node.result);
    if (node.op == kWrap) {
      made.low = sums_of(node.operands[0]).low.of_bits(wrapped_to(node).bits());
    } else {
      if (auto exact = sum(node, &Sums::exact)) made.exact = *std::move(exact);
      if (auto low = sum(node, &Sums::low)) made.low = *std::move(low);
    }
    if (made.exact.terms.size() > LinearSum::kMostTerms) made.exact = own(node.result).exact;
    if (made.low.terms.size() > LinearSum::kMostTerms) made.low = made.exact;
    sums_of(node.result);
    sums_[index(node.result)] = std::move(made);
  }

  // Gives the value that it is, or leaves `node` as one of fewer operators.
  std::optional<ValueId> as_sum(BodyNode& node) {
    if (node.op == kWrap) return as_wrapped_sum(node);
    see_sum(node);
    if (!sums(node.op)) return std::nullopt;
    const LinearSum exact = sums_of(node.result).exact;
    if (exact == own(node.result).exact) return std::nullopt;
    if (exact.terms.empty()) return write_number(node, exact.constant), std::nullopt;
    if (exact.terms.size() == 1 && exact.terms[0].second == 1 && exact.constant == 0) {
      const ValueId x = exact.terms[0].first;
      return alike(x, node.result) ? std::optional(x) : std::nullopt;
    }
    const auto [place, is_new] = by_sum_.try_emplace({exact, {}, element(node.result)}, node.result);
    if (!is_new && alike(place->second, node.result)) return place->second;
    if (std::ranges::any_of(node.operands, [&](ValueId id) { return is_sum(id) && is_for_one(id); }))
      write(node, exact, &Sums::exact);
    remember(node.result, exact);
    return std::nullopt;
  }
  std::optional<ValueId> as_wrapped_sum(BodyNode& node) {
    see_sum(node);
    const ElementType type = wrapped_to(node);
    const ValueId x = node.operands[0];
    const LinearSum low = sums_of(node.result).low;
    if (low.bits != type.bits()) return std::nullopt;  // of fewer bits
    if (low.terms.size() == 1 && low.terms[0].second == 1 && low.constant == 0) {
      const ValueId of = low.terms[0].first;
      if (const auto known = type_of_.find(of);
          known != type_of_.end() && known->second == type && alike(of, node.result))
        return of;
    }
    const auto [place, is_new] = by_sum_.try_emplace({low, type, element(node.result)}, node.result);
    if (!is_new && alike(place->second, node.result)) return place->second;
    type_of_[node.result] = type;
    if (low.terms.empty()) {
      write_number(node, type.is_signed_int() ? with_sign(low.constant, low.bits) : low.constant);
      return std::nullopt;
    }
    const BodyNode* const sum = maker(x);
    const auto goes = [&](ValueId id) { return is_sum(id) && is_for_one(id); };
    if (sum && is_for_one(x) && is_sum(x) && std::ranges::any_of(sum->operands, goes)) {
      BodyNode made = *sum;
      if (write(made, low, &Sums::low)) {
        made.result = body_.add_value(body_.values[index(x)]);
        node.operands[0] = made.result;
        see_sum(made);
        keep(std::move(made));
      }
    }
    remember(node.result, low);
    return std::nullopt;
  }
  // Is it made by one of the operators of sums, or is it a Wrap of such?
  bool is_sum(ValueId id) const {
    const BodyNode* const made = maker_of_sum(id);
    return made && sums(made->op);
  }
  const BodyNode* maker_of_sum(ValueId id) const {
    const BodyNode* made = maker(id);
    while (made && (made->op == kWrap || renames(*made))) made = maker(made->operands[0]);
    return made;
  }
  static bool sums(Name op) {
    static const Name kSums[] = {kAdd, kSub, kNeg, kMul, kBitwiseNot};
    return std::ranges::find(kSums, op) != std::end(kSums);
  }

  // Values that are sums, by what they are sums of.
  void remember(ValueId id, const LinearSum& sum) {
    for (const auto& term : sum.terms) {
      std::vector<ValueId>& found = with_term_[term.first];
      found.push_back(id);
      if (found.size() > kMostCandidates) found.erase(found.begin());
    }
  }

  // `node` as one operator, that makes `sum` of values that are there, or of one and a constant.
  bool write(BodyNode& node, const LinearSum& sum, LinearSum Sums::*which) {
    if (sum.terms.size() == 1 && write_one(node, sum.terms[0].first, sum.terms[0].second, sum)) return true;
    if (sum.terms.size() == 2 && sum.constant == 0 &&
        write_two(node, sum.terms[0].first, sum.terms[0].second, sum.terms[1].first, sum.terms[1].second, sum.bits))
      return true;
    const std::vector<ValueId> candidates = with_term_[sum.terms[0].first];
    for (auto other = candidates.rbegin(); other != candidates.rend(); ++other) {
      const LinearSum rest = sum_of(sum, (sums_of(*other).*which).times(~uint64_t{0}));
      if (rest.bits != sum.bits || *other == node.result) continue;
      if (rest.terms.size() == 1 && rest.constant == 0 &&
          write_two(node, *other, 1, rest.terms[0].first, rest.terms[0].second, sum.bits))
        return true;
    }
    return false;
  }
  static bool is_less_1(uint64_t factor, int bits) {
    return factor == LinearSum{.constant = ~uint64_t{0}}.of_bits(bits).constant;
  }
  // The number of so many bits, as far from 0 as need be.
  static uint64_t with_sign(uint64_t number, int bits) {
    return static_cast<uint64_t>(static_cast<int64_t>(number << (64 - bits)) >> (64 - bits));
  }
  bool write_one(BodyNode& node, ValueId x, uint64_t factor, const LinearSum& sum) {
    if (!vary_as({x}, node.result) || !alike(x, node.result)) return false;
    const auto number = [&](uint64_t of) { return lane_of(node, with_sign(of, sum.bits)); };
    if (factor == 1 && sum.constant != 0) return set(node, kAdd, {x, number(sum.constant)});
    if (is_less_1(factor, sum.bits)) {
      if (sum.constant == 0 && element(x).is_signed_int()) return set(node, kNeg, {x});
      return set(node, kSub, {number(sum.constant), x});
    }
    return sum.constant == 0 && multiplies(node) && set(node, kMul, {x, number(factor)});
  }
  // Is there a product already?
  bool multiplies(const BodyNode& node) const {
    return node.op == kMul || std::ranges::any_of(node.operands, [&](ValueId id) {
             const BodyNode* const made = maker_of_sum(id);
             return made && made->op == kMul;
           });
  }
  bool write_two(BodyNode& node, ValueId a, uint64_t of_a, ValueId b, uint64_t of_b, int bits) {
    if (!vary_as({a, b}, node.result) || element(a) != element(node.result) || element(b) != element(node.result))
      return false;
    if (of_a == 1 && of_b == 1) return set(node, kAdd, {a, b});
    if (of_a == 1 && is_less_1(of_b, bits)) return set(node, kSub, {a, b});
    return is_less_1(of_a, bits) && of_b == 1 && set(node, kSub, {b, a});
  }
  // What comes to one number, as a sum of which numbers_of() tells so: for who reads it beside what varies as it does.
  void write_number(BodyNode& node, uint64_t number) {
    if (index(node.result) >= beside_.size() || !beside_[index(node.result)]) return;
    const auto x = std::ranges::find_if(node.operands, [&](ValueId id) { return alike(id, node.result); });
    if (x == node.operands.end()) return;
    BodyNode nothing{.op = kSub, .attributes = {}, .operands = {*x, *x}, .label = node.label};
    nothing.result = body_.add_value(body_.values[index(node.result)]);
    const ValueId zero = nothing.result;
    keep(std::move(nothing));
    set(node, kAdd, {zero, lane_of(node, number)});
  }
  // As a Scalar.
  ValueId lane_of(const BodyNode& like, uint64_t number) {
    const ElementType lane = element(like.result);
    return scalar(lane, lane.bits() == 32 ? uint64_t{static_cast<uint32_t>(number)} : number, like.label);
  }
  static bool set(BodyNode& node, Name op, std::vector<ValueId> operands) {
    node.op = op;
    node.operands = std::move(operands);
    node.attributes = {};
    return true;
  }

  static constexpr size_t kMostCandidates = 4;

  struct Numbered {
    LinearSum sum;
    ElementType wrapped, lane;
    auto operator<=>(const Numbered&) const = default;
  };

  Body body_;
  std::vector<char>& rounded_;
  std::vector<ValueId> same_;
  std::vector<int> readers_;
  std::vector<char> beside_;  // does a node read it beside another value that varies as it does?
  std::vector<int> makers_;   // place of the node that makes each value; -1: it is an input, or not yet made
  std::vector<char> whole_;
  std::unordered_map<ValueId, Orders> orders_;
  std::unordered_map<ValueId, ElementType> type_of_;  // narrow integers, as inputs and Wraps have them
  std::vector<std::optional<Sums>> sums_;
  std::map<Numbered, ValueId> by_sum_;
  std::unordered_map<ValueId, std::vector<ValueId>> with_term_;
};

}  // namespace

Body with_identities(Body body, std::vector<char>& rounded) { return Identities(std::move(body), rounded).run(); }

}  // namespace tenon::x86
