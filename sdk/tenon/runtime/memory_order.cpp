#include <tenon/runtime/memory_order.hpp>

#include <algorithm>
#include <numeric>
#include <queue>

namespace tenon {
namespace {

// Saturating sum, whatever the sizes.
size_t plus(size_t a, size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }

// Edges without duplicates, in both directions.
struct Edges {
  std::vector<size_t> operand_begin, operands, user_begin, users;

  explicit Edges(std::span<const OrderNode> nodes) : operand_begin(1, 0), user_begin(nodes.size() + 1, 0) {
    for (const OrderNode& node : nodes) {
      const size_t from = operands.size();
      operands.insert(operands.end(), node.operands.begin(), node.operands.end());
      std::sort(operands.begin() + static_cast<ptrdiff_t>(from), operands.end());
      operands.erase(std::unique(operands.begin() + static_cast<ptrdiff_t>(from), operands.end()), operands.end());
      operand_begin.push_back(operands.size());
    }
    for (const size_t operand : operands) ++user_begin[operand + 1];
    std::partial_sum(user_begin.begin(), user_begin.end(), user_begin.begin());
    users.resize(operands.size());
    std::vector<size_t> end(user_begin.begin(), user_begin.end() - 1);
    for (size_t node = 0; node < nodes.size(); ++node) {
      for (const size_t operand : operands_of(node)) users[end[operand]++] = node;
    }
  }
  std::span<const size_t> operands_of(size_t node) const {
    return std::span(operands).subspan(operand_begin[node], operand_begin[node + 1] - operand_begin[node]);
  }
  std::span<const size_t> users_of(size_t node) const {
    return std::span(users).subspan(user_begin[node], user_begin[node + 1] - user_begin[node]);
  }
};

class Orderer {
 public:
  explicit Orderer(std::span<const OrderNode> nodes) : nodes_(nodes), edges_(nodes) {}

  Result<MemoryOrder> best() {
    std::vector<size_t> original = listed([](size_t, size_t) { return size_t{0}; });
    if (original.size() < nodes_.size()) return cycle(original);
    MemoryOrder best;
    best.peak_bytes = best.original_peak_bytes = peak_of_order(nodes_, original);
    best.order = std::move(original);
    const size_t least = least_peak();
    if (best.peak_bytes <= least) return best;
    const std::vector<size_t> topological = best.order;
    improve(topological, best);
    if (best.peak_bytes > least) improve(depth_first(topological), best);
    // Among the ready nodes, the one that leaves the fewest bytes live.
    if (best.peak_bytes > least)
      improve(listed([&](size_t freed, size_t node) {
                return plus(nodes_[node].result_bytes, SIZE_MAX / 2 - std::min(freed, SIZE_MAX / 2));
              }),
              best);
    return best;
  }

 private:
  Error cycle(const std::vector<size_t>& order) const {
    std::vector<bool> done(nodes_.size(), false);
    for (const size_t node : order) done[node] = true;
    const auto first = static_cast<size_t>(std::find(done.begin(), done.end(), false) - done.begin());
    return error(Code::invalid_argument, nodes_.size() - order.size(), " of ", nodes_.size(),
                 " nodes wait for each other in a cycle; the first is node ", first);
  }

  // A lower bound for any order: a node runs while all its operands are live, and replaces at most one of them.
  size_t least_peak() const {
    size_t least = 0;
    for (size_t node = 0; node < nodes_.size(); ++node) {
      const size_t own = nodes_[node].result_bytes;
      size_t alive = own, saved = 0;
      for (const size_t operand : edges_.operands_of(node)) {
        alive = plus(alive, nodes_[operand].result_bytes);
        if (nodes_[node].in_place) saved = std::max(saved, std::min(nodes_[operand].result_bytes, own));
      }
      least = std::max(least, plus(alive - saved, nodes_[node].scratch_bytes));
    }
    return least;
  }

