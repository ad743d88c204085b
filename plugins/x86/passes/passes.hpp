// Passes of this plugin on linear kernels, before registers are allocated.
//
// Terms: a row is the elements along the innermost dim; a sweep is one traversal of the reduced dims; a stretch is a
// contiguous part of an array that a loop traverses as one stream; a form is one variant of a kernel's code. A register
// is uniform (`alike` in names) when all of its lanes hold the same value. A value is near when a near cache holds it.
//
// The passes insert instructions of the plugin's own, with rows in the jitter table (structure.hpp):
//
//   Fma a, b, c   a * b + c      Fms a, b, c   a * b - c      Fnma a, b, c   c - a * b       rounded once
//   AddMemory SubMemory MulMemory DivMemory MaxMemory MinMemory  [memory], a       a op memory
//   FmaMemory [memory], a, c     a * memory + c   (attribute `place` 1)
//   FmaMemory [memory], a, b     a * b + memory   (attribute `place` 2)
//   Less a, b, m and other comparisons   where m holds, else false; attribute `negated` 1: the opposite (avx512)
//   DivAlike a, b; SqrtAlike x   Div, Sqrt of uniform operands
//   DivStanding x, s, h, l, o; OddDivisor s   x / s, s loop-invariant; 1 / s is h + l except where o is true
//   DivOdd q, x, s, o            q, but x / s in all lanes where any lane of o is true
//   DivOddMemory [memory], q, x, o   the same, s in memory
//   SqrtByProducts x             Sqrt, of numbers from 2^-100 on, 0, infinity and NaN (avx512)
//   MulByPower x {power = n}     x times 2^n, of integers
//   StoreFour [memory], a        stores the first four lanes
//   MarkNaN n, a, b              n, with all bits set in lanes where a or b is NaN
//   PutNaN a, n                  a, or NaN in lanes that MarkNaN has marked
//   LoadHalves [memory]          Load of a vector of 512 bits as two of 256
//   ConvertInRange x             floats to integers of 32 bits; 0x80000000 where the result is not one of them
//   RoundInRange x               the same, rounded to the nearest, ties to even
//   ClampLowOfNaN x, low         ClampLow, but low where x is NaN
//   AddBytes and others          four vectors of 32-bit lanes as one of bytes (emitters/bytes.cpp)
//   LoadBytes, StoreBytes        of such vectors; StoreBytesStreaming is the non-temporal StoreBytes
//   PackBytes a, b, c, d; UnpackBytes0 x to UnpackBytes3 x   to bytes and back; attribute `u8` or `i8` 1: for lanes
//                                that are values of this type or 0x80000000; with `u8`, negative lanes become 0; with
//                                `i8` and `number` 1, lanes of the type or below -128, which become -128
//   ByteTable x, ByteTableBytes x   entries of a table of 256 bytes (emitters/byte_tables.hpp)
//   SpreadByte x, SpreadMask x   of a uniform x: one byte or mask value in all bytes
//   TabulatedErf x, TabulatedTanh x   the function of a polynomial of x, attribute `of` (emitters/odd_table.hpp)
//   PrefetchWrite [memory]       prefetches the cache line there to be written; an unmapped address does no harm
//   PrefetchRead [memory]        prefetches it to be read; attribute `second` 1: into L2
//   LineIndex [memory], LineMask [memory], TurnLanes x, index   for rows that begin anywhere (passes/lines.cpp)
//   StoreLine [memory], turned, left, mask   non-temporal store of the line that contains [memory]
//   StoreLineRest [memory], left, mask       stores the part of that line before [memory]
//   StageBegin, StageItem [memory], StageLine, StageDone [memory], StageRest   staging of items (passes/items.cpp)
//   StageRowsBegin [memory] -> pointer, StageRows [memory] -> pointer, StageRowsRest [memory]   staging of rows
//   FetchOn [memory] -> pointer  PrefetchRead into L2 there; the result is `bytes` further on
//   ErfInTurn2 a, b; ExpInTurn4 a, b, c, d; and others   the function of each operand, interleaved (forms/in_turn.cpp)
//   StoreStreaming [memory], a   non-temporal Store of whole vectors; the address is a multiple of the bytes stored.
//                                Kernels that contain one end with a fence (assembly.hpp)
//
// Attribute `broadcast` 1: memory is one element, for all lanes (avx512).
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <tenon/snippet/body/body.hpp>
#include <tenon/snippet/linear/linear.hpp>
#include <tenon/support/result.hpp>

