#include <tenon/irgen/chains.hpp>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include <tenon/ir/op_def.hpp>
#include <tenon/irgen/growing_chain_internal.hpp>

namespace tenon::irgen {

using detail::bytes_of;
using detail::GrowingChain;
using detail::Member;
using detail::ReadsCache;
using detail::used_results;
using detail::whole_cost;
using detail::working_set_of;

namespace {

constexpr size_t kMostOps = 48;     // of a chain
constexpr size_t kMostSkipped = 8;  // operators in the order between those of a chain that are not in it
// Seconds added as a penalty: for operators that stay whole, and for strips beyond the allowed bytes.
constexpr double kAvoidWhole = 1e6;
constexpr double kAvoidLarge = 1e3;
// StripMode::memory: seconds per byte held, so that bytes take precedence over time. Windows that fit half of the
// second-smallest memory count as that size, or strips would be as narrow as possible.
constexpr double kSecondsPerByte = 1;
constexpr double kMostSlower = 1.5;
// Strips must be predicted to be faster by this factor: the model knows neither in-place copies nor how well a kernel
// runs on crops.
constexpr double kMargin = 1.25;

// Operators with operands, depth first from values that are used elsewhere: producers first, and branches one after
// another.
class DepthFirst {
 public:
  explicit DepthFirst(std::span<const Op* const> ops) : among_(ops.begin(), ops.end()) {
    for (const Op* op : ops)
      if (is_used_elsewhere(*op)) visit(op);
    for (const Op* op : ops) visit(op);
  }
  std::vector<const Op*> order;

 private:
  bool is_used_elsewhere(const Op& op) const {
    for (size_t r = 0; r < op.result_count(); ++r)
      for (const Use* use : op.result(r)->uses())
        if (!among_.contains(use->user())) return true;
    return false;
  }
  void visit(const Op* root) {
    enter(root);
    while (!path_.empty()) {
      const Op* op = path_.back();
      size_t& next = visited_[op];
      if (next < op->operand_count()) {
        const Value* operand = op->operand(next++);
        if (operand) enter(operand->producer());
      } else {
        order.push_back(op);
        path_.pop_back();
      }
    }
  }
  void enter(const Op* op) {
    if (op && among_.contains(op) && op->operand_count() > 0 && visited_.emplace(op, 0).second) path_.push_back(op);
  }

  std::unordered_set<const Op*> among_;
  std::unordered_map<const Op*, size_t> visited_;  // index of the next operand
  std::vector<const Op*> path_;
};

// The chain that ends at an operator of the order and begins at another one.
struct Choice {
  size_t first = 0;
  std::vector<int> dims;  // of the last result, one per loop; none: the whole operator
  std::vector<int64_t> steps;
};

class Finder {
 public:
  Finder(std::span<const Op* const> ops, const StripOptions& options, const RefusedOps& refused,
         const TypeSource& types)
      : options_(options), types_(types), cache_(options, refused, types), order_(DepthFirst(ops).order) {}

  Chains run() {
    choose();
    Chains found;
    for (size_t end = order_.size(); end > 0; end = into_[end].first)
      if (!into_[end].dims.empty()) found.chains.push_back(make(into_[end], end - 1));
    std::ranges::reverse(found.chains);
    for (const Chain& chain : found.chains)
      for (const ChainOp& op : chain.ops) why_.erase(op.op);
    found.whole = std::move(why_);
    return found;
  }

 private:
  void choose() {
    for (const Op* op : order_) whole_.push_back(whole_cost(*op, options_, types_).seconds);
    cost_.assign(order_.size() + 1, INFINITY);
    into_.resize(order_.size() + 1);
    cost_[0] = 0;
    for (size_t last = 0; last < order_.size(); ++last) {
      consider(last, {last, {}, {}}, whole(last));
      if (is_near(*order_[last])) continue;
      for (const std::vector<int>& dims : loops_of(*order_[last]))
        if (options_.dim < 0 || dims.back() == options_.dim) grow(last, dims);
    }
  }

  // Whether the model streams its values through one of the two smallest memories anyway. Then nothing is gained at the
  // end of such a chain; this applies to most operators of large graphs.
  bool is_near(const Op& op) const {
    const auto& memories = options_.model.memories;
    if (options_.mode != StripMode::automatic || memories.size() < 3) return false;
    return working_set_of(op, types_) <= memories[1].bytes;
  }

  double whole(size_t at) const {
    if (options_.mode == StripMode::always) return whole_[at] + kAvoidWhole;
    return options_.mode == StripMode::memory ? whole_[at] + held_bytes(*order_[at]) * kSecondsPerByte : whole_[at];
  }

  // Elementwise operators write in place, and views hold nothing.
  double held_bytes(const Op& op) const {
    if (op.def() && (op.def()->has(Trait::elementwise) || op.def()->has(Trait::view))) return 0;
    double bytes = 0;
    for (const size_t r : used_results(op)) bytes += bytes_of(*op.result(r), types_);
    return bytes;
  }
  double held_bytes(const GrowingChain& chain, const StripCost& strips) const {
    const auto& memories = options_.model.memories;
    const double free = memories.size() > 1 ? memories[1].bytes / 2 : 0;
    return chain.members()[0].bytes + std::max(static_cast<double>(strips.peak_bytes), free);
  }

