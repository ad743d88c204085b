#include <algorithm>
#include <unordered_map>
#include <utility>

#include "x86/body/identities_internal.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

using snippet::BodyNode;
using snippet::ValueId;

// The orders of a and b for which a comparison holds, as in orders_of().
struct Orders {
  static constexpr unsigned kBelow = 1, kEqual = 2, kAbove = 4, kAll = 7;
  ValueId a = -1, b = -1;
  unsigned set = 0;

  static unsigned turned(unsigned set) {
    return (set & kEqual) | (set & kBelow ? kAbove : 0) | (set & kAbove ? kBelow : 0);
  }
};

class OrderIdentities final : public NodeIdentities {
 public:
  explicit OrderIdentities(NewBody& body) : body_(body) {}

  std::optional<ValueId> of(BodyNode& node) override {
    if (node.op == kWhere) return chosen(node);
    if (const auto is = absorbed(node)) return is;
    if (node.op == kAnd || node.op == kOr) join(node);
    compare_with_other(node);
    see_order(node);
    if (node.op == kAbs) {
      if (const BodyNode* const inner = body_.maker(node.operands[0], kNeg)) node.operands[0] = inner->operands[0];
    } else if (node.op == kNeg) {
      if (const BodyNode* const inner = body_.maker(node.operands[0], kNeg)) return inner->operands[0];
      const BodyNode* const product =
          body_.element(node.result) == kF32 ? body_.maker(node.operands[0], kMul) : nullptr;
      if (product && body_.is_for_one(product->result)) negate_factor(node, *product, product->result);
    } else if (node.op == kMul && body_.element(node.result) == kF32) {
      for (const size_t i : {size_t{0}, size_t{1}})
        if (const BodyNode* const inner = body_.maker(node.operands[i], kNeg);
            inner && is_number(node.operands[1 - i])) {
          node.operands[i] = inner->operands[0];
          negate_factor(node, BodyNode(node), node.result);
          break;
        }
    }
    return std::nullopt;
  }

