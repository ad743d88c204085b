#include <algorithm>
#include <cmath>
#include <queue>

#include <tenon/passes/pbqp_internal.hpp>
#include <tenon/support/str.hpp>

namespace tenon {
namespace {

using detail::kNever;
using detail::PbqpGraph;

size_t at(int32_t i) { return static_cast<size_t>(i); }

// Sums of the same costs in different orders differ by at most this share.
constexpr double kRounding = 1e-9;
bool is_below(double a, double b) { return b == kNever ? a < b : a < b - kRounding * std::abs(b); }

struct Found {
  std::vector<int32_t> options;  // empty: nothing below the limit
  double cost = kNever;
  double lower_bound = 0;
};

class Search {
 public:
  explicit Search(int64_t effort) : effort_(effort) {}

  // The best solution with a cost below `limit`.
  Found run(PbqpGraph graph, double limit);
  // For a large component: an initial solution, improved in parts.
  Found improve(const PbqpGraph& graph, std::vector<int32_t> start, int32_t part_size);

 private:
  Found by_components(const PbqpGraph& graph, double limit);
  Found by_options(const PbqpGraph& graph, double limit);
  static std::vector<int32_t> dive(PbqpGraph graph);
  bool improve_around(const PbqpGraph& graph, int32_t seed, size_t size, std::vector<int32_t>& options);

