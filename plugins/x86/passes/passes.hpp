// Passes of this plugin on linear kernels, before registers are given out.
//
// They make instructions of the plugin's own, with rows in the jitter table (structure.hpp):
//
//   Fma a, b, c   a * b + c      Fms a, b, c   a * b - c      Fnma a, b, c   c - a * b       rounded once
//   AddMemory SubMemory MulMemory DivMemory MaxMemory MinMemory  [memory], a       a op memory
//   FmaMemory [memory], a, c     a * memory + c   (attribute `place` 1)
//   FmaMemory [memory], a, b     a * b + memory   (attribute `place` 2)
//   Less a, b, m and other comparisons   where m holds, else false; attribute `negated` 1: the opposite (avx512)
//   DivAlike a, b; SqrtAlike x   Div, Sqrt of what is alike in all lanes
//   DivStanding x, s, h, l, o; OddDivisor s   x / s, of which h + l is the inverse but where o is true
//   SqrtByProducts x             Sqrt, of numbers from 2^-100 on, 0, infinity and NaN (avx512)
//   MulByPower x {power = n}     x times 2^n, of integers
//   StoreFour [memory], a        the first four lanes
//   MarkNaN n, a, b              n, with all bits set in lanes where a or b is NaN
//   PutNaN a, n                  a, or NaN in lanes that are marked so
//   LoadHalves [memory]          Load of a vector of 512 bits as two of 256
//   ConvertInRange x             floats to integers of 32 bits; 0x80000000 where it is not one of them
//   RoundInRange x               the same to the nearest, of two the even one
//   ClampLowOfNaN x, low         ClampLow, but low where x is NaN
//   AddBytes and others          four vectors of 32-bit lanes as one of bytes (emitters/bytes.cpp)
//   LoadBytes, StoreBytes        of such; StoreBytesStreaming is StoreBytes as StoreStreaming is Store
//   PackBytes a, b, c, d; UnpackBytes0 x to UnpackBytes3 x   to bytes and back; attribute `u8` or `i8` 1: of lanes that
//                                are values of this type or 0x80000000, and with `u8` any below 0, which become 0;
//                                with `number` 1 and `i8` of the former and any below -128, which become that
//   ByteTable x, ByteTableBytes x   entries of a table of 256 bytes (emitters/byte_tables.hpp)
//   SpreadByte x, SpreadMask x   of what is alike in all lanes: one in all bytes
//   TabulatedErf x, TabulatedTanh x   of a polynomial of x, attribute `of` (emitters/odd_table.hpp)
//   PrefetchWrite [memory]       the cache line there will be written; an address that is not mapped does no harm
//   PrefetchRead [memory]        it will be read; attribute `second` 1: into L2
//   LineIndex [memory], LineMask [memory], TurnLanes x, index   for rows that begin anywhere (passes/lines.cpp)
//   StoreLine [memory], turned, left, mask   non-temporal store of the line that [memory] lies in
//   StoreLineRest [memory], left, mask       of the line there what lies before [memory]
//   StageBegin, StageItem [memory], StageLine, StageDone [memory], StageRest   of items on a stage (passes/items.cpp)
//   StageRowsBegin [memory] -> pointer, StageRows [memory] -> pointer, StageRowsRest [memory]   of rows on a stage
//   FetchOn [memory] -> pointer  PrefetchRead into L2 there, and so many `bytes` on
//   ErfInTurn2 a, b; ExpInTurn4 a, b, c, d; and others   the function of each, as many results (forms/in_turn.cpp)
//   StoreStreaming [memory], a   Store of whole vectors, non-temporal; the address is a multiple of the bytes stored.
//                                Kernels that hold one end with a fence (assembly.hpp)
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

// How many cache lines ahead of a loop's accesses lines are fetched: `lines` of each stretch of memory that it walks,
// but no more than `together` of all of them, which L1 has to hold until they are wanted.
struct Ahead {
  int lines = 0;                       // 0: none are fetched
  int together = 0;                    // 0: any number
  bool to_second = false;              // what is read: into L2
  int64_t of(size_t stretches) const;  // of each, at least 1
};

// Stretches of a row that one loop walks side by side.
struct Streams {
  int each = 1;                // of each tensor, at most
  int most = 0;                // of all tensors together; 0: any number
  int least_elements = 16384;  // shorter ones are not worth their begin and end
};

