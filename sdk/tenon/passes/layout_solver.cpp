// Reduces layout assignment to PBQP. A node is a choice among its implementations. A tensor with one user is a pair of
// choices. A tensor with several users gets a choice of its own: which layouts of it are kept, and which of these with
// zero padding. Its producer pays for them, and a user can only take what is kept. A reorder that several users share
// is therefore paid once, and the problem remains one of pairs.
#include <algorithm>
#include <limits>
#include <map>

#include <tenon/passes/layout_problem.hpp>
#include <tenon/passes/layout_problem_internal.hpp>
#include <tenon/support/str.hpp>

namespace tenon {
namespace {

using detail::cost_of;
using detail::Wanted;
using Made = LayoutAssignment::Made;
using Wants = std::vector<Wanted>;  // by layout

using detail::kNever;
// Up to this many combinations, what is kept of a tensor is a single choice; beyond, one choice per layout, which is as
// exact, but harder to reduce.
constexpr size_t kMaxCombinations = 96;

int32_t narrow(size_t i) { return static_cast<int32_t>(i); }

// An implementation, with or without zero padding in its operands.
struct Option {
  size_t implementation = 0;
  bool zero_operands = false;
};

class Translation {
 public:
  explicit Translation(const LayoutProblem& problem) : problem_(problem) {}

  PbqpProblem make(const LayoutChoice& start) {
    start_ = &start;
    for (size_t n = 0; n < problem_.nodes.size(); ++n) add_node(n);
    find_ends();
    for (size_t t = 0; t < problem_.tensors.size(); ++t) {
      if (!problem_.tensors[t].free && !consumers_[t].empty()) add_tensor(t);
    }
    return std::move(pbqp_);
  }
  std::vector<int32_t> start_options() && { return std::move(start_options_); }
  LayoutChoice choice_of(std::span<const int32_t> options) const {
    LayoutChoice choice;
    for (size_t n = 0; n < problem_.nodes.size(); ++n) {
      const Option& option = options_[n][static_cast<size_t>(options[n])];
      choice.implementations.push_back(option.implementation);
      choice.zero_operands.push_back(option.zero_operands);
    }
    return choice;
  }

 private:
  struct Producer {
    int32_t node = -1;
    size_t result = 0;
  };

  void add_node(size_t n) {
    const LayoutProblem::Node& node = problem_.nodes[n];
    std::vector<Option> options;
    std::vector<double> costs;
    size_t start = 0;
    for (size_t i = 0; i < node.implementations.size(); ++i) {
      if (i == start_->implementations[n]) start = options.size();
      const double cost = node.implementations[i].cost;
      if (pads_matter(node, node.implementations[i])) options.push_back({i, true}), costs.push_back(cost);
      options.push_back({i, false}), costs.push_back(cost);
    }
    options_.push_back(std::move(options));
    pbqp_.add_choice(std::move(costs));
    // The greedy choice does not request zero padding, so it takes the second form if there are two.
    const auto& made = options_.back();
    while (made[start].zero_operands) ++start;
    start_options_.push_back(narrow(start));
  }

  // Whether the padding of the operands affects that of the results.
  bool pads_matter(const LayoutProblem::Node& node, const LayoutProblem::Implementation& impl) const {
    if (impl.pad != PadEffect::same) return false;
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (problem_.costs_of(node.results[i]).pads[impl.results[i]].there) return true;
    }
    return false;
  }

  void find_ends() {
    producers_.resize(problem_.tensors.size());
    consumers_.resize(problem_.tensors.size());
    for (size_t n = 0; n < problem_.nodes.size(); ++n) {
      const LayoutProblem::Node& node = problem_.nodes[n];
      for (size_t i = 0; i < node.results.size(); ++i) producers_[node.results[i]] = {narrow(n), i};
      for (const size_t tensor : node.operands) {
        auto& consumers = consumers_[tensor];
        if (consumers.empty() || consumers.back() != narrow(n)) consumers.push_back(narrow(n));
      }
    }
  }

  // The form in which each option of the producer makes the tensor; a single one for a given tensor.
  std::vector<Made> made_by_options(size_t tensor) const {
    const Producer& producer = producers_[tensor];
    if (producer.node < 0) {
      const size_t given = problem_.tensors[tensor].given.value_or(0);
      const bool zero = problem_.tensors[tensor].given_zero_pad || !problem_.costs_of(tensor).pads[given].there;
      return {{given, zero}};
    }
    const auto n = static_cast<size_t>(producer.node);
    std::vector<Made> made;
    for (const Option& option : options_[n]) {
      const auto& impl = problem_.nodes[n].implementations[option.implementation];
      const size_t layout = impl.results[producer.result];
      const bool zero = impl.pad == PadEffect::zero || (impl.pad == PadEffect::same && option.zero_operands);
      made.push_back({layout, zero || !problem_.costs_of(tensor).pads[layout].there});
    }
    return made;
  }

