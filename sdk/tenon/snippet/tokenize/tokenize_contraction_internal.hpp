// Inside of the room: a directed graph without cycles whose nodes are merged two by two, and stays without cycles.
//
// An order in which edges lead forwards is kept up to date, as by Pearce and Kelly ("A dynamic topological sort
// algorithm for directed acyclic graphs", 2007), so that a merge looks only at what stands between the two.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include <tenon/support/export.hpp>

namespace tenon::snippet {

class Contraction {
 public:
  // Nodes 0, 1, ... in this order.
  explicit Contraction(size_t nodes);
  // from < to. Before the first merge. Twice is as good as once.
  void add_edge(int from, int to);

  // The node that `node` has become part of.
  int find(int node);
  // Would merging a and b, two different find()s, leave the graph without cycles: does no path lead from one to the
  // other by way of a third? Exact.
  bool mergeable(int a, int b);
  // Merges the two that mergeable() was just asked about and said yes of. Returns the node that stands for both.
  int merge();
  // Does a stand before b?
  bool before(int a, int b) const { return label_[at(a)] < label_[at(b)]; }

 private:
  static size_t at(int node) { return static_cast<size_t>(node); }
  // A search from one end towards the other, one edge at a time.
  struct Search {
    std::vector<int> found, pending;
    size_t edge = 0;  // of pending.back()
  };
  enum class Step : uint8_t { goes_on, ended, met };
  Step step(Search& search, bool forwards);
  void move_behind(int place, std::vector<int> nodes);
  void unlink(int node);
  void link_behind(int place, int node);
  void spread_labels();

  std::vector<int> parent_;
  std::vector<std::vector<int>> edges_[2];  // [0] from a node, [1] to it
  // The order: a ring through the last element, with labels that grow along it.
  std::vector<int> next_, previous_;
  std::vector<uint64_t> label_;
  // What the last question was, and what was found.
  int first_ = -1, last_ = -1;
  Search search_[2];
  bool forwards_ended_ = false;
  std::vector<uint32_t> seen_[2];
  uint32_t stamp_ = 0;
};

}  // namespace tenon::snippet
