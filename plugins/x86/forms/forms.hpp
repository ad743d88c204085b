// FormMaker: code of a body in several forms with the same params, by how large calls are and how their rows lie. Each
// has a suffix of the kernel's name, and says which calls it serves (irgen::CallRange).
//
//   by the size of all tensors (forms/tiers.cpp)
//                      within L2
//     .prefetching     beyond it: lines are fetched before they are written and read
//     .streaming       beyond three quarters of the last-level cache: stores are non-temporal, several stretches of a
//                      row are walked side by side
//   and of the latter more
//     .blocks          columns, a block of them behind the other; .blocks256, .blocks128 of more rows
//     .merged          two sweeps that fold as one, where no cache holds what they walk
//     .joined          rows that are shorter than vectors, joined; of calls that are near, too
//     .few, .items     columns of few rows; short columns of many items (forms/columns.cpp)
//     .l1 to .l3       rows that several sweeps walk, by the cache that holds one with the next; .again: what sweeps
//                      made is made again, .joined: LowerOptions::keep_joined
//     .alone, .alone.paged, .alone.near, .alone.fetching, .skewed, .skewed.fetching, .skewed.twice,
//                      .skewed.twice.far, .skewed.merged, .together     by RowOrder (forms/far_rows.hpp)
//     .heads, .lines, .far, .staged      by RowBegins; .far: rows too short for either; .staged: whose lines wait on a
//                      stage (forms/anywhere.cpp)
//
// Columns are walked in whole rows in all that are for calls beyond the caches. How far ahead, how many stretches and
// how long rows may be that go several at once, the target's memories say: `l2`, `l3` and `host` of the three sizes in
// turn. Where extents are known, only those are made that calls run (forms/certain.cpp).
#pragma once
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <tenon/codegen/jitter_table.hpp>
#include <tenon/irgen/snippet_code.hpp>
#include <tenon/snippet/lower/lower.hpp>
#include <tenon/target/description.hpp>

#include "x86/code/code_object.hpp"
#include "x86/forms/bodies.hpp"
#include "x86/passes/passes.hpp"

namespace tenon::x86 {

struct CompilerOptions {
  // a * b + c in one instruction, rounded once, quotients as products, powers that are scaled: results then differ in
  // the last place from those of the operators.
  bool contract = true;
  // Lines in the shortest row of lanes that is stored non-temporally wherever it begins: its first and its last line
  // are written by two rows each, and read for that. The same where a vector is a part of a line: then such lines are
  // also written in two ways, non-temporally and through the caches, which costs more.
  int head_row_lines = 8, head_row_lines_of_parts = 48;
};

// How a kernel goes along rows that several sweeps walk. Beside as_lowered only beyond the caches, where a store may
// come before all is read; the measurements are in docs/performance/lessons/rows-far.md.
enum class RowOrder : uint8_t {
  // As LowerOptions say, short rows several at a time: what is near, and what no other order pays for.
  as_lowered,
  // Row by row, each sweep by itself: that which reads main memory does nothing else, and that which writes it reads
  // what is near. Pays where nothing is fetched ahead, of one tensor; needs L1 to hold a row and what is
  // kept of it; of longer rows L2, into which the last sweep fetches the next one.
  one_by_one,
  // The last sweep of a row with the first of the next, so that main memory is read and written at once
  // (LowerOptions::skew_rows). Pays the more, the more sweeps compute; needs a next row.
  skewed,
  // The first sweep of the row behind the next as well, in the same loop (LowerOptions::skew_twice). Pays where a sweep
  // between them computes what is costly; needs registers for three walks, and a cache that holds three rows.
  skewed_twice,
  // Row by row but for the last sweep, which stores several rows at once (LowerOptions::stored_together): what all rows
  // share is read once for these. Pays where that comes from far, as it does where rows are long.
  stored_together,
};
constexpr bool is_skewed(RowOrder order) { return order == RowOrder::skewed || order == RowOrder::skewed_twice; }
// Are several rows stored in one walk, of which each may begin elsewhere in its line?
constexpr bool stores_several_rows(RowOrder order) { return order == RowOrder::stored_together; }
// Are vectors stored non-temporally only where rows begin at lines, or are turned?
constexpr bool needs_lines(RowOrder order) { return is_skewed(order) || stores_several_rows(order); }

struct FarRows;

// Immutable; any thread. Bodies are as make_body() makes them; how few lanes they need, body/narrow_ports.hpp says.
class FormMaker {
 public:
  FormMaker(TargetDescription target, const codegen::JitterTable& table, CompilerOptions options);