// Of rows that several sweeps walk one after the other: the sweep that fetches the row behind, or none. That before the
// last one waits for no memory, and has time; the last one stores non-temporally, and leaves the near ones to what it
// reads until the next row is wanted. `to_second`: into L2, where lines that are under way hold up
// nothing that comes from near.
enum class NextRow : uint8_t { none, before_last, before_last_to_second, last, last_to_second };
inline bool is_to_second(NextRow when) {
  return when == NextRow::before_last_to_second || when == NextRow::last_to_second;
}

// Items that a kernel walks one by one: the dim of the loop over them, behind which all dims are inside of an item, and
// the port of what they become, the only output. `dense`: inputs whose items are stretches of memory as well,
// ascending.
struct Items {
  int dim = -1, output = -1;
  std::vector<int> dense = {};
};

// Rows that lie one behind the other in the only output, which is that port, and the dims of one.
struct StagedRows {
  int output = -1;
  uint32_t dims = 0;
};

// Where rows of outputs begin that are stored non-temporally, and so how they are stored. A vector that crosses two
// lines would wait for both of them to be read. docs/performance/lessons/tensors.md has the measurements.
enum class RowBegins : uint8_t {
  // At whole lines: vectors are stored as they are. Needs callers that look at where tensors lie.
  at_lines,
  // Anywhere, behind a head: lanes up to a whole vector go into the caches, as those behind the last one do, and all
  // lines are loaded by halves. Pays where a row is long beside its first and last line, which two rows write each
  // (CompilerOptions::head_row_lines). Needs a loop along the row that nothing keeps step with
  // (LowerOptions::heads): no columns of which several rows go at once, no rows that are skewed.
  behind_heads,
  // Anywhere: vectors are turned, so that whole lines go (passes/lines.cpp), with the edges of the row as parts of
  // lines. Keeps step with a fold, so it is for rows of columns, and for rows that are skewed or alone; the latter are
  // loaded by halves, too, of which columns gain nothing. Pays for longer rows than heads do, as edges cost as much as
  // several lines. Needs stores of 512 bits as they are in registers, of one row at a time in one stretch.
  turned,
};

// What a form asks of its passes.
struct FormPasses {
  Isa isa = Isa::avx2;
  // A product that is only added becomes one operation: faster, and rounded once instead of twice, so results may
  // differ in their last place from those of the operators one by one. What is negated and only added is subtracted.
  bool contract = true;
  // Loads with one use become operands of the instruction that uses them.
  bool memory_operands = true;
  // For kernels whose tensors exceed the caches; where all lies in them, these only cost.
  // Stores of whole vectors to outputs that have rows (LinearKernel::has_rows), and that the kernel does not read, are
  // non-temporal.
  bool stream_stores = false;
  RowBegins row_begins = RowBegins::at_lines;
  // Vectors of 512 bits that come from beyond the caches are loaded by halves, no others.
  bool far_by_halves = false;
  // Of loops that store non-temporally: main memory serves several streams faster than one.
  Streams streams = {};
  // Of the stores and loads of vector loops.
  Ahead prefetch_writes = {}, prefetch_reads = {};
  NextRow next_row = NextRow::none;
  // Lines ahead of the first sweep are fetched all the same: rows are so short that these are the next row's too.
  bool next_row_lines = false;
  // Kernels that may be cut into blocks of columns (LinearKernel::Blocks): what a block needs again is to lie in a
  // cache of so many bytes; 0: they are not cut. With `prefetch_blocks`, the next block's lines are fetched meanwhile.
  int64_t block_cache_bytes = 0;
  // Those that store one block behind a walk that reads each element once: larger blocks wait in half of a cache of so
  // many bytes; 0: in none.
  int64_t last_cache_bytes = 0;
  // Columns of a block of those that store one block behind a walk that reads again; 0: as the caches hold them.
  int block_columns = 0;
  bool prefetch_blocks = false;
  // What becomes of items is stored non-temporally from a stage of two items (passes/items.cpp).
  std::optional<Items> items = std::nullopt;
  // Rows, wherever they begin, are stored non-temporally from a stage of some of them (passes/items.cpp).
  std::optional<StagedRows> staged_rows = std::nullopt;
};

// And what is known where a kernel is lowered for it (FormMaker::lowered).
struct PassOptions : FormPasses {
  PassOptions(FormPasses form = {}) : FormPasses(std::move(form)) {}  // as of a form for what is far

