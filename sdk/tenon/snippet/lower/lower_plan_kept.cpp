// Exponentials that a sweep reads one block after two merged ones: they are kept relative to the maximum of x up to
// their group, so none is recomputed.
//
//   kept of a group: e^(x - g)    at the end:  e^(x - g) * e^(g - maximum)
#include <algorithm>
#include <cmath>
#include <limits>

#include <tenon/snippet/lower/lower_plan_internal.hpp>

namespace tenon::snippet {
namespace {

class KeptMover {
 public:
  KeptMover(Body& body, Merging& merging, Phase& phase)
      : body_(body),
        merging_(merging),
        phase_(phase),
        last_(phase.sweeps.front()),
        label_(merging.folds[0].node.label) {}

  void run(const std::vector<MovedSum>& sums, const std::vector<int>& ports) {
    const std::vector<ValueId> old = std::exchange(last_.values, {});
    std::vector<ValueId> factors;
    for (size_t i = 0; i < ports.size(); ++i) factors.push_back(add_factor(merging_.subtracted[i], ports[i]));
    for (Access& read : last_.reads) {
      const auto sum = std::ranges::find(sums, read.value, [](const MovedSum& of) { return of.fold->operands[0]; });
      if (sum == sums.end()) continue;
      const auto by = std::ranges::find(merging_.subtracted, sum->by, &Merging::Subtracted::whole);
      move(read, factors[static_cast<size_t>(by - merging_.subtracted.begin())]);
    }
    for (const ValueId id : old) use_moved(id);
    for (Access& store : last_.stores) store.value = now(store.value);
  }

 private:
  BodyValue of(ValueId id) const { return body_.values[static_cast<size_t>(id)]; }
  ValueId node(Name op, std::vector<ValueId> operands, BodyValue like, Attributes attributes = {}) {
    return body_.append(
        {.op = op, .attributes = std::move(attributes), .operands = std::move(operands), .label = label_}, like,
        body_.nodes);
  }
  ValueId in_last(ValueId id) {
    last_.values.push_back(id);
    return id;
  }
  // In the loop of the value with which it is used: sweeps compute nothing before their loops.
  ValueId scalar(BodyValue like, double number) {
    const auto bits = static_cast<int64_t>(lane_bits(like.element, number));
    return in_last(node("Scalar", {}, like, {{"bits", bits}}));
  }
  ValueId now(ValueId id) const {
    const auto found = std::ranges::find(moved_, id, &std::pair<ValueId, ValueId>::first);
    return found == moved_.end() ? id : found->second;
  }

  // e^(what the group is relative to - what all are relative to). Finite: a group without a maximum has kept 0.
  ValueId add_factor(const Merging::Subtracted& by, int port) {
    const BodyValue like = of(by.next);
    merging_.sweep.stores.push_back({by.next, port});
    const ValueId from = body_.add_value(like), negated = node("Neg", {by.whole}, like);
    last_.reads.push_back({from, port});
    phase_.values.push_back(negated);
    merging_.negated.push_back(negated);
    const double most =
        like.element.bits() == 64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
    const ValueId power = in_last(node("Exp", {in_last(node("Add", {from, negated}, like))}, like));
    return in_last(node("Min", {power, scalar(like, most)}, like));
  }

  // A value that vanishes relative to the maximum stays zero, whatever was kept.
  void move(Access& read, ValueId factor) {
    const BodyValue like = of(read.value);
    const ValueId kept = body_.add_value(like), zero = scalar(of(factor), 0);
    const ValueId nothing = in_last(node("Equal", {factor, zero}, {kBool, of(factor).varies}));
    const ValueId product = in_last(node("Mul", {kept, factor}, like));
    moved_.emplace_back(read.value, in_last(node("Where", {nothing, zero, product}, like)));
    read.value = kept;
  }

  void use_moved(ValueId id) {
    const BodyNode old = *std::ranges::find(body_.nodes, id, &BodyNode::result);
    std::vector<ValueId> operands;
    for (const ValueId operand : old.operands) operands.push_back(now(operand));
    if (operands == old.operands) return void(in_last(id));
    const ValueId made = in_last(node(old.op, std::move(operands), of(id), old.attributes));
    body_.nodes.back().label = old.label;
    moved_.emplace_back(id, made);
  }

  Body& body_;
  Merging& merging_;
  Phase& phase_;
  Sweep& last_;
  const std::string label_;
  std::vector<std::pair<ValueId, ValueId>> moved_;  // values of the last sweep, and their replacements
};

}  // namespace

void move_kept(Body& body, Merging& merging, Phase& phase, const std::vector<MovedSum>& sums,
               const std::vector<int>& ports) {
  KeptMover(body, merging, phase).run(sums, ports);
}

}  // namespace tenon::snippet
