#include <algorithm>
#include <numeric>

#include <tenon/passes/pbqp_internal.hpp>

namespace tenon::detail {

PbqpGraph::PbqpGraph(const PbqpProblem& problem) : left_(static_cast<int32_t>(problem.choices.size())) {
  nodes_.reserve(problem.choices.size());
  for (const auto& costs : problem.choices) nodes_.push_back({.cost = costs, .edges = {}});
  edges_.reserve(problem.pairs.size());
  for (const PbqpProblem::Pair& pair : problem.pairs) add_edge(pair.a, pair.b, pair.costs);
  work_.resize(nodes_.size());
  std::iota(work_.rbegin(), work_.rend(), 0);
}

double PbqpGraph::lower_bound() const {
  double bound = constant_;
  for (const Node& node : nodes_) {
    if (node.left) bound += *std::min_element(node.cost.begin(), node.cost.end());
  }
  return bound;
}

std::vector<int32_t> PbqpGraph::live_edges(int32_t node) const {
  std::vector<int32_t> live;
  for (const int32_t edge : nodes_[at(node)].edges) {
    if (edges_[at(edge)].a >= 0) live.push_back(edge);
  }
  return live;
}

int32_t PbqpGraph::find_edge(int32_t a, int32_t b) const {
  const auto& fewer = nodes_[at(nodes_[at(a)].edges.size() < nodes_[at(b)].edges.size() ? a : b)].edges;
  for (const int32_t i : fewer) {
    const Edge& edge = edges_[at(i)];
    if ((edge.a == a && edge.b == b) || (edge.a == b && edge.b == a)) return i;
  }
  return -1;
}

void PbqpGraph::add_edge(int32_t a, int32_t b, std::vector<double> cost) {
  if (const int32_t there = find_edge(a, b); there >= 0) {
    const auto sum = view(there, a);
    for (size_t i = 0; i < options_of(a); ++i) {
      for (size_t j = 0; j < sum.columns; ++j) sum(i, j) += cost[i * sum.columns + j];
    }
    return;
  }
  const auto added = static_cast<int32_t>(edges_.size());
  edges_.push_back({a, b, std::move(cost)});
  for (const int32_t node : {a, b}) {
    nodes_[at(node)].edges.push_back(added);
    ++nodes_[at(node)].degree;
  }
}

void PbqpGraph::touch(int32_t node) {
  if (nodes_[at(node)].left) work_.push_back(node);
}

// Lists of edges are compacted only occasionally, because a hub may have as many edges as there are choices.
void PbqpGraph::remove_edge(int32_t edge) {
  Edge& gone = edges_[at(edge)];
  const int32_t ends[] = {gone.a, gone.b};
  gone = {};
  for (const int32_t end : ends) {
    Node& node = nodes_[at(end)];
    --node.degree;
    if (node.edges.size() > 2 * at(node.degree) + 8) {
      std::erase_if(node.edges, [&](int32_t i) { return edges_[at(i)].a < 0; });
    }
    touch(end);
  }
}

void PbqpGraph::release(int32_t node) {
  nodes_[at(node)].left = false;
  --left_;
  for (const int32_t edge : live_edges(node)) remove_edge(edge);
}

std::vector<double> PbqpGraph::rows_of(int32_t edge, int32_t node) const {
  const auto from = view(edge, node);
  std::vector<double> rows;
  rows.reserve(options_of(node) * from.columns);
  for (size_t i = 0; i < options_of(node); ++i) {
    for (size_t j = 0; j < from.columns; ++j) rows.push_back(from(i, j));
  }
  return rows;
}

void PbqpGraph::record(int32_t node, std::span<const int32_t> edges) {
  Record made{node, nodes_[at(node)].cost, {}};
  for (const int32_t edge : edges) made.sides.push_back({view(edge, node).other, rows_of(edge, node)});
  records_.push_back(std::move(made));
}

void PbqpGraph::fix(int32_t node, int32_t option) {
  constant_ += nodes_[at(node)].cost[at(option)];
  for (const int32_t edge : live_edges(node)) {
    const auto pair = view(edge, node);
    auto& cost = nodes_[at(pair.other)].cost;
    for (size_t j = 0; j < pair.columns; ++j) cost[j] += pair(at(option), j);
  }
  std::vector<double> only(options_of(node), kNever);
  only[at(option)] = 0;
  records_.push_back({node, std::move(only), {}});
  release(node);
}

bool PbqpGraph::fix_only_option(int32_t node) {
  const auto& cost = nodes_[at(node)].cost;
  int32_t option = -1;
  for (size_t i = 0; i < cost.size(); ++i) {
    if (cost[i] == kNever) continue;
    if (option >= 0) return false;
    option = static_cast<int32_t>(i);
  }
  fix(node, std::max(option, 0));
  return true;
}

void PbqpGraph::reduce_0(int32_t node) {
  const auto& cost = nodes_[at(node)].cost;
  constant_ += *std::min_element(cost.begin(), cost.end());
  record(node, {});
  release(node);
}

void PbqpGraph::reduce_1(int32_t node, int32_t edge) {
  const auto pair = view(edge, node);
  const auto& cost = nodes_[at(node)].cost;
  auto& other = nodes_[at(pair.other)].cost;
  for (size_t j = 0; j < pair.columns; ++j) {
    double least = kNever;
    for (size_t i = 0; i < cost.size(); ++i) least = std::min(least, cost[i] + pair(i, j));
    other[j] += least;
  }
  effort_ += static_cast<int64_t>(cost.size() * pair.columns);
  record(node, {&edge, 1});
  release(node);
}

void PbqpGraph::reduce_2(int32_t node, int32_t first, int32_t second) {
  const auto a = view(first, node), b = view(second, node);
  const auto& cost = nodes_[at(node)].cost;
  std::vector<double> joined(a.columns * b.columns, kNever);
  for (size_t i = 0; i < cost.size(); ++i) {
    if (cost[i] == kNever) continue;
    for (size_t j = 0; j < a.columns; ++j) {
      const double so_far = cost[i] + a(i, j);
      for (size_t k = 0; k < b.columns; ++k) {
        double& least = joined[j * b.columns + k];
        least = std::min(least, so_far + b(i, k));
      }
    }
  }
  effort_ += static_cast<int64_t>(cost.size() * joined.size());
  const int32_t edges[] = {first, second};
  const int32_t left = a.other, right = b.other;
  record(node, edges);
  release(node);
  add_edge(left, right, std::move(joined));
}

bool PbqpGraph::settle(int32_t node) {
  if (fix_only_option(node)) return true;
  if (nodes_[at(node)].degree > 2) return false;
  const std::vector<int32_t> edges = live_edges(node);
  if (edges.empty()) {
    reduce_0(node);
  } else if (edges.size() == 1) {
    reduce_1(node, edges[0]);
  } else {
    reduce_2(node, edges[0], edges[1]);
  }
  return true;
}

void PbqpGraph::reduce() {
  while (!work_.empty()) {
    const int32_t node = work_.back();
    work_.pop_back();
    if (nodes_[at(node)].left) settle(node);
  }
}

// Moves the minimum of each row to the choice; what remains in the rows is at least 0.
void PbqpGraph::collect(int32_t node) {
  auto& cost = nodes_[at(node)].cost;
  for (const int32_t edge : nodes_[at(node)].edges) {
    if (edges_[at(edge)].a < 0) continue;
    const auto pair = view(edge, node);
    for (size_t i = 0; i < cost.size(); ++i) {
      double least = kNever;
      for (size_t j = 0; j < pair.columns; ++j) least = std::min(least, pair(i, j));
      cost[i] += least;
      if (least == 0 || least == kNever) continue;
      for (size_t j = 0; j < pair.columns; ++j) pair(i, j) -= least;
    }
    effort_ += static_cast<int64_t>(cost.size() * pair.columns);
  }
}

// Moves what the choice has beyond its least option to the pairs with choices that come later in this direction, which
// collect it.
void PbqpGraph::pass_on(int32_t node, bool forwards) {
  auto& cost = nodes_[at(node)].cost;
  const double least = *std::min_element(cost.begin(), cost.end());
  constant_ += least;
  if (least == kNever) return;
  for (double& c : cost) c -= least;
  std::vector<int32_t> later;
  for (const int32_t edge : nodes_[at(node)].edges) {
    const Edge& pair = edges_[at(edge)];
    if (pair.a >= 0 && ((pair.a == node ? pair.b : pair.a) > node) == forwards) later.push_back(edge);
  }
  if (later.empty()) return;
  for (const int32_t edge : later) {
    const auto pair = view(edge, node);
    for (size_t i = 0; i < cost.size(); ++i) {
      const double share = cost[i] / static_cast<double>(later.size());
      for (size_t j = 0; j < pair.columns; ++j) pair(i, j) += share;
    }
  }
  for (double& c : cost) c = c == kNever ? kNever : 0;
}

void PbqpGraph::tighten(bool forwards) {
  const auto count = static_cast<int32_t>(nodes_.size());
  for (int32_t i = 0; i < count && constant_ < kNever; ++i) {
    const int32_t node = forwards ? i : count - 1 - i;
    if (!nodes_[at(node)].left) continue;
    collect(node);
    pass_on(node, forwards);
  }
}

void PbqpGraph::tighten() {
  tighten(true);
  tighten(false);
  for (int32_t i = 0; i < static_cast<int32_t>(nodes_.size()) && constant_ < kNever; ++i) {
    if (!nodes_[at(i)].left) continue;
    collect(i);
    touch(i);  // an option may have become impossible
  }
}

std::vector<int32_t> PbqpGraph::around(int32_t seed, size_t count) const {
  std::vector<int32_t> found = {seed};
  std::vector<bool> seen(nodes_.size());
  seen[at(seed)] = true;
  for (size_t next = 0; next < found.size() && found.size() < count; ++next) {
    for (const int32_t edge : live_edges(found[next])) {
      const int32_t other = view(edge, found[next]).other;
      if (seen[at(other)] || found.size() == count) continue;
      seen[at(other)] = true;
      found.push_back(other);
    }
  }
  return found;
}

std::vector<std::vector<int32_t>> PbqpGraph::components() const {
  std::vector<std::vector<int32_t>> parts;
  std::vector<bool> seen(nodes_.size());
  for (int32_t seed = 0; seed < static_cast<int32_t>(nodes_.size()); ++seed) {
    if (!nodes_[at(seed)].left || seen[at(seed)]) continue;
    auto& part = parts.emplace_back(std::vector{seed});
    seen[at(seed)] = true;
    for (size_t next = 0; next < part.size(); ++next) {
      for (const int32_t edge : live_edges(part[next])) {
        const int32_t other = view(edge, part[next]).other;
        if (!seen[at(other)]) part.push_back(other);
        seen[at(other)] = true;
      }
    }
    std::sort(part.begin(), part.end());
  }
  return parts;
}

PbqpGraph PbqpGraph::part(std::span<const int32_t> nodes, std::span<const int32_t> options) const {
  PbqpGraph made;
  std::vector<std::pair<int32_t, int32_t>> places;  // by node
  for (const int32_t node : nodes) {
    places.emplace_back(node, static_cast<int32_t>(made.nodes_.size()));
    made.nodes_.push_back({.cost = nodes_[at(node)].cost, .edges = {}});
  }
  std::sort(places.begin(), places.end());
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (const int32_t edge : live_edges(nodes[n])) {
      const auto pair = view(edge, nodes[n]);
      const auto place = std::lower_bound(places.begin(), places.end(), std::pair(pair.other, 0));
      if (place != places.end() && place->first == pair.other) {
        if (edges_[at(edge)].a == nodes[n])
          made.add_edge(static_cast<int32_t>(n), place->second, edges_[at(edge)].cost);
        continue;
      }
      for (size_t i = 0; i < made.nodes_[n].cost.size(); ++i) {
        made.nodes_[n].cost[i] += pair(i, at(options[at(pair.other)]));
      }
    }
  }
  made.left_ = static_cast<int32_t>(nodes.size());
  made.work_.resize(nodes.size());
  std::iota(made.work_.rbegin(), made.work_.rend(), 0);
  return made;
}