  struct Tier {
    std::string suffix;    // of the kernel's name
    bool certain = false;  // calls of it come: extents are known
    irgen::CallRange calls = {};
    // By this lowered() sets skew_rows, skew_twice and stored_together, rows of one_by_one, and PassOptions::alone.
    RowOrder row_order = RowOrder::as_lowered;
    // But vectors and cycles, which are the target's, and heads, which follow from FormPasses::row_begins.
    snippet::LowerOptions lower = {};
    FormPasses passes = {};
  };
  FormBodies bodies_of(const snippet::Body& as_it_is, bool bytes_lose = false) const;
  // By ascending calls.least_bytes. The first serves any call. Where extents are known, only those that calls run.
  std::vector<Tier> tiers_of(const FormBodies& bodies) const;
  std::vector<Tier> tiers_of(const snippet::Body& as_it_is) const { return tiers_of(bodies_of(as_it_is)); }
  // From CodeCache::shared(), by the kernel's text without names: snippets that compute the same share it, and
  // profilers see it under the name of the first.
  Result<irgen::SnippetForm> make(FormBodies& bodies, const Tier& tier) const;
  Result<irgen::SnippetForm> make(const snippet::Body& as_it_is, const Tier& tier, bool bytes_lose = false) const {
    FormBodies bodies = bodies_of(as_it_is, bytes_lose);
    return make(bodies, tier);
  }
  // Anew, with the names of the body's own operators.
  Result<CodeObject> assemble(FormBodies& bodies, const Tier& tier) const;

  // Of a call of `kernel`, which joins no rows; none where extents are not known, or loops are over dims that the body
  // has not.
  std::optional<double> cycles_of_call(const snippet::LinearKernel& kernel) const;

  const TargetDescription& target() const { return target_; }
  const codegen::JitterTable& table() const { return table_; }
  const CompilerOptions& options() const { return options_; }

 private:
  // Elements of the innermost dim from which on whole rows pay, in vectors: below, a tile takes the row as it is.
  static constexpr int64_t kLeastRowVectors = 2;
  // What a vector costs that goes out to memory beyond the caches and comes back.
  static constexpr double kMovedVectorCycles = 24;