  void consider(size_t last, Choice choice, double seconds) {
    const double cost = cost_[choice.first] + seconds;
    if (cost >= cost_[last + 1]) return;
    cost_[last + 1] = cost;
    into_[last + 1] = std::move(choice);
  }

  // Each dim on its own, and as the inner loop of one before it.
  std::vector<std::vector<int>> loops_of(const Op& op) const {
    std::vector<std::vector<int>> loops;
    const std::vector<size_t> used = used_results(op);
    if (used.size() != 1) return loops;
    const auto dims = strip_dims(*op.result(used[0]), types_);
    if (!dims.ok()) return loops;
    for (size_t d = 0; d < dims->size(); ++d) {
      if ((*dims)[d] < 2) continue;
      loops.push_back({static_cast<int>(d)});
      for (size_t outer = 0; outer < d; ++outer)
        if ((*dims)[outer] > 1) loops.push_back({static_cast<int>(outer), static_cast<int>(d)});
    }
    return loops;
  }

  void grow(size_t last, const std::vector<int>& dims) {
    GrowingChain chain(cache_, options_, dims.size());
    const Op& end = *order_[last];
    if (const auto begun = chain.begin(end, used_results(end)[0], dims); !begun.ok()) return note(last, begun.error());
    double skipped = 0;
    size_t skips = 0;
    for (size_t i = last; i-- > 0 && skips <= kMostSkipped && chain.members().size() < kMostOps;) {
      if (const auto added = chain.add(*order_[i]); !added.ok()) {
        note(i, added.error());
        skipped += whole(i);
        ++skips;
        continue;
      }
      if (const auto [steps, seconds] = best_steps(chain); !steps.empty())
        consider(last, {i, dims, steps}, seconds + skipped);
    }
  }
  // The first reason is kept.
  void note(size_t at, const Error& why) { why_.try_emplace(order_[at], why.message()); }

  // Most bytes that a strip may use: in any case less than the memory beyond which there is no other.
  double most_bytes() const {
    const auto& memories = options_.model.memories;
    const double small = memories.size() > 1 ? memories[memories.size() - 2].bytes : INFINITY;
    return options_.bytes > 0 ? std::min(small, static_cast<double>(options_.bytes)) : small;
  }

  // The cheapest steps within the allowed bytes; 1 for loops around the innermost one.
  std::pair<std::vector<int64_t>, double> best_steps(const GrowingChain& chain) const {
    std::pair<std::vector<int64_t>, double> best{{}, INFINITY};
    const size_t loops = chain.members()[0].dims.size();
    const double extent = chain.members()[0].extent[loops - 1];
    std::vector<int64_t> steps(loops, 1);
    if (options_.step > 0) steps.back() = options_.step;
    const double whole = options_.mode == StripMode::memory ? chain.whole().seconds : 0;
    for (;; steps.back() *= 2) {
      double working_set = 0;
      const StripCost strips = chain.strips(steps, working_set);
      double seconds = strips.seconds;
      if (options_.mode == StripMode::automatic) seconds *= kMargin;
      if (options_.mode == StripMode::memory) {
        if (seconds > kMostSlower * whole) seconds += kAvoidWhole * kAvoidWhole;
        seconds += held_bytes(chain, strips) * kSecondsPerByte;
      }
      if (working_set > most_bytes()) seconds += kAvoidLarge;
      if (seconds < best.second) best = {steps, seconds};
      if (options_.step > 0 || 2 * static_cast<double>(steps.back()) >= extent) return best;  // extents go to 2^63 - 1
    }
  }

  Chain make(const Choice& choice, size_t last) {
    GrowingChain growing(cache_, options_, choice.dims.size());
    const Op& end = *order_[last];
    TENON_CHECK(growing.begin(end, used_results(end)[0], choice.dims).ok(),
                "a chain that was found cannot be grown again");
    // Operators that were left out are refused again.
    for (size_t i = last; i-- > choice.first;) (void)growing.add(*order_[i]).ok();
    Chain chain;
    for (size_t i = growing.members().size(); i-- > 0;) {
      const Member& m = growing.members()[i];
      chain.ops.push_back({m.op, m.result, m.dims, *m.reads});
    }
    for (size_t l = 0; l < choice.dims.size(); ++l) chain.loops.push_back({choice.dims[l], choice.steps[l]});
    double working_set = 0;
    chain.strips = growing.strips(choice.steps, working_set);
    chain.whole = growing.whole();
    return chain;
  }

  const StripOptions& options_;
  const TypeSource& types_;
  ReadsCache cache_;
  std::vector<const Op*> order_;
  std::vector<double> whole_;  // seconds of each operator on its own
  std::vector<double> cost_;   // of the operators before each position
  std::vector<Choice> into_;
  RefusedOps why_;
};

}  // namespace

Chains find_chains(std::span<const Op* const> ops, const StripOptions& options, const RefusedOps& refused,
                   const TypeSource& types) {
  if (options.mode == StripMode::never) return {};
  return Finder(ops, options, refused, types).run();
}

Chains find_chains(const Graph& graph, const StripOptions& options, const RefusedOps& refused) {
  return find_chains(body_ops(graph), options, refused);
}

std::vector<const Op*> body_ops(const Graph& graph) {
  std::vector<const Op*> ops;
  for (const Op& op : graph.body()) ops.push_back(&op);
  return ops;
}

}  // namespace tenon::irgen
