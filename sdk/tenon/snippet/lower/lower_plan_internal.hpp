// Inside lowering: the planner of one body. Its parts are loop nests (lower_plan.cpp), what is hoisted out of their
// loops (lower_plan_hoist.cpp), the sweeps of a scope (lower_plan_sweeps.cpp), merged sweeps (lower_plan_merge.cpp,
// what they keep in lower_plan_kept.cpp), whole rows (lower_plan_rows.cpp), and several reduced dims as one
// (lower_plan_stretch.cpp).
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include <tenon/snippet/body/moved_sums_internal.hpp>
#include <tenon/snippet/lower/lower_nests_internal.hpp>

namespace tenon::snippet {

// Whether the dims of `inner` are the outermost ones of `all`.
bool is_prefix(DimSet inner, DimSet all);
std::vector<int> dims_of(DimSet set);

// Merges `both` sweeps, without the readers of `sums`, and adds nodes to `body`, which contains theirs. `lanes`: along
// rows, whose lanes are reduced at the end. lower_plan_moves.cpp
Merging merging_of(Body& body, const Sweep& both, const std::vector<MovedSum>& sums, bool lanes);
// Powers that `last` reads were kept relative to the running value of their group. It reads that value as well, from
// `ports` of each of `merging.subtracted`, and rescales them. lower_plan_kept.cpp
void move_kept(Body& body, Merging& merging, Phase& phase, const std::vector<MovedSum>& sums,
               const std::vector<int>& ports);

class Planner {
 public:
  Planner(const Body& body, const LowerOptions& options);
  LowerPlan run();

 private:
  // A value that one sweep computes and a later one needs.
  struct Kept {
    ValueId value = -1;
    size_t home = 0, last = 0;  // sweeps
    int port = -1;
  };

  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  DimSet varies(ValueId id) const { return body_.values[index(id)].varies; }
  bool swept(ValueId id) const { return (varies(id) & reduced_) != 0; }
  const BodyNode* reduction(ValueId id) const {
    const BodyNode* node = maker_[index(id)];
    return node && is_reduction(node->op) ? node : nullptr;
  }
  double cycles(const BodyNode& node) const { return options_.cycles ? options_.cycles(body_, node) : 1; }
  DimSet kept_dims(ValueId id) const { return varies(id) & ~reduced_; }
  int last_scratch() const {
    return static_cast<int>(body_.inputs.size() + body_.outputs.size() + plan_.scratch.size()) - 1;
  }

  // --- lower_plan.cpp ---
  void add_nests(std::vector<Access> roots);
  void add_nest(Nest nest);
  ElementType element_of(int port) const;
  ElementType element_in_memory(ValueId id) const;
  void outline(Nest& nest);
  void mark_needed(const Nest& nest);
  int level_of(const Nest& nest, ValueId id) const;

  // --- lower_plan_rows.cpp ---
  bool walks_rows(const Nest& nest) const;
  bool in_row(const Nest& nest, ValueId id) const;
  bool joins() const;
  bool may_go_behind(const Nest& nest) const;
  std::optional<size_t> skewed_with(const Nest& nest) const;
  std::optional<size_t> skewed_behind(const Scope& scope) const;
  void plan_rows(Nest& nest);
  void add_merged_rows(Nest& nest, const Merging& merging);

  // --- lower_plan_stretch.cpp ---
  int first_of_stretch() const;
  bool walks_stretch(const Sweep& sweep, int first) const;
  std::vector<Sweep*> sweeps_of(Phase& phase);
  void walk_stretches();

  // --- lower_plan_hoist.cpp ---
  void find_sources();
  bool offer(Access root);
  bool costs_more(ValueId id, double enough) const;
  bool costs_more_again(ValueId id, double enough) const;
  bool reads_several(ValueId id) const;
  template <class Cost>
  bool costs_more(ValueId id, double enough, Cost cost_of) const;
  std::vector<Access> find_hoisted(const Nest& nest);
  bool is_apart(const Nest& nest, ValueId id) const;
  std::vector<char> made_again(const Nest& nest) const;

  // --- lower_plan_sweeps.cpp ---
  void find_phases(const Nest& nest, int level);
  void plan_scope(Nest& nest, int level);
  void add_fold(Phase& phase, const BodyNode* node);
  static bool makes_once(const Nest& nest, DimSet dims, DimSet loops);
  void add_store(const Nest& nest, Phase& phase, Access store);
  void fill_sweeps(const Nest& nest, Scope& scope);
  void fill_sweep(const Nest& nest, Sweep& sweep, size_t number, double resweep_cycles, bool last);
  bool has_many_sources(ValueId id) const;
  bool is_stored_as_it_is(const Access& store) const;
  bool is_of_row(ValueId id) const;
  void keep_rows_late(const std::vector<Sweep*>& sweeps);
  void read_kept_rows(const std::vector<Sweep*>& sweeps);
  void keep(ValueId id, size_t reader);
  void place_kept(const Nest& nest, Kept& kept, const std::vector<Sweep*>& sweeps);
  int output_for(const Kept& kept, const std::vector<Sweep*>& sweeps, bool& stored) const;
  bool borrowed_within(int port, size_t home, size_t last) const;
  int add_scratch(const Nest& nest, ValueId id);

  // --- lower_plan_merge.cpp ---
  std::vector<char> behind_folds(const Sweep& sweep) const;
  std::vector<MovedSum> moved_sums(const Nest& nest, const Sweep& first, const Sweep& second) const;
  Sweep joined_sweep(const Sweep& first, const Sweep& second) const;
  bool may_move_kept(const Scope& scope, size_t first, const std::vector<MovedSum>& sums) const;
  void merge_sweeps(const Nest& nest, Scope& scope);
  void drop_unread_stores(const Nest& nest, const Scope& scope, Sweep& sweep) const;

  // The cost of a value that has a loop nest of its own.
  static constexpr double kSweepCycles = 1000;

  const Body& body_;
  const LowerOptions& options_;
  DimSet reduced_;
  std::vector<const BodyNode*> maker_;  // of each value; null: read from memory
  std::vector<Access> offered_;         // values in memory that earlier nests have computed
  std::vector<ValueId> order_;          // operands first
  std::vector<std::vector<ValueId>>
      sources_;                   // with keep_joined, skew_rows: the swept values in memory that each depends on
  std::vector<char> needed_;      // in the nest
  std::vector<int> phase_;        // in the scope
  std::vector<char> stored_;      // of each value: in an output of its type
  std::vector<int> computed_in_;  // the first sweep of the scope that computes a value, for all its elements
  std::vector<Kept> kept_;
  std::vector<std::pair<ValueId, size_t>> readers_;
  LowerPlan plan_;
};

}  // namespace tenon::snippet