  Wants wants_of(size_t tensor, const LayoutProblem::Node& node, const Option& option) const {
    const LayoutCosts& costs = problem_.costs_of(tensor);
    Wants wants(costs.count(), Wanted::no);
    const auto& impl = node.implementations[option.implementation];
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (node.operands[i] != tensor) continue;
      const LayoutProblem::Implementation::Port& port = impl.operands[i];
      const bool zero = (port.needs_zero_pad || option.zero_operands) && costs.pads[port.layout].there;
      wants[port.layout] = std::max(wants[port.layout], zero ? Wanted::zero : Wanted::yes);
    }
    return wants;
  }
  std::vector<Wants> wants_by_options(size_t tensor, int32_t consumer) const {
    const auto n = static_cast<size_t>(consumer);
    std::vector<Wants> wants;
    for (const Option& option : options_[n]) wants.push_back(wants_of(tensor, problem_.nodes[n], option));
    return wants;
  }

  double price(size_t tensor, Made made, const Wants& wants) const {
    double sum = 0;
    for (size_t l = 0; l < wants.size(); ++l) sum += cost_of(problem_.costs_of(tensor), made, l, wants[l]);
    return sum;
  }

  // Adds what the producer pays for each of `wants`, which are the options of `choice`.
  void add_producer(size_t tensor, const std::vector<Made>& made, const std::vector<Wants>& wants, int32_t choice) {
    std::vector<double> costs;
    for (const Made& one : made) {
      for (const Wants& wanted : wants) costs.push_back(price(tensor, one, wanted));
    }
    if (producers_[tensor].node >= 0) return pbqp_.add_pair(producers_[tensor].node, choice, std::move(costs));
    auto& own = pbqp_.choices[static_cast<size_t>(choice)];
    for (size_t i = 0; i < own.size(); ++i) own[i] += costs[i];
  }

  void add_tensor(size_t tensor) {
    const std::vector<Made> made = made_by_options(tensor);
    std::vector<std::vector<Wants>> wants;
    for (const int32_t consumer : consumers_[tensor]) wants.push_back(wants_by_options(tensor, consumer));
    if (wants.size() == 1) return add_producer(tensor, made, wants[0], consumers_[tensor][0]);
    // The levels that users may need, by layout.
    std::vector<std::vector<Wanted>> levels(problem_.costs_of(tensor).count(), {Wanted::no});
    size_t combinations = 1;
    for (size_t l = 0; l < levels.size(); ++l) {
      for (const Wanted level : {Wanted::yes, Wanted::zero}) {
        const auto asks = [&](const Wants& wanted) { return wanted[l] == level; };
        const auto any = [&](const auto& options) { return std::any_of(options.begin(), options.end(), asks); };
        if (std::any_of(wants.begin(), wants.end(), any)) levels[l].push_back(level);
      }
      combinations = std::min(combinations * levels[l].size(), kMaxCombinations + 1);
    }
    if (combinations <= kMaxCombinations) return add_kept(tensor, made, wants, levels);
    for (size_t l = 0; l < levels.size(); ++l) {
      std::vector<std::vector<Wanted>> only(levels.size(), {Wanted::no});
      only[l] = levels[l];
      if (levels[l].size() > 1) add_kept(tensor, made, wants, only);
    }
  }

  // Adds a choice of what is kept: every combination of these levels. Layouts with a single level are not part of it.
  void add_kept(size_t tensor, const std::vector<Made>& made, const std::vector<std::vector<Wants>>& wants,
                const std::vector<std::vector<Wanted>>& levels) {
    std::vector<Wants> kept = {Wants(levels.size(), Wanted::no)};
    for (size_t l = 0; l < levels.size(); ++l) {
      const size_t before = kept.size();
      for (size_t level = 1; level < levels[l].size(); ++level) {
        for (size_t i = 0; i < before; ++i) {
          kept.push_back(kept[i]);
          kept.back()[l] = levels[l][level];
        }
      }
    }
    const auto covers = [&](const Wants& has, const Wants& wanted) {
      for (size_t l = 0; l < levels.size(); ++l) {
        if (levels[l].size() > 1 && has[l] < wanted[l]) return false;
      }
      return true;
    };
    const int32_t choice = pbqp_.add_choice(std::vector<double>(kept.size()));
    add_producer(tensor, made, kept, choice);
    Wants at_start(levels.size(), Wanted::no);
    for (size_t c = 0; c < wants.size(); ++c) {
      const int32_t consumer = consumers_[tensor][c];
      std::vector<double> costs;
      for (const Wants& wanted : wants[c]) {
        for (const Wants& has : kept) costs.push_back(covers(has, wanted) ? 0 : kNever);
      }
      pbqp_.add_pair(consumer, choice, std::move(costs));
      const Wants& wanted = wants[c][static_cast<size_t>(start_options_[static_cast<size_t>(consumer)])];
      for (size_t l = 0; l < levels.size(); ++l) at_start[l] = std::max(at_start[l], wanted[l]);
    }
    const auto start = std::find_if(kept.begin(), kept.end(), [&](const Wants& has) { return covers(has, at_start); });
    start_options_.push_back(static_cast<int32_t>(start - kept.begin()));
  }