 private:
  // Absorption: the maximum of a and of the minimum of a and b is a; the same for bits and conditions, and for repeated
  // operands. Not for floats: b may be NaN, or zeros of different signs may meet and the other zero may result.
  std::optional<ValueId> absorbed(const BodyNode& node) const {
    static const std::pair<Name, Name> kDuals[] = {
        {kMax, kMin}, {kMin, kMax}, {kAnd, kOr}, {kOr, kAnd}, {"BitwiseAnd", "BitwiseOr"}, {"BitwiseOr", "BitwiseAnd"}};
    const auto found = std::ranges::find(kDuals, node.op, &std::pair<Name, Name>::first);
    if (found == std::end(kDuals) || !(body_.is_int(node.result) || body_.element(node.result) == kBool))
      return std::nullopt;
    if (node.operands[0] == node.operands[1]) return node.operands[0];
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const BodyNode* const inner = body_.maker(node.operands[i]);
      const ValueId other = node.operands[1 - i];
      if (!inner || std::ranges::find(inner->operands, other) == inner->operands.end()) continue;
      if (inner->op == found->second) return other;
      if (inner->op == node.op) return node.operands[i];
    }
    return std::nullopt;
  }
  bool is_number(ValueId id) const { return body_.maker(id, kScalar) != nullptr; }

  // Turns `node` into `product` with the sign of its constant changed, if it has one.
  void negate_factor(BodyNode& node, const BodyNode& product, ValueId of) {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const BodyNode* const number = body_.maker(product.operands[i], kScalar);
      if (!number) continue;
      const auto bits = static_cast<uint32_t>(*number->attributes.find(kBits)->get_if<int64_t>()) ^ 0x80000000u;
      const ValueId other = product.operands[1 - i];
      if (body_.rounded(of)) body_.set_rounded(node.result);
      const ValueId factor = body_.scalar(kF32, bits, node.label);
      node.op = kMul;
      node.operands = {other, factor};
      return;
    }
  }

  std::optional<Orders> order_of(const BodyNode& node) const {
    const auto found = orders_of(node.op);
    if (!found || !(body_.element(node.operands[0]).is_float() || body_.is_int(node.operands[0]))) return std::nullopt;
    // Of what is not a number NotEqual holds as well.
    if (node.op == kNotEqual && body_.element(node.operands[0]).is_float()) return std::nullopt;
    return Orders{node.operands[0], node.operands[1], *found};
  }
  // A comparison of a with the maximum or minimum of a and y becomes one of a and y, or is always or never true.
  void compare_with_other(BodyNode& node) {
    const auto order = order_of(node);
    if (!order) return;
    for (const Orders& one : {*order, Orders{order->b, order->a, Orders::turned(order->set)}}) {
      const BodyNode* const made = body_.maker(one.b);
      if (!made || (made->op != kMax && made->op != kMin)) continue;
      const size_t i = made->operands[0] == one.a ? 0 : 1;
      if (made->operands[i] != one.a) continue;
      const ValueId other = made->operands[1 - i];
      const unsigned apart = made->op == kMax ? Orders::kBelow : Orders::kAbove,
                     set = one.set & (apart | Orders::kEqual);
      if (set == (apart | Orders::kEqual)) {
        if (body_.is_int(one.a) && body_.varies(one.a) == body_.varies(node.result))
          compare(node, kEqual, one.a, one.a);
      } else if (set == 0) {
        if (body_.varies(one.a) == body_.varies(node.result)) compare(node, kLess, one.a, one.a);
      } else if (set == apart) {
        compare(node, made->op == kMax ? kLess : kGreater, one.a, other);
      } else {
        compare(node, made->op == kMax ? kGreaterOrEqual : kLessOrEqual, one.a, other);
      }
      return;
    }
  }
  void compare(BodyNode& node, Name op, ValueId a, ValueId b) const {
    if (body_.vary_as({a, b}, node.result)) NewBody::set(node, op, {a, b});
  }
  void see_order(const BodyNode& node) {
    if (const auto order = order_of(node)) orders_[node.result] = *order;
  }
  // Two comparisons of the same two integers become one.
  void join(BodyNode& node) {
    const auto left = orders_.find(node.operands[0]), right = orders_.find(node.operands[1]);
    if (left == orders_.end() || right == orders_.end() || !body_.is_int(left->second.a)) return;
    const Orders a = left->second;
    Orders b = right->second;
    if (b.a == a.b && b.b == a.a) b = {b.b, b.a, Orders::turned(b.set)};
    if (a.a != b.a || a.b != b.b || a.a == a.b) return;
    static const Name kNames[] = {kLess, kLess, kEqual, kLessOrEqual, kGreater, kNotEqual, kGreaterOrEqual, kEqual};
    const unsigned set = node.op == kAnd ? a.set & b.set : a.set | b.set;
    const bool is_known = set == 0 || set == Orders::kAll;
    if (is_known && body_.varies(a.a) != body_.varies(node.result)) return;
    node.op = kNames[set];
    node.attributes = {};
    node.operands = {a.a, is_known ? a.a : a.b};  // never less, always equal
  }

  std::optional<ValueId> chosen(BodyNode& node) {
    for (const size_t i : {size_t{1}, size_t{2}})
      if (const BodyNode* const inner = body_.maker(node.operands[i], kWhere);
          inner && inner->operands[0] == node.operands[0])
        if (body_.vary_as({node.operands[0], inner->operands[i], node.operands[3 - i]}, node.result))
          node.operands[i] = inner->operands[i];
    const auto found = orders_.find(node.operands[0]);
    if (found == orders_.end()) return std::nullopt;
    Orders order = found->second;
    if (body_.is_int(order.a)) {
      take_extreme_as_known(node, 1, order.set);
      take_extreme_as_known(node, 2, Orders::kAll & ~order.set);
    }
    if (order.a == node.operands[2] && order.b == node.operands[1])
      order = {order.b, order.a, Orders::turned(order.set)};
    if (order.a != node.operands[1] || order.b != node.operands[2]) return std::nullopt;
    return order.set & Orders::kEqual && !equal_are_alike(order) ? std::nullopt : extreme(node, order);
  }
  // In an alternative that is chosen where the operands of the condition are in an order of `set`: replaces their
  // maximum or minimum by the operand that it then is.
  void take_extreme_as_known(BodyNode& node, size_t i, unsigned set) const {
    const Orders& order = orders_.at(node.operands[0]);
    const BodyNode* const made = body_.maker(node.operands[i]);
    if (!made || (made->op != kMax && made->op != kMin)) return;
    const bool turned = made->operands[0] == order.b && made->operands[1] == order.a;
    if (!turned && (made->operands[0] != order.a || made->operands[1] != order.b)) return;
    const bool below = (set & Orders::kAbove) == 0, above = (set & Orders::kBelow) == 0;  // or equal
    if (below == above) return;
    const ValueId known = (made->op == kMax) == above ? order.a : order.b;
    if (body_.vary_as({node.operands[0], known, node.operands[3 - i]}, node.result)) node.operands[i] = known;
  }
  // Whether a and b have the same bits where they are equal; zeros have two representations.
  bool equal_are_alike(const Orders& order) const {
    const auto is_not_zero = [&](ValueId id) {
      const BodyNode* const number = body_.maker(id, kScalar);
      return number && static_cast<uint64_t>(*number->attributes.find(kBits)->get_if<int64_t>()) << 1 != 0 &&
             body_.element(id) == kF32;
    };
    return body_.is_int(order.a) || is_not_zero(order.a) || is_not_zero(order.b);
  }
  // The choice of a where the order holds, else b.
  std::optional<ValueId> extreme(BodyNode& node, const Orders& order) {
    const unsigned apart = order.set & ~Orders::kEqual;
    if (apart == 0) return body_.element(order.a).is_int() ? std::optional(order.b) : std::nullopt;
    if (apart == (Orders::kBelow | Orders::kAbove))
      return body_.element(order.a).is_int() ? std::optional(order.a) : std::nullopt;
    const ElementType type = body_.element(order.a);
    if (type.is_int())
      node.op = apart == Orders::kBelow ? kMin : kMax;
    else
      node.op = apart == Orders::kBelow ? kClampHigh : kClampLow;
    node.attributes = {};
    node.operands = {order.b, order.a};
    return std::nullopt;
  }

  NewBody& body_;
  std::unordered_map<ValueId, Orders> orders_;
};

}  // namespace

std::unique_ptr<NodeIdentities> order_identities(NewBody& body) { return std::make_unique<OrderIdentities>(body); }

}  // namespace tenon::x86