  // Of one instruction (JitterRow::cycles); null: 1 each.
  std::function<double(const snippet::LinearKernel& kernel, const snippet::Instruction& one)> cycles = nullptr;
  double vector_units = 1;  // that work side by side on these
  // Nothing is fetched, and no pass looks for loops: lanes of narrow integers, four vectors at once, become lanes of
  // bytes, and loops of a small, known trip count are unrolled (snippet::unroll_known_loops).
  bool near = false;
  // Lanes of bytes where lines are fetched, too.
  bool bytes = false;
  // Rows go one by one, each sweep by itself.
  bool alone = false;
  // Of what is near: so many cycles a call, or a row, has to take less where a choice becomes two loops: as long as a
  // jump takes that is not foreseen, and code that is twice as long. 0: all choices do.
  double unswitch_cycles = 60;
};

// All of them, in the order below; then the verifier.
Result<void> optimise(snippet::LinearKernel& kernel, const PassOptions& options);

// Without Wrap of what is only read in so many low bits, as by a store. Floats that are clamped to the range of an
// integer become integers by what the machine has, which makes 0x80000000 of NaN, where the highest bit is not read;
// else NaN is 0 by the clamp. passes/low_bits.cpp
void use_low_bits(snippet::LinearKernel& kernel);
// Choices by what stands for all of a loop as two loops. For what is near, before all others; passes/unswitch.cpp
void unswitch_loops(snippet::LinearKernel& kernel, const PassOptions& options);
void join_bytes(snippet::LinearKernel& kernel, Isa isa);  // after that; passes/bytes.cpp
// Is it elementwise, of tensors of bytes alone? Then all of it may become lanes of bytes.
bool is_of_bytes(const snippet::Body& body);
// Is it elementwise, of lanes of 32 bits, with bytes in tensors or between? Then some of it may.
bool has_bytes(const snippet::Body& body);
// Is anything computed in lanes of bytes?
bool has_lanes_of_bytes(const snippet::LinearKernel& kernel);
// What to multiply by in place of a division: x / divisor = fma(x, high, x * low) for all x whose quotient is at least
// 2^-100, bit for bit; below within a unit of the last place. `low` 0: x * high, always. None: only a division will do.
struct QuotientFactors {
  float high = 0, low = 0;
};
std::optional<QuotientFactors> quotient_factors(float divisor);
// Div by a constant as Mul, or as Mul and Fma. passes/division.cpp
void divide_by_constants(snippet::LinearKernel& kernel);
// Mul of integers by powers of two, and what stands next to one, as sums and MulByPower. After join_bytes, which has products of its own.
// passes/powers.cpp
void multiply_by_powers(snippet::LinearKernel& kernel);
// Div by what stands while many vectors are divided by it, as two products. After divide_by_constants and
// contract_multiply_add. passes/standing_divisors.cpp
void divide_by_standing(snippet::LinearKernel& kernel, const PassOptions& options);
// And, Or of comparisons as comparisons of some lanes; avx512, after join_bytes. passes/conditions.cpp
void join_conditions(snippet::LinearKernel& kernel);
// Comparisons of integers as their opposites, which only choose, where these are fewer instructions; avx2, after
// join_bytes. passes/conditions.cpp
void turn_choices(snippet::LinearKernel& kernel);
// Of integers that fit 8 or 16 bits: Convert of unsigned ones to floats says that these fit i32 (`fits_i32`), of which
// avx2 has a conversion, and Div, Mod, Fmod that f32 holds both (`fits_24_bits`). passes/narrow.cpp
void mark_narrow_integers(snippet::LinearKernel& kernel);
// Loads of 64-bit integers into 32-bit lanes (body/narrow_ports.hpp) get attribute `narrow`, by which their rows are
// found.
void mark_narrow_loads(snippet::LinearKernel& kernel);
// Erf and Tanh that are only summed with numbers of at least their size, as where GELU is spelled by operators, and the
// polynomial of one value that they are of, by one table: their small results need no digits of their own there, and
// what stands before them is nothing but another table; with the products of the sum, if these are of that value, too.
// Before divide_by_constants and contract_multiply_add, which hide polynomials. passes/tabulated.cpp
void tabulate_functions(snippet::LinearKernel& kernel, Isa isa);
void contract_multiply_add(snippet::LinearKernel& kernel);  // passes/contraction.cpp
// Of rows that one vector holds: the fold into the number that changes nothing. passes/neutral.cpp
void drop_neutral_folds(snippet::LinearKernel& kernel);
// -|x| is one instruction. passes/signs.cpp
void set_signs(snippet::LinearKernel& kernel);
// Extrema of rows that pass NaN on have one check for two vectors. passes/nan.cpp; after drop_neutral_folds.
void share_nan_checks(snippet::LinearKernel& kernel);
// Of how many lanes masks and folds are, where that is known: rows of a few elements. passes/first_lanes.cpp; after
// drop_neutral_folds.
void mark_first_lanes(snippet::LinearKernel& kernel);
// What four rows fold into, in four lanes of one register, as long as the same is made of all four. passes/four.cpp
void pack_fours(snippet::LinearKernel& kernel);
// Quotients and roots of values that are alike in all lanes, as those of a row's sum: 128 bits of them, spread.
void narrow_alike(snippet::LinearKernel& kernel);
// Roots of vectors of 512 bits as products, where quotients and other roots keep the divider from them. After
// narrow_alike and divide_by_standing, which leave those of vectors. passes/roots.cpp
void take_roots_by_products(snippet::LinearKernel& kernel, const PassOptions& options);
// What is rounded to f16 or bf16 only to be stored as that: stores round alike. passes/rounding.cpp
void leave_rounding_to_stores(snippet::LinearKernel& kernel);
void fold_loads(snippet::LinearKernel& kernel, Isa isa);  // passes/memory_operands.cpp
// Loads of 512 bits by halves. All of them, where they may begin anywhere in a line: where lines come from main memory,
// a Zen 5 takes those that cross two half as fast. Or those alone that walk first along what other rows do not share:
// of these a Zen 4 takes any from main memory a tenth slower (docs/performance/lessons/machines.md, Zen 4).
// passes/halves.cpp; before fold_loads, whose operands in memory are such loads.
enum class ByHalves : uint8_t { all, first_walks };
void load_by_halves(snippet::LinearKernel& kernel, ByHalves which);
// passes/streaming.cpp
void stream_stores(snippet::LinearKernel& kernel, const PassOptions& options);
// What an iteration reads of inputs before what it stores non-temporally, of another row: behind, it would wait for
// the store wherever rows are as long as a page (4 KB aliasing: see snippet::stream_length). passes/loads_first.cpp;
// after stream_stores
void loads_before_stores(snippet::LinearKernel& kernel);
// StoreStreaming as stores of whole lines, wherever rows begin. passes/lines.cpp; after all that looks at stores.
void store_lines(snippet::LinearKernel& kernel);
// False, and nothing is changed: the kernel does not walk columns of items in one loop over these. passes/items.cpp
bool stage_items(snippet::LinearKernel& kernel, const Items& items);
// The same of one whose outermost loops are not over rows, one behind the other. passes/items.cpp
bool stage_rows(snippet::LinearKernel& kernel, const StagedRows& rows);
void split_streams(snippet::LinearKernel& kernel, Streams streams);  // passes/streams.cpp; after stream_stores
// But through the pointers `near`.
void prefetch_lines(snippet::LinearKernel& kernel, Ahead writes, Ahead reads,
                    const std::set<snippet::RegisterId>& near = {});
