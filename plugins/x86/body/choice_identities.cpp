#include <algorithm>
#include <ranges>
#include <span>
#include <unordered_map>
#include <utility>

#include "x86/body/identities_internal.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

using snippet::BodyNode;
using snippet::ValueId;

// Choices by one condition between uniform values, and expressions of these alone.
struct Group {
  int choices = 0, made = 0;
  int seen = 0;  // the numbers among them that nodes outside the group read
};

class ChoiceIdentities final : public NodeIdentities {
 public:
  ChoiceIdentities(NewBody& body, std::span<const BodyNode> nodes)
      : body_(body), along_(long_dims(body.body())), by_(body.value_count(), -1), summed_(body.value_count(), 0) {
    if (along_ != 0) find_groups(nodes);
    for (const BodyNode& node : nodes)
      if (sums(node.op))
        for (const ValueId operand : node.operands) summed_[NewBody::index(operand)] = 1;
  }

  std::optional<ValueId> of(BodyNode& node) override {
    if (node.op == kSub) cancel(node);
    take_into_arms(node);
    return std::nullopt;
  }

 private:
  struct Arms {
    ValueId condition, holds, fails;
  };

  // Uniform over the elements of a row, or, where rows are short, over all rows.
  bool is_uniform(ValueId id) const { return (body_.varies(id) & along_) == 0; }
  ValueId condition_of(ValueId id) const { return NewBody::index(id) < by_.size() ? by_[NewBody::index(id)] : -1; }

  // The dims with so many elements that computing both alternatives once takes less than computing the expression for
  // each element; none: there are too few.
  static snippet::DimSet long_dims(const snippet::Body& body) {
    constexpr int64_t kElements = 64;
    if (body.rank() == 0) return 0;
    int64_t elements = 1;
    for (const snippet::BodyDim& dim : body.dims) {
      if (!dim.extent.is_constant()) return along_rows(body);
      elements *= dim.extent.constant();
    }
    if (elements < kElements) return 0;
    return body.dims.back().extent.constant() < kElements ? body.all_dims() : along_rows(body);
  }
  static snippet::DimSet along_rows(const snippet::Body& body) { return snippet::DimSet{1} << (body.rank() - 1); }

  // ---- Choices between values that are the same for all elements ----

