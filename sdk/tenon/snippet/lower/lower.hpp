// From a Body to a linear kernel: loops, memory accesses and unrolled copies become explicit.
//
//   for kept dims outside            scalar loops, outermost first; each value in the loop of its deepest dim
//     for reduced dims               a sweep; one per phase: a reduction that needs the result of another
//       for the innermost dim        vectors: several copies, then single ones, then one with some lanes (the tail)
//
// Terms: a row is the elements along the innermost dim. A sweep is one traversal of the reduced dims. In a column
// reduction the innermost dim is kept and dims around it are reduced.
//
// When the innermost dim is kept, its vector loop is outside the reduced ones, which then reduce whole vectors. With
// LowerOptions::whole_rows it is inside them, and the accumulators are in memory.
//
// An output whose dims are not the outermost loops of the others has a loop nest of its own, so that each element is
// stored once, even where an extent is 0.
//
// A value that is needed in a later phase, or that outer loops would recompute in each iteration, is recomputed when
// that is cheap. Otherwise it is kept: between phases in the memory of an output that is stored later, or in a scratch
// buffer. A value that does not depend on outer loops is hoisted into a loop nest of its own, before them.
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
  // Maximum unroll factor of vector loops. Long bodies without sums of floats get fewer copies.
  int unroll = 4;
  // Maximum number of rows processed side by side, when what is inside a row is reduced: 1, 2 or 4.
  int rows = 4;
  // Rows of at most so many elements are processed side by side: rows with one sweep, and rows with several sweeps,
  // which the caches have to hold meanwhile.
  int longest_row_once = 256, longest_row_again = 1024;
  // A row of known length that is reduced and has at most so many vectors is fully unrolled, and what later sweeps need
  // of it stays in registers as far as there are any; 0: none is.
  int held_vectors = 0;
  // Vector registers of the target. They bound how many copies of a body are interleaved.
  int vectors = 16;
  // Of these, the registers reserved for values that the copies share and for the scratch registers of emitters.
  int beside = 8;
  // Interleave all copies, whatever registers that takes: a later pass packs them into one vector.
  bool all_copies = false;
  // Cycles of one vector of `node` (JitterRow::cycles); null: 1 each.
  std::function<double(const Body& body, const BodyNode& node)> cycles = nullptr;
  // A value that takes at most this many cycles is recomputed rather than kept in memory.
  double recompute_cycles = 6;
  // The same for values that a later sweep over the reduced dims reads. What is kept between sweeps is as large as what
  // they traverse, so beyond the caches it costs a line written and one read for each vector.
  double resweep_cycles = 6;
  // For a body that does not reduce: a value for which goes_apart() holds, and which takes more cycles than this, is
  // computed before the loops over rows, one element per lane. Infinite: none is.
  double apart_cycles = std::numeric_limits<double>::infinity();
  // Sweeps keep values in scratch memory, not in outputs. Scratch memory is reused row after row and so stays in a near
  // cache; outputs are then written once and never read. For rows that fit the caches, of tensors that do not.
  bool keep_near = false;
  // Also keep, whatever it costs, a value whose operands have more bytes than it has, such as the sum of two tensors.
  bool keep_joined = false;
  // Later sweeps read a value from an output that stores it anyway, if it is computed from more than one tensor. For
  // outputs that are written to the caches.
  bool reread_outputs = false;
  // For column reductions: read whole rows in memory order, with the accumulators in scratch rows. Otherwise tiles go
  // down the columns, with the accumulators in registers. For tensors beyond the caches, where a tile would read only a
  // few lines of each row. Such kernels have LinearKernel::blocks.
  bool whole_rows = false;
  // With whole_rows: rows are short, so several are joined into one (LinearKernel::joined). No effect where the body
  // does not allow it.
  bool join_rows = false;
  // With whole_rows: the kernel iterates over blocks of columns itself (LinearKernel::Blocks::inside). The sweep that
  // stores a block is fused with a sweep over the next block, so that main memory is read and written at the same time.
  // What it stores is kept in scratch memory, not in outputs. No effect where the body does not allow it.
  bool behind_blocks = false;
  // Heads: an alignment prologue of some lanes precedes the vectors of a row that stores to an output, so that stores
  // of whole vectors are aligned wherever the row begins (`aligned` of Store). Not where lanes are reduced, because the
  // bits of sums would depend on addresses; nor with whole_rows.
  bool heads = false;
  // Merge two sweeps of which the second sums a function of the first's result, as in softmax and variances, where the
  // running sums can be rescaled (LinearKernel::merged). This saves reading the elements once, and costs one rounding
  // more each time the first result changes. For stretches (contiguous runs of elements) that no cache holds. With
  // behind_blocks, only where the last sweep reads nothing of the two but powers, which are kept and rescaled.
  bool merge_sweeps = false;
  // Skew rows with two sweeps, where the first reduces and the second stores, and theirs is the only loop nest: the
  // store of a row is fused with the reduction of the next one (LinearKernel::skewed), so that main memory is read and
  // written at the same time. What the store reads is kept in one scratch row, which the reduction of the next row
  // overwrites behind it. No effect where the body does not allow it.
  bool skew_rows = false;
  // Rows are reduced one by one, and so many at most are stored in one sweep (LinearKernel::stored_together), so that
  // what they share is read once for all of them: 1, 2 or 4. No effect where the body does not allow it, nor with
  // skew_rows or heads.
  int stored_together = 1;
  // With skew_rows, where there are three sweeps and the first keeps nothing, as in softmax: fuses the first sweep of
  // the row after next into the same loop, so that no sweep waits for memory alone. Needs registers for all three.
  bool skew_twice = false;
};

// Whether rows of columns may be joined: every reduction and its operands must vary over the two innermost dims, of
// which the outer one is reduced. A value that varies over the rows alone would differ within a joined row.
TENON_API bool may_join_rows(const Body& body);

// Whether two sweeps may be merged (LowerOptions::merge_sweeps), by a cheap test: is there a sum of floats that depends
// on the result of another reduction?
TENON_API bool may_merge_sweeps(const Body& body);

// Whether a value that varies over outer dims alone may have loops of its own, as vectors with one element per row
// (LowerOptions::apart_cycles). True where extents say that there are whole vectors of them, and that rows are so short
// that computing the value row by row, with all lanes equal, would matter.
TENON_API bool goes_apart(const Body& body, ValueId id, int lanes);

// `body` must be verified. The kernel serves any extents. When it is called, no output may overlap an input or another
// output. Exception: in a body that does not reduce and whose outputs all vary over the same dims, an output may
// coincide with an input of these dims and of the same element size.
// Lanes at and beyond the end of a tail may hold any value, so elementwise instructions must accept any operand there.
TENON_API Result<LinearKernel> lower(const Body& body, const LowerOptions& options);

// A body that does not reduce, as instructions for one vector. They are part of `kernel`, which provides the registers
// `inputs`: one per input, in order, with equal lanes for inputs that do not vary over the innermost dim. No memory is
// accessed. A snippet becomes the epilogue of a compute kernel, on its register tile, in this way.
struct InlineCode {
  std::vector<Instruction> invariant;  // constants: executed once, anywhere before `body`
  std::vector<Instruction> body;       // executed for each vector
  std::vector<RegisterId> outputs;     // one per output; an input's register when the output is that input
};
TENON_API Result<InlineCode> lower_inline(const Body& body, LinearKernel& kernel, std::span<const RegisterId> inputs);

}  // namespace tenon::snippet
