// Inside of the room: what lowering decides before it writes an instruction: which loops there are, what each of them
// computes, and which values are kept in memory.
#pragma once
#include <optional>
#include <vector>

#include <tenon/snippet/body/body.hpp>
#include <tenon/snippet/lower/lower.hpp>

namespace tenon::snippet {

// Memory that a value goes to or comes from: a port of the kernel (inputs, outputs, scratch buffers).
struct Access {
  ValueId value = -1;
  int port = -1;
};

// One run over reduced dims.
struct Sweep {
  std::vector<int> loops;                   // its dims, outermost first
  std::vector<ValueId> values = {};         // computed in it, operands first
  std::vector<Access> reads = {};           // kept by an earlier sweep
  std::vector<Access> stores = {};          // outputs, and what later sweeps read
  std::vector<const BodyNode*> folds = {};  // reductions
};

// Two sweeps in one, by groups of as many vectors as registers hold: what a group folds into by the first is added to
// what is folded so far, the sums of the second are moved to that, and the group's own are added. Lanes go by
// themselves; in the end their sums are moved to the whole of the first. Values behind those of the body, and nodes,
// are in LowerPlan::body.
struct Merging {
  struct Fold {
    BodyNode node;
    ValueId state = -1, group = -1, next = -1;  // so far, of a group, of both
    // Of a sum of the second: what it goes by so far, and in the end; -1: it is not wanted in the end. `first_moment`:
    // the sum of differences that goes with one of squares. `settled`: by what it goes by in the end.
    ValueId from = -1, by = -1, first_moment = -1, settled = -1;
    ValueId of_mean = -1;  // of such a sum of differences: the fold whose mean they are from
    ValueId right = -1;    // of the first: what is folded in the end, `state` or a value of `finish`
  };
  // What the second subtracts.
  struct Subtracted {
    ValueId whole = -1, state = -1, next = -1;
    bool is_fold = false;  // what the first folds, as it is
  };
  struct Count {
    ValueId state = -1, group = -1, next = -1;
  };
  Sweep sweep;                              // what goes by no fold, and the folds of the first
  std::vector<Fold> folds = {}, sums = {};  // of the first, of the second
  std::optional<Count> count = std::nullopt;
  std::vector<Subtracted> subtracted = {};
  // Nodes, operands first: values of `second` once `subtracted` is known; `next` of all but sums, and these moved;
  // `next` of sums; what is folded of lanes; what is settled.
  std::vector<ValueId> second = {}, advance = {}, add = {}, finish = {}, settle = {};
  // Where a sweep one block behind moves what is kept of `second`: what it goes by in the end, negated, which waits in
  // a row, since `whole` is of the next block then.
  std::vector<ValueId> negated = {};
};

// Values that do not vary over reduced dims, then the sweeps that need these and no later ones.
struct Phase {
  std::vector<ValueId> values;
  std::vector<Sweep> sweeps;
  int merges = -1, settles = -1;  // before its sweeps: the one sweep of a merging; its sums, which are known then
};

// What one iteration of the loops around it does, before the next inner loop.
struct Scope {
  std::vector<Phase> phases;
};

// Scalar loops over `kept`, and when `tiled` a vector loop over `vector` inside of them. scopes[0] stands before all
// loops, scopes[i] in the i-th one.
struct Nest {
  std::vector<int> kept;
  int vector = -1;  // the innermost dim of the nest; kept when `tiled`, else reduced; -1: the nest has no dims
  bool tiled = false;
  std::vector<Scope> scopes;
  DimSet kept_set = 0;
  std::vector<Access> roots;  // what it is there for: outputs, and values that later nests read
  std::vector<Access> reads;  // values of earlier nests that it takes from memory
  // Of a tiled nest: no tiles; each phase and sweep of the last scope walks the whole row by itself, and these values
  // go from one to the other in scratch rows.
  bool whole_rows = false;
  std::vector<Access> rows = {};
};

// A scratch buffer that sweeps of one scope share, or nests.
struct ScratchPlan {
  ElementType element;
  DimSet dims = 0;
  bool tile = false;  // holds the lanes of one tile at each point
};

struct LowerPlan {
  std::vector<Nest> nests;             // in the order in which they run
  std::vector<ScratchPlan> scratch;    // ports after those of the body
  std::vector<Merging> mergings = {};  // of phases
  Body body = {};                      // with what they, and a stretch, need; empty: there is neither
  bool joined = false;                 // the only nest walks whole rows, joined
  int stretch = -1;                    // LinearKernel::stretch; `body` then has its dim behind the last
  // The only nest stores one row along with the fold of the next that stands in this phase of the last scope.
  std::optional<size_t> skewed_with = std::nullopt;
  // And along with the first walk of the row behind that, which stands in this one.
  std::optional<size_t> skewed_behind = std::nullopt;
  bool behind = false;  // the last sweep of the only nest, which walks whole rows, goes one block behind
};

LowerPlan plan_lowering(const Body& body, const LowerOptions& options);

inline bool contains(DimSet set, int dim) { return dim >= 0 && (set >> dim & 1) != 0; }

}  // namespace tenon::snippet
