#include <tenon/irgen/chains.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <tenon/ir/bounds_rule.hpp>
#include <tenon/ir/infer.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/support/str.hpp>

namespace tenon::irgen {

namespace {

constexpr size_t kMostOps = 48;     // of a chain
constexpr size_t kMostSkipped = 8;  // operators between those of a chain, in the order, that are not in it
// Seconds that are added to what is to be avoided: operators that stay whole, strips beyond the bytes that are allowed.
constexpr double kAvoidWhole = 1e6;
constexpr double kAvoidLarge = 1e3;
// Strips must be predicted to be so much faster: the model knows neither copies in place nor how well a kernel runs on
// crops.
constexpr double kMargin = 1.25;

double bytes_of(const Value& value) {
  const auto dims = strip_dims(value);
  if (!dims.ok()) return 0;
  double bytes = value.type().element().bits() / 8;
  for (const int64_t extent : *dims) bytes *= static_cast<double>(extent);
  return bytes;
}

// Those that have operands, depth first from what is used elsewhere: producers first, and branches one after another.
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
  std::unordered_map<const Op*, size_t> visited_;  // the next operand
  std::vector<const Op*> path_;
};

// Elements of the operand of which most are read for one of the result; 1 where no rule tells.
double reads_per_element(const Op& op) {
  const auto dims = op.result_count() == 1 ? strip_dims(*op.result()) : Result<Dims>(Dims{});
  if (!dims.ok() || !op.def() || !op.def()->bounds_fn()) return 1;
  Box box;
  for (const int64_t extent : *dims) box.push_back({Expr(extent / 2), Expr(extent / 2)});
  const TypeSource types;
  const auto bounds = operand_bounds(StaticInferContext(op, types), 0, Shape(*dims), box);
  double most = 1;
  for (size_t i = 0; bounds.ok() && i < bounds->operands.size(); ++i) {
    double count = 1;
    for (const DimBounds& d : bounds->operands[i].dims) {
      const Expr extent = d.max - d.min + 1;
      if (extent.is_constant()) count *= static_cast<double>(std::max<int64_t>(extent.constant(), 1));
    }
    most = std::max(most, count);
  }
  return most;
}

double arithmetic_seconds(const Op& op, const CostModel& model) {
  const int64_t bits = op.result()->type().is_tensor() ? op.result()->type().element().bits() : 0;
  return bits < 8 ? 0 : bytes_of(*op.result()) / (bits / 8) * reads_per_element(op) * model.seconds_per_element;
}

StripCost whole_cost(const Op& op, const CostModel& model) {
  StripCost cost(model);
  std::set<const Value*> values{op.result()};
  for (const Value* operand : op.operands())
    if (operand) values.insert(operand);
  double bytes = 0;
  for (const Value* value : values) bytes += bytes_of(*value);
  cost.move_and_compute(model, bytes, bytes, arithmetic_seconds(op, model));
  cost.seconds += model.seconds_per_call;
  return cost;
}

// Answers of strip_reads(), asked once.
class ReadsCache {
 public:
  explicit ReadsCache(const RefusedOps& refused) : refused_(refused) {}

  const Result<StripReads>& of(const Op& op, const std::vector<int>& dims) {
    const auto [found, is_new] = known_.try_emplace({&op, dims}, std::nullopt);
    if (is_new) {
      const auto banned = refused_.find(&op);
      if (banned != refused_.end())
        found->second.emplace(error(Code::unsupported, banned->second));
      else
        found->second.emplace(strip_reads(op, dims));
    }
    return *found->second;
  }

  double arithmetic(const Op& op, const CostModel& model) {
    const auto [found, is_new] = arithmetic_.try_emplace(&op, 0.0);
    if (is_new) found->second = arithmetic_seconds(op, model);
    return found->second;
  }

