#include <limits>
#include <utility>

#include "x86/body/identities_internal.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

using snippet::BodyNode;
using snippet::ValueId;

constexpr uint32_t kSignBit = 0x80000000u, kInfinityBits = 0x7F800000u;

// The maximum of x + 3 is the maximum of x, plus 3: a function that is monotone in x, rounded or not, has its maximum
// at the maximum or the minimum of x. This holds for sums and products of f32 with finite constants. None of these
// makes NaN from a number, so NaN results as before.
class FoldIdentities final : public NodeIdentities {
 public:
  explicit FoldIdentities(NewBody& body) : body_(body) {}

  std::optional<ValueId> of(BodyNode& node) override {
    if ((node.op != kReduceMax && node.op != kReduceMin) || body_.element(node.result) != kF32 ||
        !begins_at_infinity(node))
      return std::nullopt;
    std::vector<Step> steps;  // from the last to the first
    bool turned = false;
    BodyNode fold = node;
    while (const auto step = step_of(fold.operands[0])) {
      turned ^= step->falls;
      fold.operands[0] = step->made.operands[step->i];
      steps.push_back(*step);
    }
    if (steps.empty()) return std::nullopt;
    const snippet::BodyValue like = body_.value(node.result);
    if (turned) turn(fold);
    fold.result = body_.add_value(like);
    ValueId so_far = fold.result;
    body_.keep(std::move(fold));
    for (size_t i = steps.size(); i-- > 0;) {
      const Step& step = steps[i];
      std::vector<ValueId> operands = step.made.operands;
      operands[step.i] = so_far;
      so_far = i == 0 ? node.result : body_.add_value(like);
      if (step.made.op == kMul) body_.set_rounded(so_far);
      BodyNode made = step.made;
      made.result = so_far;
      made.operands = std::move(operands);
      if (i == 0)
        node = std::move(made);
      else
        body_.keep(std::move(made));
    }
    return std::nullopt;
  }

 private:
  struct Step {
    BodyNode made;
    size_t i = 0;  // the operand of `made` that is x
    bool falls = false;
  };

  static uint32_t bits_of(const BodyNode& node, Name name) {
    return static_cast<uint32_t>(*node.attributes.find(name)->get_if<int64_t>());
  }
  static bool begins_at_infinity(const BodyNode& fold) {
    static const Name kInitial("initial");
    return bits_of(fold, kInitial) == (fold.op == kReduceMax ? kSignBit | kInfinityBits : kInfinityBits);
  }
  static void turn(BodyNode& fold) {
    static const Name kInitial("initial");
    fold.op = fold.op == kReduceMax ? kReduceMin : kReduceMax;
    fold.attributes.set(kInitial, static_cast<int64_t>(bits_of(fold, kInitial) ^ kSignBit));
  }
  std::optional<Step> step_of(ValueId id) const {
    const BodyNode* const made = body_.is_for_one(id) ? body_.maker(id) : nullptr;
    if (!made || body_.element(id) != kF32) return std::nullopt;
    if (made->op == kNeg) return Step{*made, 0, true};
    if (made->op != kAdd && made->op != kSub && made->op != kMul) return std::nullopt;
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const BodyNode* const number = body_.maker(made->operands[1 - i], kScalar);
      if (!number || body_.element(made->operands[i]) != kF32) continue;
      const uint32_t bits = bits_of(*number, kBits), magnitude = bits & ~kSignBit;
      if (magnitude >= kInfinityBits || (made->op == kMul && magnitude == 0)) continue;
      return Step{*made, i, made->op == kMul ? (bits & kSignBit) != 0 : made->op == kSub && i == 1};
    }
    return std::nullopt;
  }

  NewBody& body_;
};

}  // namespace

std::unique_ptr<NodeIdentities> fold_identities(NewBody& body) { return std::make_unique<FoldIdentities>(body); }

}  // namespace tenon::x86