  // The condition by which `node` is one of two uniform values; -1: it is not.
  ValueId two_valued(const BodyNode& node) const {
    if (is_uniform(node.result) || node.op == kSpread || snippet::is_reduction(node.op)) return -1;
    ValueId by = -1;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId operand = node.operands[i];
      if (is_uniform(operand)) continue;
      ValueId one = condition_of(operand);
      if (one < 0 && i == 0 && node.op == kWhere) one = operand;
      if (one < 0 || (by >= 0 && one != by)) return -1;
      by = one;
    }
    return by;
  }
  bool is_choice(const BodyNode& node) const {
    return node.op == kWhere && !is_uniform(node.operands[0]) && is_uniform(node.operands[1]) &&
           is_uniform(node.operands[2]);
  }
  void find_groups(std::span<const BodyNode> nodes) {
    std::vector<char> seen(by_.size(), 0);
    for (const BodyNode& node : nodes) {
      const ValueId by = by_[NewBody::index(node.result)] = two_valued(node);
      if (by >= 0) ++(is_choice(node) && node.operands[0] == by ? groups_[by].choices : groups_[by].made);
      for (const ValueId operand : node.operands)
        if (condition_of(operand) != by) seen[NewBody::index(operand)] = 1;
    }
    for (const snippet::BodyPort& output : body_.body().outputs) seen[NewBody::index(output.value)] = 1;
    // Conditions that have other readers are still computed as before, from the numbers.
    for (const BodyNode& node : std::views::reverse(nodes))
      if (seen[NewBody::index(node.result)] && body_.element(node.result) == kBool)
        for (const ValueId operand : node.operands) seen[NewBody::index(operand)] = 1;
    for (size_t id = 0; id < seen.size(); ++id)
      if (seen[id] && by_[id] >= 0 && body_.element(static_cast<ValueId>(id)) != kBool) ++groups_[by_[id]].seen;
  }
  // The number of choices must not grow, because some machines need three instructions for one.
  bool pays(ValueId condition) const {
    const auto found = groups_.find(condition);
    return found != groups_.end() && found->second.made > 0 && found->second.seen <= found->second.choices;
  }

  void take_into_arms(BodyNode& node) {
    if (!pays(condition_of(node.result))) return;
    BodyNode holds = node, fails = node;
    ValueId condition = -1;
    bool chooses = false;  // by the condition itself
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId operand = node.operands[i];
      if (is_uniform(operand)) continue;
      const auto arms = arms_.find(operand);
      const bool is_made = arms != arms_.end();
      if (!is_made && (i != 0 || node.op != kWhere)) return;
      const ValueId by = is_made ? arms->second.condition : operand;
      if (condition >= 0 && by != condition) return;
      condition = by;
      if (is_made)
        holds.operands[i] = arms->second.holds, fails.operands[i] = arms->second.fails;
      else
        chooses = true;
    }
    const Arms arms =
        chooses ? Arms{condition, holds.operands[1], fails.operands[2]} : Arms{condition, kept(holds), kept(fails)};
    if (!body_.vary_as({condition, arms.holds, arms.fails}, node.result)) return;
    arms_[node.result] = arms;
    if (body_.element(node.result) != kBool) NewBody::set(node, kWhere, {condition, arms.holds, arms.fails});
  }
  ValueId kept(BodyNode arm) {
    snippet::DimSet varies = 0;
    for (const ValueId operand : arm.operands) varies |= body_.varies(operand);
    const ValueId of = arm.result;
    arm.result = body_.add_value({body_.element(of), varies});
    if (body_.rounded(of)) body_.set_rounded(arm.result);
    body_.keep(arm);
    return arm.result;
  }

  // ---- Differences of which one arm is 0 ----

  static bool sums(Name op) {
    static const Name kSums[] = {kAdd, kSub, kNeg, kMul, kWrap, kConvert, "BitwiseNot"};
    return std::ranges::find(kSums, op) != std::end(kSums);
  }
  // Not where the difference may become part of a shorter sum.
  void cancel(BodyNode& node) {
    if (!body_.is_int(node.result) || NewBody::index(node.result) >= summed_.size() ||
        summed_[NewBody::index(node.result)])
      return;
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const BodyNode* const choice =
          body_.is_for_one(node.operands[i]) ? body_.maker(node.operands[i], kWhere) : nullptr;
      if (!choice) continue;
      const ValueId other = node.operands[1 - i];
      const size_t same = choice->operands[1] == other ? 1 : 2;
      if (choice->operands[same] != other) continue;
      const ValueId condition = choice->operands[0], arm = choice->operands[3 - same];
      BodyNode difference = node;
      difference.operands[i] = arm;
      difference.result = body_.add_value({body_.element(node.result), body_.varies(arm) | body_.varies(other)});
      body_.keep(difference);
      const ValueId zero = body_.scalar(body_.element(node.result), 0, node.label);
      NewBody::set(node, kWhere,
                   {condition, same == 1 ? zero : difference.result, same == 1 ? difference.result : zero});
      return;
    }
  }

  NewBody& body_;
  const snippet::DimSet along_;
  std::vector<ValueId> by_;                    // the condition by which each value is one of two; -1: none
  std::vector<char> summed_;                   // operands of sums in the given body
  std::unordered_map<ValueId, Group> groups_;  // by condition
  std::unordered_map<ValueId, Arms> arms_;
};

}  // namespace

std::unique_ptr<NodeIdentities> choice_identities(NewBody& body, std::span<const BodyNode> nodes) {
  return std::make_unique<ChoiceIdentities>(body, nodes);
}

}  // namespace tenon::x86
