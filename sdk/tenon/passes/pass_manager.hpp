// Passes and the manager that runs them.
//
//   // transpose(transpose(x, p), q) -> transpose(x, p then q); gone when the result is the identity.
//   // Needs: inferred types. Keeps: output names. Leaves dead producers for remove-dead.
//   Result<Change> fold_transpose(Graph& graph);
//
// A pass is a named function with a contract of two lines. Passes that can be requested by name are registered; a
// plugin adds its own to the manager of a phase, before or after a named pass.
#pragma once
#include <functional>
#include <initializer_list>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

enum class Change : bool { no, yes };

struct Pass {
  std::string name;      // verb-noun
  std::string contract;  // what it needs, keeps and leaves
  std::function<Result<Change>(Graph&)> run;
  std::vector<std::string> needs = {};  // passes that must be somewhere before this one
};

// Named passes of the core and of plugins. Any thread; a name already in use is Code::already_exists.
TENON_API Result<void> register_pass(Pass pass);
TENON_API const Pass* find_pass(std::string_view name);
TENON_API std::vector<const Pass*> all_passes();  // by name
struct TENON_API PassRegistration {
  explicit PassRegistration(std::vector<Pass> passes);
};

struct PassOptions {
  bool verify_each = false;
  // Receives the text of the graph after each pass named in `dump_after` ("*": every pass that changed it).
  std::set<std::string> dump_after;
  std::function<void(const std::string& pass, const Graph& graph)> dump;
  std::string stop_after;  // the name of a pass; later passes are not run
  // Only the first `limit` runs of passes are executed; negative: all. For bisecting.
  int64_t limit = -1;
};

struct PassTiming {
  std::string pass;
  int runs = 0;
  bool changed = false;
  double milliseconds = 0;
};
struct TENON_API PassReport {
  std::vector<PassTiming> passes;  // in order; all runs of a repeated pass together
  int64_t runs = 0;
  double milliseconds = 0;
  std::string last;               // the pass that ran last; empty when none did
  std::string to_string() const;  // a table
};

class TENON_API PassManager {
 public:
  explicit PassManager(std::string name = "passes") : name_(std::move(name)) {}
  const std::string& name() const { return name_; }

  // Appends the pass. Passes that it needs and that are missing are taken from the registry and inserted before it.
  // Errors, with the chain of needs: a need that is not registered, cyclic needs, a pass without a name or function.
  Result<void> add(Pass pass);
  Result<void> add(std::string_view registered);
  Result<void> add_all(const std::vector<std::string>& registered);
  // Appends a group of passes that run in turn until none of them has changed anything since the last change: on a
  // graph where nothing changes, each runs once. There are at most kMostRounds rounds, so that the work stays linear in
  // the graph: each round may leave to the next a chain as long as the graph, and passes may undo each other. The
  // result is then correct, though perhaps not minimal; a warning says so.
  static constexpr int kMostRounds = 32;
  Result<void> add_until_unchanged(const std::vector<Pass>& passes);
  Result<void> add_until_unchanged(std::initializer_list<std::string_view> registered);
  // Inserts next to the first pass of that name, into its group if it has one; Code::not_found lists the passes.
  Result<void> insert_before(std::string_view name, Pass pass);
  Result<void> insert_after(std::string_view name, Pass pass);
  Result<void> remove(std::string_view name);
  const std::vector<Pass>& passes() const { return passes_; }

  // Runs all passes in order. An error carries "in pass 'NAME'". With verify_each the verifier's error names the pass
  // that broke the graph.
  Result<PassReport> run(Graph& graph, const PassOptions& options = {}) const;

 private:
  class Run;
  static constexpr int kNoGroup = 0;
  Result<void> insert(std::span<const Pass> passes, size_t at, int group);
  Result<void> resolve(const Pass& pass, size_t at, int group, std::vector<std::string>& chain, size_t& inserted);
  Result<size_t> position(std::string_view name) const;

  std::string name_;
  std::vector<Pass> passes_;
  std::vector<int> groups_;  // per pass: the group with which it repeats
};

// The first number of steps in (low, high] after which `good` is false. It must hold after `low` steps and not after
// `high` > `low`. Calls it log2(high - low) times, rounded up. Where good and bad alternate, finds one transition from
// good to bad.
TENON_API Result<int64_t> first_bad_step(int64_t low, int64_t high, const std::function<Result<bool>(int64_t)>& good);

// The first run of a pass after which `good` is false, by binary search over PassOptions::limit (good must hold with 0
// runs and not with all): the run's number and the name of the pass.
struct BisectResult {
  int64_t run = -1;  // -1: no run makes it bad
  std::string pass;
};
TENON_API Result<BisectResult> bisect_passes(const PassManager& manager, const Graph& graph,
                                             const std::function<Result<bool>(const Graph&)>& good);

}  // namespace tenon