// passes/rows.cpp; before split_streams
struct NextRows {
  std::set<snippet::RegisterId> fetched, standing;  // pointers to what is fetched a row ahead, and what all rows share
};
NextRows fetch_next_rows(snippet::LinearKernel& kernel, NextRow when);
// Of rows that are written out and have steps that are known. passes/held.cpp
void fetch_held_rows(snippet::LinearKernel& kernel, Ahead reads, Ahead writes);
// All that is fetched ahead where there are no blocks, and loops by streams, in their order. passes/fetches.cpp
void fetch_ahead(snippet::LinearKernel& kernel, const PassOptions& options);
// passes/blocks.cpp
void size_blocks(snippet::LinearKernel& kernel, const PassOptions& options);
void prefetch_blocks(snippet::LinearKernel& kernel);  // after size_blocks
void fetch_rows_ahead(snippet::LinearKernel& kernel);
// Prefetches of a loop that stores non-temporally, in turn with these stores: fills and stores share few buffers, and
// a burst of either waits for the other. passes/spread.cpp; after all that fetches.
void spread_prefetches(snippet::LinearKernel& kernel);
// AddParameter whose param is known, into the addresses that start from its result. passes/steps.cpp; after those
// above, which tell tensors by the pointers.
void fold_steps(snippet::LinearKernel& kernel);
// Single elements side by side that four rows fold into, at once. passes/four_stores.cpp; after fold_steps, which tells
// where they lie.
void store_fours(snippet::LinearKernel& kernel);
// Is any store non-temporal?
bool has_streaming_stores(const snippet::LinearKernel& kernel);

}  // namespace tenon::x86