  // forms/tiers.cpp
  double cache_bytes(std::string_view name) const;
  size_t first_cache_bytes() const;
  std::vector<Tier> tiers_by_size(const snippet::Body& body) const;
  void add_blocks(std::vector<Tier>& tiers) const;
  void add_merged(std::vector<Tier>& tiers) const;
  void add_merged_rows(std::vector<Tier>& tiers, const snippet::Body& body) const;
  void add_joined(std::vector<Tier>& tiers, bool always, bool tiles) const;
  void walk_from(Tier& tier, std::string_view memory, int lane_bytes) const;
  // forms/certain.cpp
  // If extents are known.
  void keep_certain(std::vector<Tier>& tiers, const snippet::Body& body) const;
  // forms/anywhere.cpp
  // Of the widest lane type.
  int64_t elements_of_line(const snippet::Body& body) const;
  int64_t least_head_row(const snippet::Body& body) const;
  int64_t least_turned_row(const snippet::Body& body) const;  // that is skewed
  // Are vectors of an output lines, so that they may be stored as such wherever rows begin (RowBegins::turned)?
  bool stores_lines(const snippet::Body& body) const;
  void add_staged_rows(std::vector<Tier>& tiers, const snippet::Body& body) const;
  void add_far(std::vector<Tier>& tiers, const snippet::Body& body) const;
  void add_heads(std::vector<Tier>& tiers, const snippet::Body& body) const;
  void add_lines(std::vector<Tier>& tiers, const snippet::Body& body) const;
  // forms/columns.cpp
  void add_few_rows(std::vector<Tier>& tiers, const snippet::Body& body) const;
  void add_items(std::vector<Tier>& tiers, const snippet::Body& body) const;
  // forms/rows.cpp
  // What a sweep before the last one computes that is not made again for nothing.
  enum class Costly : uint8_t {
    none,
    folded,  // alone, as the exponentials of the logarithm of softmax
    stored,  // an output is made of it as well, as those of softmax
  };
  Costly costly_of(const snippet::Body& body) const;
  void add_rows(std::vector<Tier>& tiers, const snippet::Body& body) const;
  FarRows far_rows_of(const snippet::Body& body) const;
  // Those that forms/far_rows.hpp says.
  void add_row_orders(std::vector<Tier>& tiers, const snippet::Body& body) const;
  // After this plugin's passes; and with its registers, where a pass has asked how many there are. These are given out
  // once.
  struct Lowered {
    snippet::LinearKernel kernel;
    std::optional<snippet::LinearKernel> allocated = std::nullopt;
  };
  Result<Lowered> kernel_of(FormBodies& bodies, const Tier& tier) const;
  // Copies of a body that go side by side: as many as registers hold beside what emitters may need; as hold beside what
  // those need that share a check; all.
  enum class Copies : uint8_t { some, more, all };
  Result<snippet::LinearKernel> lowered(const snippet::Body& as_it_is, const Tier& tier, Copies copies) const;
  // Functions of two or four vectors as one instruction, where no register gives way to it. forms/in_turn.cpp
  Lowered functions_in_turn(snippet::LinearKernel kernel) const;
  Result<snippet::LinearKernel> allocated(snippet::LinearKernel kernel,
                                          size_t most_instructions = std::numeric_limits<size_t>::max()) const;
  Result<void> allocate(Lowered& made) const;
  // Of each element: then a loop waits for these, not for lines, and loads by halves are but more operations.
  bool computes_functions(const snippet::Body& body) const;
  // forms/cycles.cpp
  // By its row.
  double cycles_of(const snippet::LinearKernel& kernel, const snippet::Instruction& one) const;
  // What its loops over vectors take for one element, by the rows of their instructions.
  double cycles_of_loops(const snippet::LinearKernel& kernel) const;
  Result<CodeObject> assemble_kernel(Lowered made) const;

  const TargetDescription target_;
  const codegen::JitterTable table_;  // the rows that the target can run
  const CompilerOptions options_;
  // Of operators that have rows for several vectors in turn: those of these. forms/in_turn.cpp
  struct InTurn {
    Name two, four;
    bool shares_scratch = false;  // two vectors need no more registers beside their own than one
  };
  using RowsInTurn = std::unordered_map<Name, InTurn>;
  static RowsInTurn rows_in_turn(const codegen::JitterTable& table);
  const RowsInTurn in_turn_;
  const std::string machine_;  // what code depends on beside the kernel: features and registers that are stated
};

// Do the rows of all outputs begin at whole lines, as CallPlan::rows_aligned() says? None where extents decide that are
// not known.
std::optional<bool> rows_aligned(const snippet::Body& body);

// Are columns folded that may be walked in whole rows, of `least_row` elements at least?
bool folds_columns(const snippet::Body& body, int64_t least_row);

// What a kernel walks item by item (FormPasses::items), if the only output's items are stretches of memory.
std::optional<Items> items_of(const snippet::Body& body);

// Rows that are folded and begin anywhere, one behind the other in the only output, if these are what the kernel walks.
std::optional<StagedRows> staged_rows_of(const snippet::Body& body);

// Lanes of a vector of the body's widest lane type.
int lanes_of(Isa isa, const snippet::Body& body);

}  // namespace tenon::x86
