// From a Body to a linear kernel: loops, memory and unrolled copies become explicit.
//
//   for kept dims outside            scalar loops, outermost first; each value at the loop of its deepest dim
//     for reduced dims               once for each phase: one reduction needs the result of another
//       for the innermost dim        vectors: several copies, then single ones, then one with some lanes (the tail)
//
// When the innermost dim is kept, its vector loop stands outside of the reduced ones, which then fold whole vectors; or
// inside of them, with what they fold into in memory (LowerOptions::whole_rows).
// An output whose dims are not the outermost loops of the others has loops of its own, so that each element is stored
// once, whatever extents are 0. A value that is needed again in a later phase, or that outer loops would make again and
// again, is made again when it is cheap. Else it is kept: between phases in the memory of an output that is stored
// later, or in a scratch buffer; from outer loops it is taken into loops of its own, before them.
#pragma once
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include <tenon/snippet/body/body.hpp>
#include <tenon/snippet/linear/linear.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::snippet {

struct LowerOptions {
  int lanes = 8;  // vector bits / bits of the widest lane type of the body
  // Copies of a vector loop's body at most; long bodies that sum no floats get fewer.
  int unroll = 4;
  // Rows (elements of the innermost kept dim, when what is inside is reduced) that go side by side at most: 1, 2 or 4.
  int rows = 4;
  // Elements of a row up to which it goes with others: of rows that are walked once, and of those that are walked
  // again, which the caches have to hold meanwhile.
  int longest_row_once = 256, longest_row_again = 1024;
  // A row of known length that is folded and has at most so many vectors is written out with no loop over them, and
  // what later sweeps want of it stays in registers as far as there are some; 0: none is.
  int held_vectors = 0;
  // Vector registers that the target has: so many copies of a body as they hold go through it side by side.
  int vectors = 16;
  // Of these: for what copies side by side share, and for what emitters need.
  int beside = 8;
  // Copies all go side by side, however many registers they take: a pass makes one of them.
  bool all_copies = false;
  // Cycles of one vector of `node` (JitterRow::cycles); null: 1 each.
  std::function<double(const Body& body, const BodyNode& node)> cycles = nullptr;
  // A value of at most so many cycles is computed again rather than kept in memory.
  double recompute_cycles = 6;
  // The same for values that a later sweep over the reduced dims reads: what is kept between sweeps is as large as what
  // they walk, so that beyond the caches it costs a line written and one read for each vector.
  double resweep_cycles = 6;
  // Of a body that does not reduce: what goes_apart() and takes more than so many cycles is made before the loops over
  // rows, as many elements at once as lanes hold. Infinite: nothing is.
  double apart_cycles = std::numeric_limits<double>::infinity();
  // What sweeps keep waits in scratch memory, which serves row after row and so stays near, not in outputs, which are
  // then written once and never read. For rows that fit the caches, of tensors that do not.
  bool keep_near = false;
  // Kept, whatever it costs, is also what takes more bytes to make again than it has, as the sum of two tensors.
  bool keep_joined = false;
  // What an output has anyway, and is made of more than one tensor, is read from there by later sweeps: for rows that
  // are written to the caches.
  bool reread_outputs = false;
  // Columns (the innermost dim is kept, dims around it are folded): whole rows in the order in which they lie, with
  // what columns fold into in scratch rows. Else tiles go down the columns, with that in registers. For tensors beyond
  // the caches, from which a tile takes a few lines of each row. Such kernels have LinearKernel::blocks.
  bool whole_rows = false;
  // Of columns in whole rows: the rows are short, so several are walked as one (LinearKernel::joined). Where the body
  // does not allow it, as without.
  bool join_rows = false;
  // Of columns in whole rows, where the body allows it: the kernel goes over blocks of columns itself
  // (LinearKernel::Blocks::inside). The walk that stores what becomes of a block goes along with one over the next
  // block, so that main memory is read and written at once. What it stores waits in scratch memory, not in outputs.
  bool behind_blocks = false;
  // Before the vectors of a row that stores to an output go some lanes, so that stores of whole vectors begin at
  // multiples of their bytes wherever the row begins (`aligned` of Store). Not where lanes are folded: bits of sums
  // would depend on addresses; nor of whole rows of columns.
  bool heads = false;
  // Two sweeps of which the second sums by what the first folds, as those of softmax and of variances, are made one
  // where the sums can be moved (LinearKernel::merged): what is walked is read once less, for a rounding more each time
  // that the first's fold changes. For stretches that no cache holds. With behind_blocks, only where the last sweep
  // reads nothing of the two but powers: they are kept, and moved.
  bool merge_sweeps = false;
  // Of rows that two sweeps walk, of which the first folds and the second stores, the nest being the only one: the
  // store of a row goes along with the fold of the next (LinearKernel::skewed), so that main memory is read and written
  // at once. What the store reads of a row waits in one scratch row, which the fold of the next overwrites behind it.
  // Where the body does not allow it, as without.
  bool skew_rows = false;
  // Rows that are folded one by one, of which so many are stored in one walk at most (LinearKernel::stored_together),
  // so that what they share is read once for all of them: 1, 2 or 4. Where the body does not allow it, as without; not
  // with skew_rows or heads.
  int stored_together = 1;
  // Where three walks follow one another and the first keeps nothing, as of softmax: that of the row behind the next
  // goes along as well, in the same loop, so that no walk waits for memory alone. Takes registers for all three.
  bool skew_twice = false;
};

// May rows of columns be joined: does all that folds or is folded vary over the two innermost dims, of which the outer
// one is folded? What varies over the rows alone would be another value for each row of a joined one.
TENON_API bool may_join_rows(const Body& body);

// May two sweeps be made one (LowerOptions::merge_sweeps), as far as can be told cheaply: is there a sum of floats that
// goes by what another reduction makes?
TENON_API bool may_merge_sweeps(const Body& body);

// May a value that varies over outer dims alone have loops of its own, as vectors of one element a row
// (LowerOptions::apart_cycles)? Where extents say that there are vectors of them, and that rows are so short that one
// element in all lanes of a vector, row by row, takes its time.
TENON_API bool goes_apart(const Body& body, ValueId id, int lanes);

// The body must be verified. The kernel holds any extents. When it is called, no output may overlap an input or another
// output. Only in a body that does not reduce, and whose outputs vary over the same dims, may an output lie exactly on
// an input of these dims and of its element size.
// Lanes at and behind the end of a tail hold anything: elementwise instructions must bear any operand there.
TENON_API Result<LinearKernel> lower(const Body& body, const LowerOptions& options);

// A body that does not reduce, as instructions for one vector of `kernel`, which has the registers `inputs` (one each
// input, in order; in all lanes the same for those that do not vary over the innermost dim). No memory is touched: that
// is how a snippet becomes the epilogue of a compute kernel, on its register tile.
struct InlineCode {
  std::vector<Instruction> invariant;  // constants: once, anywhere before
  std::vector<Instruction> body;       // again for each vector
  std::vector<RegisterId> outputs;     // one each output; an input's register when the output is that input
};
TENON_API Result<InlineCode> lower_inline(const Body& body, LinearKernel& kernel, std::span<const RegisterId> inputs);

}  // namespace tenon::snippet
