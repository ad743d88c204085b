#include <bit>
#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "x86/body/identities_internal.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

using snippet::BodyNode;
using snippet::ValueId;

// Cast x beside Cast (Relu x): the machine converts to i32 with several instructions, but computes a maximum with one.
class ConversionIdentities final : public NodeIdentities {
 public:
  ConversionIdentities(NewBody& body, std::span<const BodyNode> nodes) : body_(body) {
    for (const BodyNode& node : nodes)
      if (is_conversion(node)) wanted_.insert(node.operands[0]);
  }

  std::optional<ValueId> of(BodyNode& node) override {
    if (!is_conversion(node)) return std::nullopt;
    if (const auto found = made_.find(node.operands[0]); found != made_.end()) return found->second;
    const ValueId given = node.operands[0];
    if (const auto of = bounded(given); of && wanted_.contains(of->x) && body_.vary_as({of->x}, node.result)) {
      const ValueId integer = converted(of->x, node), bound = body_.scalar(kI32, of->bound, node.label);
      NewBody::set(node, of->op, {integer, bound});
    }
    made_[given] = node.result;
    return std::nullopt;
  }

 private:
  bool is_conversion(const BodyNode& node) const {
    return node.op == kConvert && body_.element(node.result) == kI32 && body_.element(node.operands[0]) == kF32;
  }
  ValueId converted(ValueId x, const BodyNode& like) {
    if (const auto found = made_.find(x); found != made_.end()) return found->second;
    BodyNode made = like;
    made.operands = {x};
    const ValueId id = made.result = body_.add_value(body_.value(like.result));
    body_.keep(std::move(made));
    return made_[x] = id;
  }
  struct Bounded {
    ValueId x;
    Name op;         // Max or Min of the converted x
    uint64_t bound;  // and this i32 constant
  };
  // NaN converts to 0, which the bound must not change.
  std::optional<Bounded> bounded(ValueId id) const {
    const BodyNode* const made = body_.maker(id);
    if (!made) return std::nullopt;
    const bool from_below = made->op == kClampLow || made->op == kMax;
    if (!from_below && made->op != kClampHigh && made->op != kMin) return std::nullopt;
    const size_t at = body_.maker(made->operands[1], kScalar) ? 1 : 0;
    const BodyNode* const scalar = body_.maker(made->operands[at], kScalar);
    if (!scalar || (at == 0 && made->op != kMax && made->op != kMin)) return std::nullopt;
    const auto bits = static_cast<uint32_t>(*scalar->attributes.find(kBits)->get_if<int64_t>());
    const float bound = std::trunc(std::bit_cast<float>(bits));
    if (!(std::abs(bound) < 0x1p31f) || (from_below ? bound > 0 : bound < 0)) return std::nullopt;
    return Bounded{made->operands[1 - at], from_below ? kMax : kMin,
                   static_cast<uint32_t>(static_cast<int32_t>(bound))};
  }

  NewBody& body_;
  std::unordered_set<ValueId> wanted_;         // values that the given body converts
  std::unordered_map<ValueId, ValueId> made_;  // conversions, by operand
};

}  // namespace

std::unique_ptr<NodeIdentities> conversion_identities(NewBody& body, std::span<const BodyNode> nodes) {
  return std::make_unique<ConversionIdentities>(body, nodes);
}

}  // namespace tenon::x86
