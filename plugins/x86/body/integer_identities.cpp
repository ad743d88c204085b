#include <algorithm>
#include <unordered_map>
#include <utility>

#include <tenon/support/check.hpp>

#include "x86/body/identities_internal.hpp"
#include "x86/body/whole_set.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

using snippet::BodyNode;
using snippet::ValueId;

// Expressions of one integer, the root, and constants alone, through sums, signs, bounds and choices. A comparison of
// such an expression with a constant holds for a set of numbers of the root, and may decide other choices.
class IntegerIdentities final : public NodeIdentities {
 public:
  explicit IntegerIdentities(NewBody& body) : body_(body) {}

  std::optional<ValueId> of(BodyNode& node) override {
    if (body_.element(node.result).is_bool()) return condition(node);
    if (!body_.is_int(node.result)) return std::nullopt;
    if (node.op == kWhere)
      if (const auto is = choice(node)) return is;
    see(node);
    return std::nullopt;
  }

 private:
  struct Condition {
    ValueId root = -1;
    WholeSet holds;  // of the root
  };
  // Limits: longer chains and larger sets are not followed, because each choice is evaluated for both alternatives.
  static constexpr int kSteps = 6;
  static constexpr size_t kStretches = 8;

  std::optional<uint64_t> number(ValueId id) const {
    const BodyNode* const made = body_.maker(id, kScalar);
    return made ? std::optional(static_cast<uint64_t>(*made->attributes.find(kBits)->get_if<int64_t>())) : std::nullopt;
  }
  bool are_one(ValueId a, ValueId b) const {
    if (a == b) return true;
    const auto one = number(a);
    return one && one == number(b) && body_.element(a) == body_.element(b);
  }
  const Condition* known(ValueId condition) const {
    const auto found = conditions_.find(condition);
    return found == conditions_.end() ? nullptr : &found->second;
  }

  // ---- Values ----

  struct Origin {
    ValueId root = -1;
    int steps = 0;
  };
  Origin origin(ValueId id) const {
    const auto found = origins_.find(id);
    return found == origins_.end() ? Origin{id, 0} : found->second;
  }
  // The only operand of `node` that is not constant; none: there are several.
  static bool keeps_to_one(Name op) {
    return op == kAdd || op == kSub || op == kNeg || op == kAbs || op == kMax || op == kMin;
  }
  void see(const BodyNode& node) {
    std::optional<Origin> all;
    const auto add = [&](const Origin& one) {
      if (all && all->root != one.root) return false;
      all = {one.root, std::max(all ? all->steps : 0, one.steps + 1)};
      return true;
    };
    if (node.op == kWhere) {
      const Condition* const by = known(node.operands[0]);
      if (!by || !add({by->root, 0})) return;
      for (const size_t i : {size_t{1}, size_t{2}})
        if (!number(node.operands[i]) && !add(origin(node.operands[i]))) return;
    } else {
      if (!keeps_to_one(node.op)) return;
      for (const ValueId operand : node.operands)
        if (!number(operand) && !add(origin(operand))) return;
      // Exactly one operand may be non-constant: x + x is not followed.
      if (std::ranges::count_if(node.operands, [&](ValueId id) { return !number(id); }) != 1) return;
    }
    if (all && all->steps <= kSteps && body_.element(all->root) == body_.element(node.result))
      origins_[node.result] = *all;
  }

  WholeSet none(ValueId id) const { return WholeSet(body_.element(id), 0, false, false, false); }
  WholeSet only(ValueId id, uint64_t number, bool below, bool equal, bool above) const {
    return WholeSet(body_.element(id), number, below, equal, above);
  }
  // The numbers of its root for which value `id` is in the set (preimage).
  std::optional<WholeSet> before(ValueId id, const WholeSet& set) const {
    if (set.stretches() > kStretches) return std::nullopt;
    if (origins_.find(id) == origins_.end()) return set;
    const BodyNode& made = *body_.maker(id);
    if (made.op == kNeg) return before(made.operands[0], set.negated());
    if (made.op == kAbs) return before(made.operands[0], before_abs(id, set));
    if (made.op == kWhere) {
      const Condition& by = *known(made.operands[0]);
      const auto arm = [&](size_t i) -> std::optional<WholeSet> {
        const auto constant = number(made.operands[i]);
        if (!constant) return before(made.operands[i], set);
        return has(set, id, *constant) ? none(id).others() : none(id);
      };
      const auto holds = arm(1), fails = arm(2);
      if (!holds || !fails) return std::nullopt;
      return by.holds.common(*holds).joined(by.holds.others().common(*fails));
    }
    const size_t i = number(made.operands[1]) ? 0 : 1;
    const ValueId x = made.operands[i];
    const auto constant = number(made.operands[1 - i]);
    TENON_CHECK(constant, "%", id, " of body '", body_.body().name, "' has changed since it was seen");
    const uint64_t k = *constant;
    if (made.op == kAdd) return before(x, set.less(k));
    if (made.op == kSub) return before(x, i == 0 ? set.more(k) : set.negated().more(k));
    const bool greater = made.op == kMax;
    const WholeSet free = only(x, k, !greater, false, greater);
    const WholeSet of_x = set.common(free);
    return before(x, has(set, x, k) ? of_x.joined(free.others()) : of_x);
  }
  bool has(const WholeSet& set, ValueId of, uint64_t number) const {
    return !set.common(only(of, number, false, true, false)).is_empty();
  }
  // |least| is least, because it wraps around.
  WholeSet before_abs(ValueId id, const WholeSet& set) const {
    const WholeSet positive = only(id, 0, false, true, true);
    return set.common(positive).joined(set.negated().common(positive.others()));
  }

