// Inside the room: a chain during the search.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include <tenon/irgen/chain_cost_internal.hpp>

namespace tenon::irgen::detail {

// Cached answers of strip_reads().
class ReadsCache {
 public:
  ReadsCache(const StripOptions& options, const RefusedOps& refused, const TypeSource& types)
      : options_(options), refused_(refused), types_(types) {}

  const TypeSource& types() const { return types_; }

  const Result<StripReads>& of(const Op& op, size_t result, const std::vector<int>& dims) {
    const auto [found, is_new] = known_.try_emplace({op.result(result), dims}, std::nullopt);
    if (is_new) {
      const auto banned = refused_.find(&op);
      if (banned != refused_.end())
        found->second.emplace(error(Code::unsupported, banned->second));
      else
        found->second.emplace(strip_reads(op, result, dims, types_));
    }
    return *found->second;
  }

  double arithmetic(const Op& op, size_t result) {
    const auto [found, is_new] = arithmetic_.try_emplace(op.result(result), 0.0);
    if (is_new) found->second = arithmetic_seconds(op, result, options_, types_);
    return found->second;
  }

 private:
  const StripOptions& options_;
  const RefusedOps& refused_;
  const TypeSource& types_;
  std::unordered_map<const Value*, double> arithmetic_;
  std::map<std::pair<const Value*, std::vector<int>>, std::optional<Result<StripReads>>> known_;
};

// One result of an operator of the chain under construction: how it moves with the loops.
struct Member {
  const Op* op;
  size_t result = 0;
  std::vector<int> dims = {};
  const StripReads* reads = nullptr;
  std::array<double, kMostStripLoops> rate{}, extra{};  // of its window: rate * step + extra indices
  std::array<double, kMostStripLoops> extent{};
  double bytes = 0;
  double arithmetic = 0;  // seconds
  double again = 0;       // seconds per strip for operands that every strip reads as a whole
  bool strided = false;   // its strips have gaps between them in memory

  const Value& value() const { return *op->result(result); }
};

// A chain that grows backwards from its last operator, with its cost so far.
class GrowingChain {
 public:
  GrowingChain(ReadsCache& cache, const StripOptions& options, size_t loops)
      : cache_(cache), options_(options), model_(options.model), loops_(loops) {}

  const std::vector<Member>& members() const { return members_; }

  Result<void> begin(const Op& last, size_t result, const std::vector<int>& dims);

  // Adds a producer of values in the chain, with all its used results. Code::unsupported with the reason.
  Result<void> add(const Op& op);

  StripCost strips(const std::vector<int64_t>& steps, double& working_set) const;

  StripCost whole() const;

 private:
  struct Outside {
    double bytes = 0;
    bool moves = false;
  };

  // Index of the first member that uses a value last: members are listed backwards.
  size_t last_user(const Value& value) const;

  // Seconds for the operands that no loop moves.
  double rereading(const Member& m) const;
  // Determines what the member reads, moves and costs; adds nothing yet.
  Result<void> look_at(Member& m);
  void add(Member m);

  void take_from_outside(const Member& m, size_t operand);

  // Derived from all readers of its result: they must be in the chain, and agree on which dims the loops move.
  Result<void> find_motion(Member& m) const;
  Result<void> move_with(Member& m, const Member& user, size_t operand) const;

  // The part of its result that its window keeps. For an outer loop no window is kept: it advances by whole strips.
  double part_kept(const Member& m, const std::vector<int64_t>& steps) const;

  ReadsCache& cache_;
  const StripOptions& options_;
  const CostModel& model_;
  size_t loops_;
  std::vector<Member> members_;                               // the last operator first
  std::unordered_map<const Op*, std::vector<size_t>> index_;  // of its results
  std::map<const Value*, Outside> outside_;
};

}  // namespace tenon::irgen::detail