int32_t PbqpGraph::hardest() const {
  int32_t best = -1;
  for (int32_t i = 0; i < static_cast<int32_t>(nodes_.size()); ++i) {
    if (nodes_[at(i)].left && (best < 0 || nodes_[at(i)].degree > nodes_[at(best)].degree)) best = i;
  }
  return best;
}

std::vector<std::pair<double, int32_t>> PbqpGraph::ranked_options(int32_t node) const {
  std::vector<std::pair<double, int32_t>> ranked;
  for (size_t i = 0; i < options_of(node); ++i) {
    double cost = nodes_[at(node)].cost[i];
    for (const int32_t edge : live_edges(node)) {
      const auto pair = view(edge, node);
      const auto& other = nodes_[at(pair.other)].cost;
      double least = kNever;
      for (size_t j = 0; j < pair.columns; ++j) least = std::min(least, pair(i, j) + other[j]);
      cost += least;
      effort_ += static_cast<int64_t>(pair.columns);
    }
    if (cost < kNever) ranked.emplace_back(cost, static_cast<int32_t>(i));
  }
  std::sort(ranked.begin(), ranked.end());
  return ranked;
}

double PbqpGraph::cost(std::span<const int32_t> options) const {
  double sum = constant_;
  for (int32_t i = 0; i < static_cast<int32_t>(nodes_.size()); ++i) {
    if (nodes_[at(i)].left) sum += nodes_[at(i)].cost[at(options[at(i)])];
  }
  for (const Edge& edge : edges_) {
    if (edge.a < 0) continue;
    sum += edge.cost[at(options[at(edge.a)]) * options_of(edge.b) + at(options[at(edge.b)])];
  }
  return sum;
}

void PbqpGraph::complete(std::vector<int32_t>& options) const {
  for (auto record = records_.rbegin(); record != records_.rend(); ++record) {
    double least = kNever;
    int32_t best = 0;
    for (size_t i = 0; i < record->cost.size(); ++i) {
      double cost = record->cost[i];
      for (const Record::Side& side : record->sides) {
        cost += side.cost[i * options_of(side.other) + at(options[at(side.other)])];
      }
      if (cost < least) least = cost, best = static_cast<int32_t>(i);
    }
    options[at(record->node)] = best;
  }
}

}  // namespace tenon::detail
