#include <tenon/passes/layout_problem.hpp>

#include <algorithm>
#include <limits>
#include <utility>

#include <tenon/passes/layout_problem_internal.hpp>
#include <tenon/support/str.hpp>

namespace tenon {
namespace {

using detail::cost_of;
using detail::Wanted;
using Implementation = LayoutProblem::Implementation;
using detail::kNever;

// A choice under construction, in the order of the nodes.
class State {
 public:
  explicit State(const LayoutProblem& problem) : problem_(problem), made_(problem.tensors.size()) {
    for (size_t t = 0; t < problem.tensors.size(); ++t) {
      wanted_.emplace_back(problem.costs_of(t).count(), Wanted::no);
      if (const auto given = problem.tensors[t].given) {
        const bool zero = problem.tensors[t].given_zero_pad || !problem.costs_of(t).pads[*given].there;
        made_[t] = {*given, zero};
      }
    }
  }

  // The cost that the node adds.
  double price(size_t node, const Implementation& impl, bool zero) {
    double price = impl.cost;
    const auto& tensors = problem_.nodes[node].operands;
    for (size_t i = 0; i < tensors.size(); ++i) {
      // A tensor may be several operands: what the earlier ones need counts once.
      Wanted& wanted = wanted_[tensors[i]][impl.operands[i].layout];
      const Wanted before = wanted;
      price += raise(wanted, tensors[i], impl.operands[i], zero);
      undo_.emplace_back(&wanted, before);
    }
    for (; !undo_.empty(); undo_.pop_back()) *undo_.back().first = undo_.back().second;
    return price;
  }

  void take(size_t node, const Implementation& impl, bool zero) {
    const LayoutProblem::Node& it = problem_.nodes[node];
    bool zeros = true;
    for (size_t i = 0; i < it.operands.size(); ++i) {
      raise(wanted_[it.operands[i]][impl.operands[i].layout], it.operands[i], impl.operands[i], zero);
      zeros &= is_zero(it.operands[i], impl.operands[i].layout);
    }
    for (size_t i = 0; i < it.results.size(); ++i) {
      const LayoutCosts::Pad& pad = problem_.costs_of(it.results[i]).pads[impl.results[i]];
      const bool zero_pad = impl.pad == PadEffect::zero || (impl.pad == PadEffect::same && zeros);
      made_[it.results[i]] = {impl.results[i], zero_pad || !pad.there};
    }
  }

  const std::vector<LayoutAssignment::Made>& made() const { return made_; }
  std::vector<LayoutAssignment::Step> steps() const {
    std::vector<LayoutAssignment::Step> steps;
    for (size_t t = 0; t < wanted_.size(); ++t) {
      if (problem_.tensors[t].free) continue;
      for (size_t l = 0; l < wanted_[t].size(); ++l) add_steps(t, l, steps);
    }
    return steps;
  }

 private:
  // A layout in which reorders leave another fill takes a reorder, then a scrub.
  void add_steps(size_t t, size_t layout, std::vector<LayoutAssignment::Step>& steps) const {
    const LayoutCosts& costs = problem_.costs_of(t);
    const Wanted wanted = wanted_[t][layout];
    if (wanted == Wanted::no) return;
    if (made_[t].layout != layout) {
      steps.push_back({t, made_[t].layout, layout, costs.reorder(made_[t].layout, layout)});
    }
    const LayoutCosts::Pad& pad = costs.pads[layout];
    const bool zero = made_[t].layout == layout ? made_[t].zero_pad : pad.zero_by_reorder;
    if (wanted == Wanted::zero && pad.there && !zero) steps.push_back({t, layout, layout, pad.scrub});
  }

  bool is_zero(size_t tensor, size_t layout) const {
    const LayoutCosts::Pad& pad = problem_.costs_of(tensor).pads[layout];
    if (!pad.there || problem_.tensors[tensor].free || wanted_[tensor][layout] == Wanted::zero) return true;
    return made_[tensor].layout == layout ? made_[tensor].zero_pad : pad.zero_by_reorder;
  }

  double raise(Wanted& wanted, size_t tensor, const Implementation::Port& port, bool zero) {
    const Wanted more = std::max(wanted, port.needs_zero_pad || zero ? Wanted::zero : Wanted::yes);
    const Wanted before = std::exchange(wanted, more);
    if (problem_.tensors[tensor].free || before == more) return 0;
    const LayoutCosts& costs = problem_.costs_of(tensor);
    return cost_of(costs, made_[tensor], port.layout, more) - cost_of(costs, made_[tensor], port.layout, before);
  }

  const LayoutProblem& problem_;
  std::vector<LayoutAssignment::Made> made_;
  std::vector<std::vector<Wanted>> wanted_;
  std::vector<std::pair<Wanted*, Wanted>> undo_;
};

}  // namespace

Result<LayoutAssignment> apply_choice(const LayoutProblem& problem, const LayoutChoice& choice) {
  State state(problem);
  LayoutAssignment assignment;
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    const Implementation& impl = problem.nodes[n].implementations[choice.implementations[n]];
    state.take(n, impl, choice.zero_operands[n]);
    assignment.kernel_cost += impl.cost;
  }
  assignment.choice = choice;
  assignment.made = state.made();
  assignment.steps = state.steps();
  assignment.cost = assignment.kernel_cost;
  for (const LayoutAssignment::Step& step : assignment.steps) {
    assignment.cost += step.cost;
    if (step.cost == kNever) {
      return error(Code::unsupported, "tensor '", problem.tensors[step.tensor].name, "' is made in its layout ",
                   step.from, " and wanted in its layout ", step.to, ", and there is no reorder between them");
    }
  }
  return assignment;
}

LayoutChoice greedy_choice(const LayoutProblem& problem) {
  State state(problem);
  LayoutChoice choice;
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    const auto& impls = problem.nodes[n].implementations;
    size_t best = 0;
    double least = kNever;
    for (size_t i = 0; i < impls.size(); ++i) {
      const double price = state.price(n, impls[i], false);
      if (price < least) least = price, best = i;
    }
    state.take(n, impls[best], false);
    choice.implementations.push_back(best);
    choice.zero_operands.push_back(false);
  }
  return choice;
}

}  // namespace tenon
