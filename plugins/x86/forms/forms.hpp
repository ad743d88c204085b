// FormMaker: generates the code of a body in several forms with the same params. They differ by the size of calls and
// by how rows are laid out. Each has a suffix of the kernel's name and states which calls it serves (irgen::CallRange).
//
//   by the size of all tensors (forms/tiers.cpp)
//                      within L2
//     .prefetching     beyond it: lines are prefetched before they are written and read
//     .streaming       beyond three quarters of the last-level cache: stores are non-temporal, several stretches of a
//                      row are traversed side by side
//   and variants of the latter
//     .blocks          columns in sequential blocks; .blocks256, .blocks128 for more rows
//     .merged          two sweeps that reduce are merged, where no cache holds what they traverse
//     .joined          rows that are shorter than vectors are joined; also for calls in near caches
//     .few, .items     columns of few rows; short columns of many items (forms/columns.cpp)
//     .l1 to .l3       rows that several sweeps traverse, by the cache that holds a row and the next one;
//                      .again: values of earlier sweeps are recomputed, .joined: LowerOptions::keep_joined
//     .alone, .alone.paged, .alone.near, .alone.fetching, .skewed, .skewed.fetching, .skewed.twice,
//                      .skewed.twice.far, .skewed.merged, .together     by RowOrder (forms/far_rows.hpp)
//     .heads, .lines, .far, .staged      by RowBegins; .far: rows too short for heads and lines; .staged: lines are
//                      collected in a staging buffer (forms/anywhere.cpp)
//
// All forms for calls beyond the caches traverse columns in whole rows. The target's memories `l2`, `l3` and `host`
// state, for the three sizes in turn, the prefetch distance, the number of stretches, and up to which length several
// rows are processed at once. Where extents are known, only forms that calls run are made (forms/certain.cpp).
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

#include "x86/body/byte_tables.hpp"
#include "x86/code/code_object.hpp"
#include "x86/forms/bodies.hpp"
#include "x86/passes/passes.hpp"

namespace tenon::x86 {

struct CompilerOptions {
  // Allows a * b + c in one instruction, rounded once, quotients as products, and scaled powers. Results then differ in
  // the last place from those of the separate operators.
  bool contract = true;
  // Lines in the shortest row of lanes that is stored non-temporally wherever it begins: two rows each write its first
  // and its last line, which are read for that. The second is for targets whose vectors are a part of a line: such
  // lines are then also written in two ways, non-temporally and through the caches, which costs more.
  int head_row_lines = 8, head_row_lines_of_parts = 48;
};

// How a kernel processes rows that several sweeps traverse. Orders other than as_lowered are only for calls beyond the
// caches, where outputs do not overlap inputs; the measurements are in docs/performance/lessons/rows-far.md.
enum class RowOrder : uint8_t {
  // As LowerOptions say, short rows several at a time: for data in near caches, and where no other order pays.
  as_lowered,
  // Row by row, with separate sweeps: the sweep that reads main memory does nothing else, and the sweep that writes it
  // reads from a near cache. Pays for one tensor where nothing is prefetched. L1 must hold a row and what is kept of
  // it; for longer rows L2, into which the last sweep prefetches the next row.
  one_by_one,
  // The last sweep of a row is fused with the first one of the next row, so that main memory is read and written at the
  // same time (LowerOptions::skew_rows). Pays the more, the more sweeps compute; needs several rows.
  skewed,
  // The first sweep of the row after next is also fused into that loop (LowerOptions::skew_twice). Pays where a sweep
  // between them computes costly values; needs registers for three sweeps, and a cache that holds three rows.
  skewed_twice,
  // Row by row except for the last sweep, which stores several rows at once (LowerOptions::stored_together): what all
  // rows share is then read once for these. Pays where it comes from a far memory, as with long rows.
  stored_together,
};
constexpr bool is_skewed(RowOrder order) { return order == RowOrder::skewed || order == RowOrder::skewed_twice; }
// Whether one sweep stores several rows, each of which may begin at another offset in its line.
constexpr bool stores_several_rows(RowOrder order) { return order == RowOrder::stored_together; }
// Whether vectors are stored non-temporally only where rows begin at lines, or where vectors are rotated.
constexpr bool needs_lines(RowOrder order) { return is_skewed(order) || stores_several_rows(order); }

struct FarRows;

// Immutable; any thread. Bodies are as make_body() makes them; body/narrow_ports.hpp narrows their lanes.
class FormMaker {
 public:
  FormMaker(TargetDescription target, const codegen::JitterTable& table, CompilerOptions options);

  struct Tier {
    std::string suffix;    // of the kernel's name
    bool certain = false;  // extents are known and there are calls of it
    irgen::CallRange calls = {};
    // From this, lowered() sets skew_rows, skew_twice and stored_together, rows of one_by_one, and PassOptions::alone.
    RowOrder row_order = RowOrder::as_lowered;
    // Without vectors and cycles, which the target determines, and heads, which follow from FormPasses::row_begins.
    snippet::LowerOptions lower = {};
    FormPasses passes = {};
  };
  FormBodies bodies_of(const snippet::Body& as_it_is, bool bytes_lose = false) const;
  // By ascending calls.least_bytes. The first one serves any call. Where extents are known, only those that calls run.
  std::vector<Tier> tiers_of(const FormBodies& bodies) const;
  std::vector<Tier> tiers_of(const snippet::Body& as_it_is) const { return tiers_of(bodies_of(as_it_is)); }
  // From CodeCache::shared(), keyed by the kernel's text without names: snippets that compute the same share it, and
  // profilers show it under the name of the first one.
  Result<irgen::SnippetForm> make(FormBodies& bodies, const Tier& tier) const;
  Result<irgen::SnippetForm> make(const snippet::Body& as_it_is, const Tier& tier, bool bytes_lose = false) const {
    FormBodies bodies = bodies_of(as_it_is, bytes_lose);
    return make(bodies, tier);
  }
  // Generates it anew, with the names of the body's own operators.
  Result<CodeObject> assemble(FormBodies& bodies, const Tier& tier) const;

