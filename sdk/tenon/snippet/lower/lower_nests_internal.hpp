// Inside the room: the plan that lowering makes before it writes an instruction: which loops there are, what each of
// them computes, and which values are kept in memory.
#pragma once
#include <optional>
#include <vector>

#include <tenon/snippet/body/body.hpp>
#include <tenon/snippet/lower/lower.hpp>

namespace tenon::snippet {

// The memory of a value that is read or written: a port of the kernel (inputs, outputs, scratch buffers).
struct Access {
  ValueId value = -1;
  int port = -1;
};

// One traversal of reduced dims.
struct Sweep {
  std::vector<int> loops;                   // its dims, outermost first
  std::vector<ValueId> values = {};         // computed in it, operands first
  std::vector<Access> reads = {};           // kept by an earlier sweep
  std::vector<Access> stores = {};          // outputs, and what later sweeps read
  std::vector<const BodyNode*> folds = {};  // reductions
};

// Two merged sweeps, processed in groups of as many vectors as registers hold. The group's result of the first
// reduction is combined with the running one, the running sums of the second are rescaled to that, and the group's own
// sums are added. Each lane is independent; at the end its sums are rescaled to the overall result of the first
// reduction. Values numbered after those of the body, and their nodes, are in LowerPlan::body.
struct Merging {
  struct Fold {
    BodyNode node;
    ValueId state = -1, group = -1, next = -1;  // running, of a group, of both
    // For a sum of the second reduction: what it is relative to while running, and at the end; -1: it is not needed at
    // the end. `first_moment`: the sum of differences that accompanies a sum of squares. `settled`: relative to the
    // end.
    ValueId from = -1, by = -1, first_moment = -1, settled = -1;
    ValueId of_mean = -1;  // of such a sum of differences: the reduction from whose mean they are
    ValueId right = -1;    // of the first: the final result, `state` or a value of `finish`
  };
  // What the terms of the second reduction subtract.
  struct Subtracted {
    ValueId whole = -1, state = -1, next = -1;
    bool is_fold = false;  // the result of the first reduction itself
  };
  struct Count {
    ValueId state = -1, group = -1, next = -1;
  };
  Sweep sweep;                              // what depends on no reduction, and the reductions of the first sweep
  std::vector<Fold> folds = {}, sums = {};  // of the first sweep, of the second
  std::optional<Count> count = std::nullopt;
  std::vector<Subtracted> subtracted = {};
  // Nodes, operands first: values of `second` once `subtracted` is known; `next` of all but sums, and rescaled sums;
  // `next` of sums; reductions over lanes; settled sums.
  std::vector<ValueId> second = {}, advance = {}, add = {}, finish = {}, settle = {};
  // For a sweep one block behind that rescales the kept values of `second`: the final value that they are relative to,
  // negated. It is kept in a row, because `whole` belongs to the next block by then.
  std::vector<ValueId> negated = {};
};

// Values that do not vary over reduced dims, then the sweeps that need these and no later values.
struct Phase {
  std::vector<ValueId> values;
  std::vector<Sweep> sweeps;
  int merges = -1, settles = -1;  // before its sweeps: the merged sweep; or a merging whose sums are final then
};

// The work of one iteration of the enclosing loops, before the next inner loop.
struct Scope {
  std::vector<Phase> phases;
};

// Scalar loops over `kept`, and, when `tiled`, a vector loop over `vector` inside them. scopes[0] is before all loops,
// scopes[i] in the i-th one.
struct Nest {
  std::vector<int> kept;
  int vector = -1;  // the innermost dim of the nest; kept when `tiled`, else reduced; -1: the nest has no dims
  bool tiled = false;
  std::vector<Scope> scopes;
  DimSet kept_set = 0;
  std::vector<Access> roots;  // its results: outputs, and values that later nests read
  std::vector<Access> reads;  // values of earlier nests that it reads from memory
  // For a tiled nest without tiles: each phase and sweep of the last scope traverses the whole row separately, and
  // these values are passed from one to the other in scratch rows.
  bool whole_rows = false;
  std::vector<Access> rows = {};
};

// A scratch buffer, shared by the sweeps of one scope or by nests.
struct ScratchPlan {
  ElementType element;
  DimSet dims = 0;
  bool tile = false;  // holds the lanes of one tile at each point
};

struct LowerPlan {
  std::vector<Nest> nests;             // in the order in which they run
  std::vector<ScratchPlan> scratch;    // ports after those of the body
  std::vector<Merging> mergings = {};  // of phases
  Body body = {};                      // the body extended for these, and for a stretch; empty: there is neither
  bool joined = false;                 // the only nest traverses whole rows, joined
  int stretch = -1;                    // LinearKernel::stretch; the dim after the last one of `body` is the stretch
  // The only nest fuses the store of one row with the reduction of the next one, which is in this phase of the last
  // scope.
  std::optional<size_t> skewed_with = std::nullopt;
  // And with the first sweep of the row after that, which is in this one.
  std::optional<size_t> skewed_behind = std::nullopt;
  bool behind = false;  // the last sweep of the only nest, which traverses whole rows, runs one block behind
};

LowerPlan plan_lowering(const Body& body, const LowerOptions& options);

inline bool contains(DimSet set, int dim) { return dim >= 0 && (set >> dim & 1) != 0; }

}  // namespace tenon::snippet