  // ---- Conditions ----

  std::optional<WholeSet> orders(const BodyNode& node, size_t value, uint64_t number) const {
    const auto found = orders_of(node.op);
    if (!found) return std::nullopt;
    const bool below = (*found & 1) != 0, above = (*found & 4) != 0;
    return only(node.operands[value], number, value == 0 ? below : above, (*found & 2) != 0,
                value == 0 ? above : below);
  }
  std::optional<Condition> condition_of(const BodyNode& node) const {
    static const Name kNot("Not");
    if (node.op == kNot) {
      const Condition* const of = known(node.operands[0]);
      return of ? std::optional(Condition{of->root, of->holds.others()}) : std::nullopt;
    }
    if (node.operands.size() != 2) return std::nullopt;
    if (node.op == kAnd || node.op == kOr) {
      const Condition *const a = known(node.operands[0]), *const b = known(node.operands[1]);
      if (!a || !b || a->root != b->root) return std::nullopt;
      return Condition{a->root, node.op == kAnd ? a->holds.common(b->holds) : a->holds.joined(b->holds)};
    }
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const auto constant = number(node.operands[1 - i]);
      if (!constant || number(node.operands[i]) || !body_.is_int(node.operands[i])) continue;
      const auto set = orders(node, i, *constant);
      const auto holds = set ? before(node.operands[i], *set) : std::nullopt;
      if (holds) return Condition{origin(node.operands[i]).root, *holds};
    }
    return std::nullopt;
  }
  // As a comparison of the root, where it is one; or as one of its operands.
  std::optional<ValueId> condition(BodyNode& node) {
    auto made = condition_of(node);
    if (!made || made->holds.stretches() > kStretches) return std::nullopt;
    const bool joins = node.op == kAnd || node.op == kOr;
    if (joins)
      for (const ValueId operand : node.operands)
        if (known(operand)->holds == made->holds) return operand;
    const bool is_of_root = !joins && std::ranges::find(node.operands, made->root) != node.operands.end();
    const ElementType type = body_.element(made->root);
    if (const auto as = made->holds.as_comparison();
        as && (!is_of_root || !as->number) && body_.vary_as({made->root}, node.result))
      NewBody::set(node, as->op, {made->root, as->number ? body_.scalar(type, *as->number, node.label) : made->root});
    conditions_.emplace(node.result, *std::move(made));
    return std::nullopt;
  }

  // ---- Choices ----

  // The value of `id` where its root is in the set.
  ValueId where(ValueId id, ValueId root, const WholeSet& set) const {
    for (int i = 0; i < kSteps; ++i) {
      const BodyNode* const made = body_.maker(id);
      if (!made || origin(id).root != root || id == root) return id;
      if (made->op == kWhere) {
        const Condition& by = *known(made->operands[0]);
        if (set.common(by.holds).is_empty())
          id = made->operands[2];
        else if (set.common(by.holds) == set)
          id = made->operands[1];
        else
          return id;
        continue;
      }
      if (made->op != kMax && made->op != kMin) return id;
      const size_t x = number(made->operands[1]) ? 0 : 1;
      const bool greater = made->op == kMax;
      const auto free = before(made->operands[x], only(id, *number(made->operands[1 - x]), !greater, false, greater));
      if (!free) return id;
      if (set.common(*free).is_empty())
        id = made->operands[1 - x];
      else if (set.common(*free) == set)
        id = made->operands[x];
      else
        return id;
    }
    return id;
  }
  std::optional<ValueId> choice(BodyNode& node) {
    const Condition* const by = known(node.operands[0]);
    if (!by) return std::nullopt;
    const ValueId holds = where(node.operands[1], by->root, by->holds),
                  fails = where(node.operands[2], by->root, by->holds.others());
    if (are_one(holds, fails)) {
      if (body_.varies(holds) == body_.varies(node.result)) return holds;
      NewBody::set(node, kSpread, {holds});
      return std::nullopt;
    }
    if (body_.vary_as({node.operands[0], holds, fails}, node.result))
      node.operands[1] = holds, node.operands[2] = fails;
    return std::nullopt;
  }

  NewBody& body_;
  std::unordered_map<ValueId, Origin> origins_;  // of values computed from a root
  std::unordered_map<ValueId, Condition> conditions_;
};

}  // namespace

std::unique_ptr<NodeIdentities> integer_identities(NewBody& body) { return std::make_unique<IntegerIdentities>(body); }

}  // namespace tenon::x86