  int64_t effort_;
};

Found Search::run(PbqpGraph graph, double limit) {
  const int64_t before = graph.effort();
  graph.reduce();
  if (graph.left() > 0) {
    graph.tighten();
    graph.reduce();
  }
  effort_ -= graph.effort() - before + static_cast<int64_t>(graph.size());
  const double bound = graph.lower_bound();
  if (!is_below(bound, limit)) return {.options = {}, .lower_bound = bound};
  if (graph.left() == 0) {
    Found found{std::vector<int32_t>(graph.size()), bound, bound};
    graph.complete(found.options);
    return found;
  }
  Found found = by_components(graph, limit);
  if (!found.options.empty()) graph.complete(found.options);
  found.lower_bound = std::max(found.lower_bound, bound);
  return found;
}

Found Search::by_components(const PbqpGraph& graph, double limit) {
  const auto parts = graph.components();
  std::vector<PbqpGraph> graphs;
  double open = 0;  // a lower bound of the parts that are not yet solved
  for (const auto& part : parts) open += graphs.emplace_back(graph.part(part, {})).lower_bound();
  Found sum{std::vector<int32_t>(graph.size()), graph.constant(), graph.constant()};
  bool all = true;
  for (size_t i = 0; i < parts.size(); ++i) {
    open -= graphs[i].lower_bound();
    const double rest = limit == kNever ? kNever : limit - sum.cost - open;
    const Found found = by_options(graphs[i], rest);
    sum.lower_bound += found.lower_bound;
    if (found.options.empty()) {
      // The other parts cannot help, but their lower bounds still count.
      sum.lower_bound += open;
      all = false;
      break;
    }
    sum.cost += found.cost;
    for (size_t n = 0; n < parts[i].size(); ++n) sum.options[at(parts[i][n])] = found.options[n];
  }
  if (!all) sum.options.clear(), sum.cost = kNever;
  return sum;
}

Found Search::by_options(const PbqpGraph& graph, double limit) {
  const int32_t node = graph.hardest();
  Found best{{}, kNever, kNever};
  for (const auto& [least, option] : graph.ranked_options(node)) {
    PbqpGraph rest = graph;
    rest.fix(node, option);
    const double bound = rest.lower_bound();
    const double upper = std::min(limit, best.cost);
    // Even with no effort left, one dive is completed.
    const bool skipped = !is_below(bound, upper) || (effort_ <= 0 && !best.options.empty());
    Found found = skipped ? Found{{}, kNever, bound} : run(std::move(rest), upper);
    best.lower_bound =
        std::min(best.lower_bound, found.options.empty() ? found.lower_bound : std::min(found.cost, found.lower_bound));
    if (found.cost < best.cost) best.options = std::move(found.options), best.cost = found.cost;
  }
  return best;
}

// A greedy dive: the choice with most neighbours takes its best option, until the reductions decide the rest.
std::vector<int32_t> Search::dive(PbqpGraph graph) {
  // Degrees only decrease while choices are fixed, except that R2 may connect two neighbours: a sufficient order.
  std::priority_queue<std::pair<int32_t, int32_t>> order;
  for (int32_t i = 0; i < static_cast<int32_t>(graph.size()); ++i) {
    if (graph.is_left(i)) order.emplace(graph.degree(i), -i);
  }
  while (!order.empty() && graph.left() > 0) {
    const auto [degree, negative] = order.top();
    order.pop();
    if (!graph.is_left(-negative)) continue;
    if (graph.degree(-negative) < degree) {
      order.emplace(graph.degree(-negative), negative);
      continue;
    }
    const auto ranked = graph.ranked_options(-negative);
    if (ranked.empty()) return {};
    graph.fix(-negative, ranked.front().second);
    graph.reduce();
  }
  std::vector<int32_t> options(graph.size());
  graph.complete(options);
  return graph.constant() < kNever ? options : std::vector<int32_t>();
}

bool Search::improve_around(const PbqpGraph& graph, int32_t seed, size_t size, std::vector<int32_t>& options) {
  const std::vector<int32_t> region = graph.around(seed, size);
  const PbqpGraph part = graph.part(region, options);
  std::vector<int32_t> now;
  for (const int32_t node : region) now.push_back(options[at(node)]);
  const double limit = part.cost(now);
  const Found found = run(part, limit);
  if (found.options.empty() || !is_below(found.cost, limit)) return false;
  for (size_t i = 0; i < region.size(); ++i) options[at(region[i])] = found.options[i];
  return true;
}

Found Search::improve(const PbqpGraph& graph, std::vector<int32_t> start, int32_t part_size) {
  std::vector<int32_t> options = dive(graph);
  if (options.empty() || (!start.empty() && graph.cost(start) < graph.cost(options))) options = std::move(start);
  if (options.empty()) return {};
  // Around each choice in turn, in steps such that parts overlap by half.
  bool improved = true;
  while (improved && effort_ > 0) {
    improved = false;
    for (int32_t seed = 0; at(seed) < graph.size() && effort_ > 0; seed += std::max(part_size / 2, 1)) {
      if (graph.is_left(seed)) improved |= improve_around(graph, seed, at(part_size), options);
    }
  }
  const double cost = graph.cost(options);
  return {std::move(options), cost, 0};
}

Result<void> check(const PbqpProblem& problem) {
  const auto good = [](const std::vector<double>& costs) {
    return std::all_of(costs.begin(), costs.end(), [](double cost) { return cost >= 0; });
  };
  for (const auto& costs : problem.choices) {
    if (costs.empty() || !good(costs)) {
      return error(
          Code::invalid_argument, "choice ", &costs - problem.choices.data(),
          costs.empty() ? " has no options" : " has an option of a negative cost, or of one that is no number");
    }
  }
  const auto count = static_cast<int32_t>(problem.choices.size());
  for (const PbqpProblem::Pair& pair : problem.pairs) {
    const bool known = pair.a >= 0 && pair.b >= 0 && pair.a < count && pair.b < count && pair.a != pair.b;
    if (!known || pair.costs.size() != problem.choices[at(pair.a)].size() * problem.choices[at(pair.b)].size() ||
        !good(pair.costs)) {
      return error(Code::invalid_argument, "the pair of choices ", pair.a, " and ", pair.b, " of ", count, " has ",
                   pair.costs.size(), " costs, or one that is negative or no number");
    }
  }
  return {};
}

}  // namespace

double PbqpProblem::cost(std::span<const int32_t> options) const {
  double sum = 0;
  for (size_t i = 0; i < choices.size(); ++i) sum += choices[i][at(options[i])];
  for (const Pair& pair : pairs) {
    sum += pair.costs[at(options[at(pair.a)]) * choices[at(pair.b)].size() + at(options[at(pair.b)])];
  }
  return sum;
}

Result<PbqpSolution> solve_pbqp(const PbqpProblem& problem, const PbqpOptions& options) {
  TENON_OK(check(problem));
  PbqpGraph graph(problem);
  graph.reduce();
  PbqpSolution solution;
  solution.left = graph.left();
  solution.options.resize(problem.choices.size());
  if (graph.left() > 0) {
    graph.tighten();
    graph.reduce();
  }
  solution.lower_bound = graph.constant();
  for (const auto& part : graph.components()) {
    const auto size = static_cast<int32_t>(part.size());
    PbqpGraph alone = graph.part(part, {});
    Search search(std::max(options.least_effort, options.effort_per_choice * size));
    std::vector<int32_t> start;
    for (const int32_t node : part) {
      if (!options.start.empty()) start.push_back(options.start[at(node)]);
    }
    const double bound = alone.lower_bound();
    Found found = size <= options.branched_choices
                      ? search.run(std::move(alone), kNever)
                      : search.improve(alone, std::move(start), options.branched_choices / 4);
    if (found.options.empty())
      return error(Code::unsupported, "every solution of the ", problem.choices.size(), " choices costs infinity");
    solution.lower_bound += std::max(bound, found.lower_bound);
    for (size_t i = 0; i < part.size(); ++i) solution.options[at(part[i])] = found.options[i];
  }
  graph.complete(solution.options);
  solution.cost = problem.cost(solution.options);
  if (!options.start.empty() && problem.cost(options.start) < solution.cost) {
    solution.options = options.start;
    solution.cost = problem.cost(solution.options);
  }
  if (solution.cost == kNever)
    return error(Code::unsupported, "every solution of the ", problem.choices.size(), " choices costs infinity");
  solution.proven = !is_below(solution.lower_bound, solution.cost);
  if (solution.proven) solution.lower_bound = solution.cost;
  return solution;
}

}  // namespace tenon
