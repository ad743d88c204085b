// Inside the room: a directed acyclic graph whose nodes are merged two by two, and that stays acyclic.
//
// A topological order is maintained dynamically, as by Pearce and Kelly ("A dynamic topological sort algorithm for
// directed acyclic graphs", 2007), so that a merge visits only nodes between the two.
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
  // from < to. Only before the first merge. Repeated edges are allowed.
  void add_edge(int from, int to);

  // The node into which `node` has been merged.
  int find(int node);
  // Whether merging a and b, two different find()s, keeps the graph acyclic: no path leads from one to the other
  // through a third node. Exact.
  bool mergeable(int a, int b);
  // Merges the two nodes for which mergeable() has just returned true. Returns the merged node.
  int merge();
  // Whether a comes before b in the order.
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
  // The order: a circular list through the last element, with labels that increase along it.
  std::vector<int> next_, previous_;
  std::vector<uint64_t> label_;
  // The last query, and what its search has found.
  int first_ = -1, last_ = -1;
  Search search_[2];
  bool forwards_ended_ = false;
  std::vector<uint32_t> seen_[2];
  uint32_t stamp_ = 0;
};

}  // namespace tenon::snippet