 private:
  const RefusedOps& refused_;
  std::unordered_map<const Op*, double> arithmetic_;
  std::map<std::pair<const Op*, std::vector<int>>, std::optional<Result<StripReads>>> known_;
};

// One operator of a chain that is being looked at: how its result moves with the loops.
struct Member {
  const Op* op;
  std::vector<int> dims;
  const StripReads* reads;
  std::array<double, kMostStripLoops> rate{}, extra{};  // of its window: rate * step + extra indices
  std::array<double, kMostStripLoops> extent{};
  double bytes = 0;
  double arithmetic = 0;  // seconds
  bool strided = false;   // its strips have gaps between them in memory
};

// A chain that grows from its last operator back, and what it costs so far.
class Growing {
 public:
  Growing(ReadsCache& cache, const CostModel& model, size_t loops) : cache_(cache), model_(model), loops_(loops) {}

  const std::vector<Member>& members() const { return members_; }

  Result<void> begin(const Op& last, const std::vector<int>& dims) {
    Member m{.op = &last, .dims = dims, .reads = nullptr};
    m.rate.fill(1);
    return add(std::move(m));
  }

  // With a producer of what is in it. Code::unsupported with the reason.
  Result<void> add(const Op& op) {
    Member m{.op = &op, .dims = {}, .reads = nullptr};
    TENON_OK(find_motion(m));
    return add(std::move(m));
  }

  StripCost strips(const std::vector<int64_t>& steps, double& working_set) const {
    double count = 1, windows = 0, inside = 0, repacked = 0, moving = members_[0].bytes, still = 0, arithmetic = 0;
    for (size_t l = 0; l < loops_; ++l) count *= std::ceil(members_[0].extent[l] / static_cast<double>(steps[l]));
    for (const Member& m : members_) {
      repacked += m.strided ? 2 * m.bytes : 0;
      arithmetic += m.arithmetic;
      if (&m == &members_[0]) continue;
      windows += m.bytes * part_kept(m, steps);
      inside += 2 * m.bytes;
      repacked += m.strided ? 2 * m.bytes : 0;
    }
    for (const auto& [value, outside] : outside_) (outside.moves ? moving : still) += outside.bytes;
    working_set = windows + moving / count + still;
    StripCost cost(model_);
    cost.move(model_, moving, moving);
    cost.move(model_, still, still);
    cost.move_and_compute(model_, (count - 1) * still + inside, working_set, arithmetic);
    cost.move(model_, repacked, working_set);
    cost.seconds += (count * static_cast<double>(members_.size()) + 1) * model_.seconds_per_call;
    cost.peak_bytes = static_cast<int64_t>(windows);
    return cost;
  }

  StripCost whole() const {
    StripCost cost(model_);
    std::unordered_map<const Value*, double> live;
    for (size_t i = members_.size(); i-- > 0;) {
      const StripCost one = whole_cost(*members_[i].op, model_);
      cost.seconds += one.seconds;
      for (size_t k = 0; k < one.moved_bytes.size(); ++k) cost.moved_bytes[k] += one.moved_bytes[k];
      if (i > 0) live[members_[i].op->result()] = members_[i].bytes;
      double bytes = 0;
      for (const auto& [value, b] : live) bytes += b;
      cost.peak_bytes = std::max(cost.peak_bytes, static_cast<int64_t>(bytes));
      std::erase_if(live, [&](const auto& v) { return last_user(*v.first) >= i; });
    }
    return cost;
  }

 private:
  struct Outside {
    double bytes = 0;
    bool moves = false;
  };

  const Member* find(const Op* op) const {
    const auto found = index_.find(op);
    return found == index_.end() ? nullptr : &members_[found->second];
  }
  // The place of the member that uses it last: members are listed backwards.
  size_t last_user(const Value& value) const {
    size_t last = members_.size();
    for (const Use* use : value.uses())
      if (const auto found = index_.find(use->user()); found != index_.end()) last = std::min(last, found->second);
    return last;
  }

