#include <tenon/snippet/tokenize/tokenize_contraction_internal.hpp>

#include <algorithm>

namespace tenon::snippet {

Contraction::Contraction(size_t nodes) : parent_(nodes), next_(nodes + 1), previous_(nodes + 1), label_(nodes + 1) {
  for (size_t i = 0; i < nodes; ++i) parent_[i] = static_cast<int>(i);
  for (int direction : {0, 1}) {
    edges_[direction].resize(nodes);
    seen_[direction].assign(nodes, 0);
  }
  const size_t ring = nodes + 1;
  for (size_t i = 0; i < ring; ++i) {
    next_[i] = static_cast<int>((i + 1) % ring);
    previous_[i] = static_cast<int>((i + ring - 1) % ring);
  }
  spread_labels();
}

void Contraction::add_edge(int from, int to) {
  if (!edges_[0][at(from)].empty() && edges_[0][at(from)].back() == to) return;
  edges_[0][at(from)].push_back(to);
  edges_[1][at(to)].push_back(from);
}

int Contraction::find(int node) {
  while (parent_[at(node)] != node) {
    parent_[at(node)] = parent_[at(parent_[at(node)])];
    node = parent_[at(node)];
  }
  return node;
}

// ---- The order ----

// The ring's last element is not a node: it is the end of the order, after the last node and before the first.
void Contraction::spread_labels() {
  const int end = static_cast<int>(label_.size()) - 1;
  const uint64_t gap = (uint64_t{1} << 62) / label_.size();
  uint64_t label = 0;
  for (int node = next_[at(end)]; node != end; node = next_[at(node)]) label_[at(node)] = label += gap;
  label_[at(end)] = label + gap;
}

void Contraction::unlink(int node) {
  next_[at(previous_[at(node)])] = next_[at(node)];
  previous_[at(next_[at(node)])] = previous_[at(node)];
}

void Contraction::link_behind(int place, int node) {
  next_[at(node)] = next_[at(place)];
  previous_[at(node)] = place;
  previous_[at(next_[at(place)])] = node;
  next_[at(place)] = node;
}

// Moves `nodes` after `place`, in their current order. The end as `place` means the start.
void Contraction::move_behind(int place, std::vector<int> nodes) {
  std::sort(nodes.begin(), nodes.end(), [&](int a, int b) { return before(a, b); });
  for (const int node : nodes) unlink(node);
  const int end = static_cast<int>(label_.size()) - 1;
  uint64_t label = place == end ? 0 : label_[at(place)];
  const uint64_t gap = (label_[at(next_[at(place)])] - label) / (nodes.size() + 1);
  for (const int node : nodes) {
    link_behind(place, node);
    label_[at(node)] = label += gap;
    place = node;
  }
  if (gap == 0 && !nodes.empty()) spread_labels();
}

// ---- Merging ----

Contraction::Step Contraction::step(Search& search, bool forwards) {
  const int direction = forwards ? 0 : 1, goal = forwards ? last_ : first_, start = forwards ? first_ : last_;
  while (!search.pending.empty()) {
    const int node = search.pending.back();
    std::vector<int>& edges = edges_[direction][at(node)];
    if (search.edge == edges.size()) {
      search.pending.pop_back();
      search.edge = 0;
      continue;
    }
    int& end = edges[search.edge];
    end = find(end);
    if (end == node) {  // between two parts of the node
      end = edges.back();
      edges.pop_back();
      continue;
    }
    ++search.edge;
    if (end == goal) {
      if (node == start) continue;
      return Step::met;
    }
    const bool between = forwards ? before(end, last_) : before(first_, end);
    if (!between || seen_[direction][at(end)] == stamp_) return Step::goes_on;
    if (seen_[1 - direction][at(end)] == stamp_) return Step::met;
    seen_[direction][at(end)] = stamp_;
    search.found.push_back(end);
    // The next edge of `node` is examined again from its first one: those before lead to visited nodes.
    search.pending.insert(search.pending.end() - 1, end);
    return Step::goes_on;
  }
  return Step::ended;
}

bool Contraction::mergeable(int a, int b) {
  first_ = before(a, b) ? a : b;
  last_ = first_ == a ? b : a;
  ++stamp_;
  for (const bool forwards : {true, false}) {
    Search& search = search_[forwards ? 0 : 1];
    search.found.clear();
    search.pending.assign(1, forwards ? first_ : last_);
    search.edge = 0;
  }
  while (true) {
    for (const bool forwards : {true, false}) {
      const Step done = step(search_[forwards ? 0 : 1], forwards);
      if (done == Step::met) return false;
      if (done == Step::goes_on) continue;
      forwards_ended_ = forwards;
      return true;
    }
  }
}

// Moves what is reachable from the first one after the last one, or what reaches the last one before the first one:
// whichever set the search has completed.
int Contraction::merge() {
  const size_t size_first = edges_[0][at(first_)].size() + edges_[1][at(first_)].size();
  const size_t size_last = edges_[0][at(last_)].size() + edges_[1][at(last_)].size();
  const int kept = size_first >= size_last ? first_ : last_, gone = kept == first_ ? last_ : first_;
  if (forwards_ended_)
    move_behind(last_, search_[0].found);
  else
    move_behind(previous_[at(first_)], search_[1].found);
  const int place = forwards_ended_ ? last_ : first_;
  unlink(place == first_ ? last_ : first_);
  if (kept != place) {
    link_behind(place, kept);
    label_[at(kept)] = label_[at(place)];
    unlink(place);
  }
  parent_[at(gone)] = kept;
  for (auto& edges : edges_) {
    std::vector<int>&into = edges[at(kept)], &from = edges[at(gone)];
    into.insert(into.end(), from.begin(), from.end());
    std::vector<int>().swap(from);
  }
  return kept;
}

}  // namespace tenon::snippet