#include "x86/isa.hpp"

namespace tenon::x86 {

inline constexpr int kLineBytes = 64;

// Prefetch distance of a loop, in cache lines: `lines` for each stretch that it traverses, but at most `together` for
// all of them, which L1 has to hold until they are used.
struct Ahead {
  int lines = 0;                       // 0: nothing is prefetched
  int together = 0;                    // 0: no limit
  bool to_second = false;              // reads are prefetched into L2
  int64_t of(size_t stretches) const;  // the distance for each of them, at least 1
};

// How many stretches of a row one loop traverses side by side.
struct Streams {
  int each = 1;                // of each tensor, at most
  int most = 0;                // of all tensors together; 0: any number
  int least_elements = 16384;  // shorter ones do not pay for their prologue and epilogue
};

// For rows that several sweeps traverse one after the other: the sweep that prefetches the next row, or none. The last
// sweep but one does not wait for memory and has time for it. The last one stores non-temporally, and leaves the near
// caches to what it reads until the next row is needed. `to_second`: into L2, where lines in flight delay no access to
// a near cache.
enum class NextRow : uint8_t { none, before_last, before_last_to_second, last, last_to_second };
inline bool is_to_second(NextRow when) {
  return when == NextRow::before_last_to_second || when == NextRow::last_to_second;
}

// Items that a kernel processes one by one: the dim of the loop over them (all dims after it are inside an item), and
// the port of their result, which is the only output. `dense`: inputs whose items are contiguous as well, ascending.
struct Items {
  int dim = -1, output = -1;
  std::vector<int> dense = {};
};

// Rows that are back to back in the only output: its port, and the dims of one row.
struct StagedRows {
  int output = -1;
  uint32_t dims = 0;
};

// How rows of outputs are aligned that are stored non-temporally, and thus how they are stored. A vector that crosses
// two lines would wait until both have been read. docs/performance/lessons/tensors.md has the measurements.
enum class RowBegins : uint8_t {
  // At whole lines: vectors are stored as they are. Callers have to check the alignment of tensors.
  at_lines,
  // Anywhere, with a head (an alignment prologue): lanes up to a whole vector are stored into the caches, as those
  // after the last vector are, and all lines are loaded by halves. Pays where a row is long compared with its first and
  // last line, each of which two rows write (CompilerOptions::head_row_lines). Needs a loop along the row that no other
  // loop is fused with (LowerOptions::heads): no columns of which several rows are processed at once, no skewed rows.
  behind_heads,
  // Anywhere: vectors are rotated so that whole lines are stored (passes/lines.cpp), with the edges of the row as
  // partial lines. This works in a loop that is fused with a reduction, so it is for rows of columns, and for rows that
  // are skewed or processed alone. The latter are loaded by halves, too, from which columns gain nothing. Pays for
  // longer rows than heads do, because edges cost as much as several lines. Needs 512-bit stores of whole registers, of
  // one row at a time in one stretch.
  turned,
};

// What a form requires of the passes.
struct FormPasses {
  Isa isa = Isa::avx2;
  // Contraction: a product that is only added is fused with the sum. This is faster and rounds once instead of twice,
  // so results may differ in their last place from those of separate operators. A negation that is only added becomes a
  // subtraction.
  bool contract = true;
  // Loads with a single use become memory operands.
  bool memory_operands = true;
  // The following are for kernels whose tensors exceed the caches; for data in the caches they only cost time.
  // Stores of whole vectors are non-temporal, to outputs that have rows (LinearKernel::has_rows) and that the kernel
  // does not read.
  bool stream_stores = false;
  RowBegins row_begins = RowBegins::at_lines;
  // Only vectors of 512 bits that come from beyond the caches are loaded by halves.
  bool far_by_halves = false;
  // For loops that store non-temporally: main memory serves several streams faster than one.
  Streams streams = {};
  // For the stores and the loads of vector loops.
  Ahead prefetch_writes = {}, prefetch_reads = {};
  NextRow next_row = NextRow::none;
  // The first sweep still prefetches lines ahead: rows are so short that these belong to the next row, too.
  bool next_row_lines = false;
  // For kernels that may be divided into blocks of columns (LinearKernel::Blocks): what a block reads again has to fit
  // a cache of so many bytes; 0: they are not divided. With `prefetch_blocks`, the next block's lines are prefetched.
  int64_t block_cache_bytes = 0;
  // For kernels that store one block behind a sweep that reads each element once: larger blocks may occupy half of a
  // cache of so many bytes; 0: none.
  int64_t last_cache_bytes = 0;
  // Columns of a block for kernels that store one block behind a sweep that reads again; 0: as many as the caches hold.
  int block_columns = 0;
  bool prefetch_blocks = false;
  // The results of items are stored non-temporally from a staging buffer of two items (passes/items.cpp).
  std::optional<Items> items = std::nullopt;
  // Rows, wherever they begin, are stored non-temporally from a staging buffer of several rows
  // (passes/staged_rows.cpp).
  std::optional<StagedRows> staged_rows = std::nullopt;
};

// What is known in addition where a kernel is lowered (FormMaker::lowered).
struct PassOptions : FormPasses {
  PassOptions(FormPasses form = {}) : FormPasses(std::move(form)) {}  // as for a form beyond the caches