  Result<void> add(Member m) {
    const Result<StripReads>& reads = cache_.of(*m.op, m.dims);
    if (!reads.ok()) return reads.error();
    m.reads = &*reads;
    m.bytes = bytes_of(*m.op->result());
    m.arithmetic = cache_.arithmetic(*m.op, model_);
    const Dims dims = *strip_dims(*m.op->result());
    for (size_t l = 0; l < loops_; ++l) m.extent[l] = static_cast<double>(dims[static_cast<size_t>(m.dims[l])]);
    for (int d = 0; d < m.dims.back(); ++d)
      m.strided = m.strided || (dims[static_cast<size_t>(d)] > 1 && std::ranges::count(m.dims, d) == 0);
    outside_.erase(m.op->result());
    for (size_t i = 0; i < m.op->operand_count(); ++i) take_from_outside(m, i);
    index_[m.op] = members_.size();
    members_.push_back(std::move(m));
    return {};
  }

  void take_from_outside(const Member& m, size_t operand) {
    const Value* value = m.op->operand(operand);
    if (!value) return;
    Outside& outside = outside_[value];
    outside.bytes = bytes_of(*value);
    for (const StripWindow& w : m.reads->operands[operand]) outside.moves = outside.moves || w.loop >= 0;
  }

  // By all who use its result: they must be in the chain, and agree which dims the loops move.
  Result<void> find_motion(Member& m) const {
    const Value& result = *m.op->result();
    if (!result.used()) return error(Code::unsupported, "nothing uses ", m.op->describe());
    for (const Use* use : result.uses()) {
      const Member* user = find(use->user());
      if (result.region()->is_return(*use->user()))
        return error(Code::unsupported, "the result of ", m.op->describe(), " is an output of the graph");
      if (!user) return error(Code::unsupported, "the result of ", m.op->describe(), " is used outside of the chain");
      const std::vector<int> dims = user->reads->moved_dims(use->index(), loops_);
      if (dims.empty() || std::ranges::count(dims, -1))
        return error(Code::unsupported, "the result of ", m.op->describe(), " is read whole by ", user->op->describe());
      if (!m.dims.empty() && m.dims != dims)
        return error(Code::unsupported, "the result of ", m.op->describe(), " is read along different dims");
      m.dims = dims;
      for (size_t l = 0; l < loops_; ++l) {
        const StripWindow& w = user->reads->operands[use->index()][static_cast<size_t>(dims[l])];
        m.rate[l] = std::max(m.rate[l], user->rate[l] * w.rate);
        m.extra[l] = std::max({m.extra[l], w.span - w.rate, 0.0});
      }
    }
    return {};
  }

  // The part of its result that its window holds. Of an outer loop no window is kept: it is moved by whole strips.
  double part_kept(const Member& m, const std::vector<int64_t>& steps) const {
    double part = 1;
    for (size_t l = 0; l < loops_; ++l)
      part *= std::min(1.0, (std::ceil(static_cast<double>(steps[l]) * m.rate[l]) + m.extra[l]) / m.extent[l]);
    return part;
  }

  ReadsCache& cache_;
  const CostModel& model_;
  size_t loops_;
  std::vector<Member> members_;  // the last operator first
  std::unordered_map<const Op*, size_t> index_;
  std::map<const Value*, Outside> outside_;
};

// The chain that ends at an operator of the order and begins at another one.
struct Choice {
  size_t first = 0;
  std::vector<int> dims;  // of the last result, one a loop; none: the operator as a whole
  std::vector<int64_t> steps;
};

class Finder {
 public:
  Finder(std::span<const Op* const> ops, const StripOptions& options, const RefusedOps& refused)
      : options_(options), cache_(refused), order_(DepthFirst(ops).order) {}

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
    for (const Op* op : order_) whole_.push_back(whole_cost(*op, options_.model).seconds);
    cost_.assign(order_.size() + 1, INFINITY);
    into_.resize(order_.size() + 1);
    cost_[0] = 0;
    for (size_t last = 0; last < order_.size(); ++last) {
      consider(last, {last, {}, {}}, whole(last));
      for (const std::vector<int>& dims : loops_of(*order_[last]))
        if (options_.dim < 0 || dims.back() == options_.dim) grow(last, dims);
    }
  }