  // Ready nodes by ascending `cost(bytes that it frees, node)`, then in the given order.
  template <class Cost>
  std::vector<size_t> listed(const Cost& cost) const {
    std::vector<size_t> waits(nodes_.size()), unread(nodes_.size()), order;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      waits[i] = edges_.operands_of(i).size();
      unread[i] = edges_.users_of(i).size();
    }
    const auto freed = [&](size_t node) {
      size_t bytes = 0;
      for (const size_t operand : edges_.operands_of(node)) {
        if (unread[operand] == 1 && !nodes_[operand].kept) bytes = plus(bytes, nodes_[operand].result_bytes);
      }
      return bytes;
    };
    using Entry = std::pair<size_t, size_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    const auto enqueue = [&](size_t node) { ready.emplace(cost(freed(node), node), node); };
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (waits[i] == 0) enqueue(i);
    }
    std::vector<bool> done(nodes_.size(), false);
    while (!ready.empty()) {
      const size_t node = ready.top().second;
      ready.pop();
      if (done[node]) continue;
      done[node] = true;
      order.push_back(node);
      for (const size_t user : edges_.users_of(node)) {
        if (--waits[user] == 0) enqueue(user);
      }
      for (const size_t operand : edges_.operands_of(node)) {
        // Its last reader frees it, so that node has become cheaper. Its older entry is skipped.
        if (--unread[operand] != 1) continue;
        for (const size_t user : edges_.users_of(operand)) {
          if (!done[user] && waits[user] == 0) enqueue(user);
        }
      }
    }
    return order;
  }

  // The memory needed to compute each node's result, as if nothing below it had other readers.
  std::vector<size_t> needs(const std::vector<size_t>& topological) const {
    std::vector<size_t> need(nodes_.size(), 0), sorted;
    for (const size_t node : topological) {
      size_t held = 0, most = 0;
      sorted.clear();
      add_by_need(node, need, sorted);
      for (const size_t operand : sorted) {
        most = std::max(most, plus(held, need[operand]));
        held = plus(held, nodes_[operand].result_bytes);
      }
      need[node] = std::max(most, plus(plus(held, nodes_[node].result_bytes), nodes_[node].scratch_bytes));
    }
    return need;
  }

  // Appends the node's operands to `list`.
  void add_by_need(size_t node, const std::vector<size_t>& need, std::vector<size_t>& list) const {
    const auto operands = edges_.operands_of(node);
    list.insert(list.end(), operands.begin(), operands.end());
    if (operands.size() < 2) return;
    // Needs include the node's own result.
    const auto gain = [&](size_t i) { return need[i] - std::min(need[i], nodes_[i].result_bytes); };
    std::stable_sort(list.end() - static_cast<ptrdiff_t>(operands.size()), list.end(),
                     [&](size_t a, size_t b) { return gain(a) > gain(b); });
  }

  std::vector<size_t> depth_first(const std::vector<size_t>& topological) const {
    const std::vector<size_t> need = needs(topological);
    // Operands of the open nodes, in order: those of the last one are at the end.
    std::vector<size_t> operands;
    struct Frame {
      size_t node, begin, next;  // in `operands`
    };
    std::vector<bool> seen(nodes_.size(), false);
    std::vector<size_t> order;
    std::vector<Frame> stack;  // graphs are deep: no recursion
    const auto enter = [&](size_t node) {
      if (seen[node]) return;
      seen[node] = true;
      stack.push_back({node, operands.size(), operands.size()});
      add_by_need(node, need, operands);
    };
    for (const size_t root : topological) {
      if (!edges_.users_of(root).empty()) continue;
      enter(root);
      while (!stack.empty()) {
        Frame& top = stack.back();
        if (top.next < operands.size()) {
          enter(operands[top.next++]);
        } else {
          order.push_back(top.node);
          operands.resize(top.begin);
          stack.pop_back();
        }
      }
    }
    return order;
  }

  void improve(const std::vector<size_t>& order, MemoryOrder& best) const {
    consider(order, best);
    consider(later(order), best);
    const std::vector<size_t> early = earlier(order);
    consider(early, best);
    consider(later(early), best);
  }
  void consider(const std::vector<size_t>& order, MemoryOrder& best) const {
    const size_t peak = peak_of_order(nodes_, order);
    if (peak < best.peak_bytes) {
      best.peak_bytes = peak;
      best.order = order;
    }
  }

  // Moves nodes that free less than they allocate to just before their first user.
  std::vector<size_t> later(const std::vector<size_t>& order) const {
    const std::vector<size_t> at = positions(order);
    const std::vector<size_t> last = last_readers(order, at);
    std::vector<bool> lazy(nodes_.size(), false), out(nodes_.size(), false);
    for (const size_t node : order) {
      lazy[node] = !edges_.users_of(node).empty() && freed(node, last) < nodes_[node].result_bytes;
    }
    std::vector<size_t> result, stack;
    for (const size_t wanted : order) {
      if (lazy[wanted]) continue;
      stack.push_back(wanted);
      while (!stack.empty()) {
        const size_t node = stack.back();
        const auto operands = edges_.operands_of(node);
        const auto missing = std::find_if(operands.begin(), operands.end(), [&](size_t i) { return !out[i]; });
        if (missing != operands.end()) {
          stack.push_back(*missing);
          continue;
        }
        stack.pop_back();
        out[node] = true;
        result.push_back(node);
      }
    }
    return result;
  }

