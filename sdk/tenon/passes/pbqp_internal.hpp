// The problem while it is being solved: choices are eliminated, pairs are added, and costs move between them.
#pragma once
#include <limits>
#include <utility>
#include <vector>

#include <tenon/passes/pbqp.hpp>

namespace tenon::detail {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

class PbqpGraph {
 public:
  PbqpGraph() = default;
  explicit PbqpGraph(const PbqpProblem& problem);

  // The part of every solution's cost that is not in the remaining choices and pairs.
  double constant() const { return constant_; }
  // For all solutions; exact when nothing is left.
  double lower_bound() const;
  int32_t left() const { return left_; }
  bool is_left(int32_t node) const { return nodes_[at(node)].left; }
  int32_t degree(int32_t node) const { return nodes_[at(node)].degree; }  // neighbours
  size_t size() const { return nodes_.size(); }
  // Pair costs inspected since construction.
  int64_t effort() const { return effort_; }

  // Applies R0, R1, R2 and fixes choices with a single option, until none applies.
  void reduce();
  // Moves costs so that lower_bound() rises, in one forward and one backward pass.
  void tighten();
  // Fixes the choice to this option.
  void fix(int32_t node, int32_t option);
  // The remaining choices, by component.
  std::vector<std::vector<int32_t>> components() const;
  // Up to `count` choices around `seed`, nearest first.
  std::vector<int32_t> around(int32_t seed, size_t count) const;
  // The subproblem of these choices, numbered by their positions in `nodes`; their neighbours have the given options. A
  // whole component needs none.
  PbqpGraph part(std::span<const int32_t> nodes, std::span<const int32_t> options) const;
  // The choice on which branching helps most: the one with most neighbours.
  int32_t hardest() const;
  // The allowed options with a lower bound of the cost of each, best first.
  std::vector<std::pair<double, int32_t>> ranked_options(int32_t node) const;
  // The cost of the remaining part with these options.
  double cost(std::span<const int32_t> options) const;
  // Determines the choices that were reduced or fixed, given the remaining ones.
  void complete(std::vector<int32_t>& options) const;

 private:
  struct Edge {
    int32_t a = -1, b = -1;  // a < 0: removed
    std::vector<double> cost;
  };
  struct Node {
    std::vector<double> cost;
    std::vector<int32_t> edges;  // some may have been removed
    int32_t degree = 0;
    bool left = true;
  };
  // How a choice follows from its neighbours: the minimum of cost[i] + sum side.cost[i][option of side.other].
  struct Record {
    struct Side {
      int32_t other;
      std::vector<double> cost;
    };
    int32_t node;
    std::vector<double> cost;
    std::vector<Side> sides;
  };
  // Row i, column j of an edge seen from one of its ends.
  template <class T>
  struct View {
    T* data;
    size_t row, column, columns;
    int32_t other;
    T& operator()(size_t i, size_t j) const { return data[i * row + j * column]; }
  };

  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  size_t options_of(int32_t node) const { return nodes_[at(node)].cost.size(); }
  template <class T>
  View<T> view_of(T* cost, const Edge& edge, int32_t node) const {
    const size_t rows = options_of(edge.a), columns = options_of(edge.b);
    if (edge.a == node) return {cost, columns, 1, columns, edge.b};
    return {cost, 1, columns, rows, edge.a};
  }
  View<double> view(int32_t edge, int32_t node) {
    return view_of(edges_[at(edge)].cost.data(), edges_[at(edge)], node);
  }
  View<const double> view(int32_t edge, int32_t node) const {
    return view_of(edges_[at(edge)].cost.data(), edges_[at(edge)], node);
  }
  std::vector<int32_t> live_edges(int32_t node) const;
  std::vector<double> rows_of(int32_t edge, int32_t node) const;

  void add_edge(int32_t a, int32_t b, std::vector<double> cost);
  int32_t find_edge(int32_t a, int32_t b) const;
  void remove_edge(int32_t edge);
  void release(int32_t node);
  void touch(int32_t node);
  bool settle(int32_t node);
  bool fix_only_option(int32_t node);
  void reduce_0(int32_t node);
  void reduce_1(int32_t node, int32_t edge);
  void reduce_2(int32_t node, int32_t first, int32_t second);
  void record(int32_t node, std::span<const int32_t> edges);
  void collect(int32_t node);
  void pass_on(int32_t node, bool forwards);
  void tighten(bool forwards);

  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<Record> records_;
  std::vector<int32_t> work_;  // choices that have lost neighbours
  double constant_ = 0;
  int32_t left_ = 0;
  mutable int64_t effort_ = 0;
};

}  // namespace tenon::detail