  // Cycles of a call of `kernel`, which joins no rows; none where extents are not known, or loops are over dims that
  // the body does not have.
  std::optional<double> cycles_of_call(const snippet::LinearKernel& kernel) const;

  const TargetDescription& target() const { return target_; }
  const codegen::JitterTable& table() const { return table_; }
  const CompilerOptions& options() const { return options_; }

 private:
  // The least number of vectors in the innermost dim for which whole rows pay; below that, a tile covers the row.
  static constexpr int64_t kLeastRowVectors = 2;
  // Cycles for a vector that is written to memory beyond the caches and read again.
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
  // Only if extents are known.
  void keep_certain(std::vector<Tier>& tiers, const snippet::Body& body) const;
  // forms/anywhere.cpp
  // Elements of the widest lane type.
  int64_t elements_of_line(const snippet::Body& body) const;
  int64_t least_head_row(const snippet::Body& body) const;
  int64_t least_turned_row(const snippet::Body& body) const;  // for skewed rows
  // Whether vectors of an output are whole lines, which may be stored wherever rows begin (RowBegins::turned).
  bool stores_lines(const snippet::Body& body) const;
  void add_staged_rows(std::vector<Tier>& tiers, const snippet::Body& body) const;
  void add_far(std::vector<Tier>& tiers, const snippet::Body& body) const;
  void add_heads(std::vector<Tier>& tiers, const snippet::Body& body) const;
  void add_lines(std::vector<Tier>& tiers, const snippet::Body& body) const;
  // forms/columns.cpp
  void add_few_rows(std::vector<Tier>& tiers, const snippet::Body& body) const;
  void add_items(std::vector<Tier>& tiers, const snippet::Body& body) const;
  // forms/rows.cpp
  // Values that a sweep before the last one computes and that are expensive to recompute.
  enum class Costly : uint8_t {
    none,
    folded,  // they are only reduced, such as the exponentials of LogSoftmax
    stored,  // an output is computed from them as well, such as the exponentials of softmax
  };
  Costly costly_of(const snippet::Body& body) const;
  void add_rows(std::vector<Tier>& tiers, const snippet::Body& body) const;
  FarRows far_rows_of(const snippet::Body& body) const;
  // The orders of forms/far_rows.hpp.
  void add_row_orders(std::vector<Tier>& tiers, const snippet::Body& body) const;
  // A kernel after this plugin's passes, and with its registers allocated, where a pass has asked how many are needed.
  // Registers are allocated once.
  struct Lowered {
    snippet::LinearKernel kernel;
    std::optional<snippet::LinearKernel> allocated = std::nullopt;
  };
  Result<Lowered> kernel_of(FormBodies& bodies, const Tier& tier) const;
  // How many copies of a body are interleaved: as many as registers hold beside the largest scratch need of its
  // emitters; as hold beside the need of emitters that share a check; all.
  enum class Copies : uint8_t { some, more, all };
  Result<snippet::LinearKernel> lowered(const snippet::Body& as_it_is, const Tier& tier, Copies copies) const;
  // Joins the functions of two or four vectors into one instruction, where this causes no spills. forms/in_turn.cpp
  Lowered functions_in_turn(snippet::LinearKernel kernel) const;
  Result<snippet::LinearKernel> allocated(snippet::LinearKernel kernel,
                                          size_t most_instructions = std::numeric_limits<size_t>::max()) const;
  Result<void> allocate(Lowered& made) const;
  // Whether it computes functions of each element: a loop is then bound by these, not by lines, and splitting loads
  // into halves only adds instructions.
  bool computes_functions(const snippet::Body& body) const;
  // Of a node of a body, from its row; valid as long as this is.
  NodeCycles node_cycles() const;
  // forms/cycles.cpp
  // From its row.
  double cycles_of(const snippet::LinearKernel& kernel, const snippet::Instruction& one) const;
  // Cycles of its vector loops for one element, from the rows of their instructions.
  double cycles_of_loops(const snippet::LinearKernel& kernel) const;
  Result<CodeObject> assemble_kernel(Lowered made) const;

  const TargetDescription target_;
  const codegen::JitterTable table_;  // the rows that the target can run
  const CompilerOptions options_;
  // Operators whose rows for several vectors are `two` and `four`. forms/in_turn.cpp
  struct InTurn {
    Name two, four;
    bool shares_scratch = false;  // two vectors need no more scratch registers than one
  };
  using RowsInTurn = std::unordered_map<Name, InTurn>;
  static RowsInTurn rows_in_turn(const codegen::JitterTable& table);
  const RowsInTurn in_turn_;
  const std::string machine_;  // what code depends on besides the kernel: the stated features and registers
};

// Whether the rows of all outputs begin at whole lines, as CallPlan::rows_aligned() says. None where this depends on
// extents that are not known.
std::optional<bool> rows_aligned(const snippet::Body& body);

// Whether columns are reduced whose rows have at least `least_row` elements, so that whole rows may be traversed.
bool folds_columns(const snippet::Body& body, int64_t least_row);

// The items that a kernel processes one at a time (FormPasses::items), if the items of the only output are contiguous.
std::optional<Items> items_of(const snippet::Body& body);

// Rows that are reduced, begin anywhere and are back to back in the only output, if the kernel processes such rows.
std::optional<StagedRows> staged_rows_of(const snippet::Body& body);

// The number of lanes for the body's widest lane type.
int lanes_of(Isa isa, const snippet::Body& body);

}  // namespace tenon::x86