  // Moves nodes that free at least as much as they allocate to just after their last operand.
  std::vector<size_t> earlier(const std::vector<size_t>& order) const {
    const std::vector<size_t> at = positions(order);
    const std::vector<size_t> last = last_readers(order, at);
    std::vector<size_t> result, stack;
    std::vector<bool> moved(nodes_.size(), false);
    for (const size_t node : order) {
      moved[node] = !edges_.operands_of(node).empty() && freed(node, last) >= nodes_[node].result_bytes;
    }
    // A moved node may wait for an operand that moved, too, and is then later than its own latest position: hence the
    // counts.
    std::vector<size_t> waits(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) waits[i] = edges_.operands_of(i).size();
    for (const size_t node : order) {
      if (moved[node]) continue;
      stack.push_back(node);
      while (!stack.empty()) {
        const size_t top = stack.back();
        stack.pop_back();
        result.push_back(top);
        for (const size_t user : edges_.users_of(top)) {
          if (--waits[user] == 0 && moved[user]) stack.push_back(user);
        }
      }
    }
    return result;
  }

  size_t freed(size_t node, const std::vector<size_t>& last) const {
    size_t bytes = 0;
    for (const size_t operand : edges_.operands_of(node)) {
      if (last[operand] == node && !nodes_[operand].kept) bytes = plus(bytes, nodes_[operand].result_bytes);
    }
    return bytes;
  }
  std::vector<size_t> positions(const std::vector<size_t>& order) const {
    std::vector<size_t> at(nodes_.size());
    for (size_t i = 0; i < order.size(); ++i) at[order[i]] = i;
    return at;
  }
  std::vector<size_t> last_readers(const std::vector<size_t>& order, const std::vector<size_t>& at) const {
    std::vector<size_t> last(nodes_.size());
    for (const size_t node : order) {
      last[node] = node;
      for (const size_t user : edges_.users_of(node)) {
        if (at[user] > at[last[node]]) last[node] = user;
      }
    }
    return last;
  }

  std::span<const OrderNode> nodes_;
  Edges edges_;
};

}  // namespace

std::vector<Lifetime> lifetimes_of_order(std::span<const OrderNode> nodes, std::span<const size_t> order) {
  std::vector<Lifetime> lives(nodes.size());
  for (size_t step = 0; step < order.size(); ++step) {
    const OrderNode& node = nodes[order[step]];
    lives[order[step]] = {node.result_bytes, step, node.kept ? order.size() - 1 : step};
    for (const size_t operand : node.operands) lives[operand].last = std::max(lives[operand].last, step);
  }
  return lives;
}

size_t peak_of_order(std::span<const OrderNode> nodes, std::span<const size_t> order) {
  // By node: the last step of its result's life.
  std::vector<size_t> last(nodes.size(), 0);
  for (size_t step = 0; step < order.size(); ++step) {
    const OrderNode& node = nodes[order[step]];
    last[order[step]] = node.kept ? order.size() - 1 : step;
    for (const size_t operand : node.operands) last[operand] = std::max(last[operand], step);
  }
  // Saturated sums could not be subtracted again, so invalid sizes end the count.
  size_t alive = 0, peak = 0;
  for (size_t step = 0; step < order.size(); ++step) {
    const OrderNode& node = nodes[order[step]];
    alive = plus(alive, node.result_bytes);
    size_t saved = 0, freed = last[order[step]] == step ? node.result_bytes : 0;
    for (const size_t operand : node.operands) {
      if (last[operand] != step) continue;
      last[operand] = SIZE_MAX;  // once, however often it is read
      const size_t bytes = nodes[operand].result_bytes;
      freed = plus(freed, bytes);
      if (node.in_place) saved = std::max(saved, std::min(bytes, node.result_bytes));
    }
    peak = std::max(peak, plus(alive - saved, node.scratch_bytes));
    if (alive == SIZE_MAX) return SIZE_MAX;
    alive -= freed;
  }
  return peak;
}

Result<MemoryOrder> order_for_memory(std::span<const OrderNode> nodes) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const size_t operand : nodes[i].operands) {
      if (operand >= nodes.size()) {
        return error(Code::invalid_argument, "node ", i, " reads node ", operand, " of ", nodes.size());
      }
    }
  }
  return Orderer(nodes).best();
}

}  // namespace tenon