  double whole(size_t at) const { return whole_[at] + (options_.mode == StripMode::always ? kAvoidWhole : 0); }

  void consider(size_t last, Choice choice, double seconds) {
    const double cost = cost_[choice.first] + seconds;
    if (cost >= cost_[last + 1]) return;
    cost_[last + 1] = cost;
    into_[last + 1] = std::move(choice);
  }

  // Each dim by itself, and within a loop over one before it.
  static std::vector<std::vector<int>> loops_of(const Op& op) {
    std::vector<std::vector<int>> loops;
    if (op.result_count() != 1) return loops;
    const auto dims = strip_dims(*op.result());
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
    Growing chain(cache_, options_.model, dims.size());
    if (const auto begun = chain.begin(*order_[last], dims); !begun.ok()) return note(last, begun.error());
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
  // The first reason stands.
  void note(size_t at, const Error& why) { why_.try_emplace(order_[at], why.message()); }

  // What a strip may have in use: in any case less than the memory that holds anything is behind.
  double most_bytes() const {
    const auto& memories = options_.model.memories;
    const double small = memories.size() > 1 ? memories[memories.size() - 2].bytes : INFINITY;
    return options_.bytes > 0 ? std::min(small, static_cast<double>(options_.bytes)) : small;
  }

  // The cheapest steps, within the bytes that are allowed; of loops around the innermost one: 1.
  std::pair<std::vector<int64_t>, double> best_steps(const Growing& chain) const {
    std::pair<std::vector<int64_t>, double> best{{}, INFINITY};
    const size_t loops = chain.members()[0].dims.size();
    const double extent = chain.members()[0].extent[loops - 1];
    std::vector<int64_t> steps(loops, 1);
    if (options_.step > 0) steps.back() = options_.step;
    do {
      double working_set = 0;
      double seconds = chain.strips(steps, working_set).seconds;
      if (options_.mode == StripMode::automatic) seconds *= kMargin;
      if (working_set > most_bytes()) seconds += kAvoidLarge;
      if (seconds < best.second) best = {steps, seconds};
      steps.back() *= 2;
    } while (options_.step == 0 && static_cast<double>(steps.back()) < extent);
    return best;
  }

  Chain make(const Choice& choice, size_t last) {
    Growing growing(cache_, options_.model, choice.dims.size());
    TENON_CHECK(growing.begin(*order_[last], choice.dims).ok(), "a chain that was found cannot be grown again");
    // Operators that were left out are refused again.
    for (size_t i = last; i-- > choice.first;) (void)growing.add(*order_[i]).ok();
    Chain chain;
    for (size_t i = growing.members().size(); i-- > 0;) {
      const Member& m = growing.members()[i];
      chain.ops.push_back({m.op, m.dims, *m.reads});
    }
    for (size_t l = 0; l < choice.dims.size(); ++l) chain.loops.push_back({choice.dims[l], choice.steps[l]});
    double working_set = 0;
    chain.strips = growing.strips(choice.steps, working_set);
    chain.whole = growing.whole();
    return chain;
  }

  const StripOptions& options_;
  ReadsCache cache_;
  std::vector<const Op*> order_;
  std::vector<double> whole_;  // seconds of each operator by itself
  std::vector<double> cost_;   // of the operators before each place
  std::vector<Choice> into_;
  RefusedOps why_;
};

}  // namespace

Chains find_chains(std::span<const Op* const> ops, const StripOptions& options, const RefusedOps& refused) {
  if (options.mode == StripMode::never) return {};
  return Finder(ops, options, refused).run();
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