  const LayoutProblem& problem_;
  const LayoutChoice* start_ = nullptr;
  PbqpProblem pbqp_;
  std::vector<std::vector<Option>> options_;  // by node
  std::vector<Producer> producers_;           // by tensor
  std::vector<std::vector<int32_t>> consumers_;
  std::vector<int32_t> start_options_;
};

Result<void> check_port(const LayoutProblem& problem, const LayoutProblem::Node& node, size_t tensor, size_t layout) {
  const size_t count = problem.costs_of(tensor).count();
  if (layout < count) return {};
  return error(Code::invalid_argument, "node '", node.name, "' has layout ", layout, " of tensor '",
               problem.tensors[tensor].name, "', which has ", count);
}

Result<void> check(const LayoutProblem& problem, const LayoutProblem::Node& node, std::vector<bool>& known) {
  if (node.implementations.empty())
    return error(Code::invalid_argument, "node '", node.name, "' has no implementation");
  for (const size_t tensor : node.operands) {
    if (tensor < known.size() && known[tensor]) continue;
    return error(Code::invalid_argument, "node '", node.name, "' reads tensor ", tensor,
                 ", which no node before it makes");
  }
  for (const size_t tensor : node.results) {
    if (tensor >= known.size() || known[tensor]) {
      return error(Code::invalid_argument, "node '", node.name, "' makes tensor ", tensor, ", which ",
                   tensor < known.size() ? "is made already" : "is not there");
    }
    known[tensor] = true;
  }
  for (const LayoutProblem::Implementation& impl : node.implementations) {
    if (impl.operands.size() != node.operands.size() || impl.results.size() != node.results.size()) {
      return error(Code::invalid_argument, "an implementation of node '", node.name, "' has ", impl.operands.size(),
                   " operands and ", impl.results.size(), " results, the node ", node.operands.size(), " and ",
                   node.results.size());
    }
    for (size_t i = 0; i < node.operands.size(); ++i) {
      TENON_OK(check_port(problem, node, node.operands[i], impl.operands[i].layout));
    }
    for (size_t i = 0; i < node.results.size(); ++i) {
      TENON_OK(check_port(problem, node, node.results[i], impl.results[i]));
    }
  }
  return {};
}

Result<void> check(const LayoutProblem& problem) {
  std::vector<bool> known;
  for (const LayoutProblem::Tensor& tensor : problem.tensors) {
    if (tensor.costs >= problem.costs.size()) {
      return error(Code::invalid_argument, "tensor '", tensor.name, "' has costs ", tensor.costs, ", there are ",
                   problem.costs.size());
    }
    const LayoutCosts& costs = problem.costs[tensor.costs];
    if (costs.reorders.size() != costs.count() * costs.count() || tensor.given.value_or(0) >= costs.count()) {
      return error(Code::invalid_argument, "tensor '", tensor.name, "' has ", costs.count(), " layouts, ",
                   costs.reorders.size(), " costs of reorders, and comes in layout ", tensor.given.value_or(0));
    }
    known.push_back(tensor.given || tensor.free);
  }
  for (const LayoutProblem::Node& node : problem.nodes) TENON_OK(check(problem, node, known));
  return {};
}

}  // namespace

Result<LayoutAssignment> solve_layouts(const LayoutProblem& problem, PbqpOptions options) {
  TENON_OK(check(problem));
  const LayoutChoice greedy = greedy_choice(problem);
  Translation translation(problem);
  const PbqpProblem pbqp = translation.make(greedy);
  options.start = std::move(translation).start_options();
  TENON_TRY(solution, solve_pbqp(pbqp, options), "assigning layouts to ", problem.nodes.size(), " nodes");
  TENON_TRY(assignment, apply_choice(problem, translation.choice_of(solution.options)));
  assignment.lower_bound = solution.proven ? assignment.cost : solution.lower_bound;
  assignment.proven = solution.proven;
  return assignment;
}

}  // namespace tenon