  // Cycles of one instruction (JitterRow::cycles); null: 1 each.
  std::function<double(const snippet::LinearKernel& kernel, const snippet::Instruction& one)> cycles = nullptr;
  double vector_units = 1;  // that execute these in parallel
  int64_t joined_rows = 1;  // short rows that a call joins into one (irgen::rows_joined)
  // Nothing is prefetched, and no later pass needs the loops: lanes of narrow integers, four vectors at once, become
  // lanes of bytes, and loops of a small, known trip count are unrolled (snippet::unroll_known_loops).
  bool near = false;
  // Lanes of bytes also where lines are prefetched.
  bool bytes = false;
  // Rows are processed one by one, sweep by sweep.
  bool alone = false;
  // With `near`: cycles that unswitching must save in a call, or in a row: the cost of a mispredicted branch, and of
  // code twice as long. 0: every choice is unswitched.
  double unswitch_cycles = 60;
};

// Runs all passes in the order of passes.cpp, then the verifier.
Result<void> optimise(snippet::LinearKernel& kernel, const PassOptions& options);

// Removes Wrap where only so many low bits are read, as by a store. Floats that are clamped to the range of an integer
// are converted by the machine's instruction, which gives 0x80000000 for NaN: directly where the highest bit is not
// read, and otherwise with a clamp that makes NaN 0. passes/low_bits.cpp
void use_low_bits(snippet::LinearKernel& kernel);
// Loop unswitching: choices whose condition is loop-invariant become two loops. Only with `near`, before all other
// passes. passes/unswitch.cpp
void unswitch_loops(snippet::LinearKernel& kernel, const PassOptions& options);
void join_bytes(snippet::LinearKernel& kernel, Isa isa);  // after that; passes/bytes.cpp
// Whether the body is elementwise with tensors of bytes alone: all of it may then be computed in lanes of bytes.
bool is_of_bytes(const snippet::Body& body);
// Whether the body is elementwise in lanes of 32 bits, with bytes in tensors or in between: parts of it may then be.
bool has_bytes(const snippet::Body& body);
// Whether anything is computed in lanes of bytes.
bool has_lanes_of_bytes(const snippet::LinearKernel& kernel);
// Factors that replace a division: x / divisor = fma(x, high, x * low), bit for bit for all x whose quotient is at
// least 2^-100; below, within a unit of the last place. `low` 0: x * high, always exact. None: only a division is
// accurate.
struct QuotientFactors {
  float high = 0, low = 0;
};
std::optional<QuotientFactors> quotient_factors(float divisor);
// Div by a constant becomes Mul, or Mul and Fma. passes/division.cpp
void divide_by_constants(snippet::LinearKernel& kernel);
// Mul of integers by powers of two, and by their neighbours, becomes sums and MulByPower. After join_bytes, which has
// products of its own. passes/powers.cpp
void multiply_by_powers(snippet::LinearKernel& kernel);
// Div by a loop-invariant divisor of many vectors becomes two products. After divide_by_constants and
// contract_multiply_add. passes/standing_divisors.cpp
void divide_by_standing(snippet::LinearKernel& kernel, const PassOptions& options);
// Div by a row of divisors that enough rows share becomes two products. After divide_by_standing, before fold_loads.
// passes/divisor_rows.cpp
void divide_by_rows(snippet::LinearKernel& kernel, const PassOptions& options);
// And, Or of comparisons become masked comparisons; avx512, after join_bytes. passes/conditions.cpp
void join_conditions(snippet::LinearKernel& kernel);
// Comparisons of integers that only choose become their opposites, where these are fewer instructions; avx2, after
// join_bytes. passes/conditions.cpp
void turn_choices(snippet::LinearKernel& kernel);
// For integers that fit 8 or 16 bits: marks Convert of unsigned ones to floats with `fits_i32` (avx2 converts i32), and
// Div, Mod, Fmod with `fits_24_bits` (f32 holds both operands exactly). passes/narrow.cpp
void mark_narrow_integers(snippet::LinearKernel& kernel);
// Marks loads of 64-bit integers into 32-bit lanes (body/narrow_ports.hpp) with attribute `narrow`, by which their rows
// in the jitter table are found. passes/narrow.cpp
void mark_narrow_loads(snippet::LinearKernel& kernel);
// Erf and Tanh that are only added to numbers of at least their size, as in a GELU spelled as separate operators, are
// evaluated from one table together with the polynomial of one value that is their argument. Their small results need
// no accuracy of their own there, and the polynomial only changes the table. The products of the sum are included, if
// they are of that value, too. Before divide_by_constants and contract_multiply_add, which hide polynomials.
// passes/tabulated.cpp
void tabulate_functions(snippet::LinearKernel& kernel, Isa isa);
void contract_multiply_add(snippet::LinearKernel& kernel);  // passes/contraction.cpp
// For rows that one vector holds: drops the reduction into the neutral element. passes/neutral.cpp
void drop_neutral_folds(snippet::LinearKernel& kernel);
// -|x| becomes one instruction. passes/signs.cpp
void set_signs(snippet::LinearKernel& kernel);
// Maxima and minima of rows that propagate NaN share one check for two vectors. passes/nan.cpp; after
// drop_neutral_folds.
void share_nan_checks(snippet::LinearKernel& kernel);
// Marks masks and reductions with their number of lanes where it is known: rows of a few elements.
// passes/first_lanes.cpp; after drop_neutral_folds.
void mark_first_lanes(snippet::LinearKernel& kernel);
// Packs the results of four rows' reductions into four lanes of one register, as long as the same operators are applied
// to all four. passes/four.cpp
void pack_fours(snippet::LinearKernel& kernel);
// Quotients and roots of uniform values, such as those of a row's sum, are computed in 128 bits and broadcast.
// passes/alike.cpp
void narrow_alike(snippet::LinearKernel& kernel);
// Roots of 512-bit vectors become products where quotients and other roots keep the divider busy. After narrow_alike
// and divide_by_standing, which decide which of these remain. passes/roots.cpp
void take_roots_by_products(snippet::LinearKernel& kernel, const PassOptions& options);
// Drops the rounding to f16 or bf16 of values that are only stored as that type: the store rounds in the same way.
// passes/rounding.cpp
void leave_rounding_to_stores(snippet::LinearKernel& kernel);
void fold_loads(snippet::LinearKernel& kernel, Isa isa);  // passes/memory_operands.cpp
// 512-bit loads become two halves. `all`: all of them, where they may begin anywhere in a line; a Zen 5 reads from main
// memory half as fast where a load crosses two lines. `first_walks`: only those of the first sweep over data that other
// rows do not share; a Zen 4 reads these from main memory a tenth slower with any 512-bit load
// (docs/performance/lessons/machines.md, Zen 4). passes/halves.cpp; before fold_loads, whose memory operands are loads
// of full width.
enum class ByHalves : uint8_t { all, first_walks };
void load_by_halves(snippet::LinearKernel& kernel, ByHalves which);
// Makes stores non-temporal. passes/streaming.cpp
void stream_stores(snippet::LinearKernel& kernel, const PassOptions& options);
// Moves an iteration's loads of inputs before its non-temporal stores of another row. After the stores, they would wait
// for these wherever rows are as long as a page (4 KB aliasing: see snippet::stream_length). passes/loads_first.cpp;
// after stream_stores
void loads_before_stores(snippet::LinearKernel& kernel);
// StoreStreaming becomes stores of whole lines, wherever rows begin. passes/lines.cpp; after all passes that inspect
// stores.
void store_lines(snippet::LinearKernel& kernel);
// Stages items. Returns false, and changes nothing, when the kernel does not process columns of items in one loop over
// the items. passes/items.cpp
bool stage_items(snippet::LinearKernel& kernel, const Items& items);
// Stages rows. Returns false when the outermost loops are not over rows that are back to back. passes/staged_rows.cpp
bool stage_rows(snippet::LinearKernel& kernel, const StagedRows& rows);
void split_streams(snippet::LinearKernel& kernel, Streams streams);  // passes/streams.cpp; after stream_stores
// Prefetches ahead of loops, except through the pointers `near`. passes/streaming.cpp
void prefetch_lines(snippet::LinearKernel& kernel, Ahead writes, Ahead reads,
                    const std::set<snippet::RegisterId>& near = {});
// Prefetches the next row. passes/rows.cpp; before split_streams
struct NextRows {
  std::set<snippet::RegisterId> fetched, standing;  // pointers to what is prefetched a row ahead, and to shared data
};
NextRows fetch_next_rows(snippet::LinearKernel& kernel, NextRow when);
// Prefetches for rows that are fully unrolled and have known steps. passes/held.cpp
void fetch_held_rows(snippet::LinearKernel& kernel, Ahead reads, Ahead writes);
// All prefetching where there are no blocks, and loops over streams, in their order. passes/fetches.cpp
void fetch_ahead(snippet::LinearKernel& kernel, const PassOptions& options);
// Block sizes and prefetching of blocks. passes/blocks.cpp
void size_blocks(snippet::LinearKernel& kernel, const PassOptions& options);
void prefetch_blocks(snippet::LinearKernel& kernel);  // after size_blocks
void fetch_rows_ahead(snippet::LinearKernel& kernel);
// Interleaves the prefetches of a loop that stores non-temporally with these stores: line fills and non-temporal stores
// share a few buffers, and a burst of either waits for the other. passes/spread.cpp; after all passes that prefetch.
void spread_prefetches(snippet::LinearKernel& kernel);
// Folds an AddParameter whose param is known into the addresses that use its result. passes/steps.cpp; after the passes
// above, which identify tensors by their pointers.
void fold_steps(snippet::LinearKernel& kernel);
// Adjacent single elements that are the results of four rows' reductions are stored at once. passes/four_stores.cpp;
// after fold_steps, which reveals where they are.
void store_fours(snippet::LinearKernel& kernel);
// Whether any store is non-temporal.
bool has_streaming_stores(const snippet::LinearKernel& kernel);

}  // namespace tenon::x86
