// The forms of a body by the size of tensors, and the calls that each serves.
#include <algorithm>
#include <limits>

#include <tenon/snippet/body/params.hpp>
#include <tenon/snippet/lower/lower.hpp>

#include "x86/forms/far_rows.hpp"

namespace tenon::x86 {
namespace {

// The share of the last-level cache that tensors may fill before non-temporal stores are faster: from there on lines
// evict one another, whether or not they are written back (docs/performance/lessons/tensors.md).
constexpr double kShareOfLastCache = 0.75;

// Vectors in the longest row that is fully unrolled.
constexpr int kHeldVectors = 16;

// For vectors of 512 bits. Short rows use vectors of half that length, except where columns are reduced: processors
// without 512-bit units (EPYC Zen 4) need half the time for them, and all processors divide them faster.
int lanes_of_rows(const snippet::Body& body, int lanes) {
  constexpr int kLanes = 16;
  if (lanes != kLanes || body.rank() == 0 || (body.reduces() && !body.dims.back().reduced)) return lanes;
  const Expr& row = body.dims.back().extent;
  return row.is_constant() && row.constant() <= kLanes / 2 ? kLanes / 2 : lanes;
}

// Whether short rows are joined, as far as is known of the calls.
enum class Joins : uint8_t { never, perhaps, always };
Joins joins_of(const snippet::Body& body, int lanes) {
  if (!snippet::may_join_rows(body)) return Joins::never;
  const Expr &rows = body.dims[body.rank() - 2].extent, &columns = body.dims.back().extent;
  if (columns.is_constant() &&
      snippet::rows_to_join(std::numeric_limits<int64_t>::max(), columns.constant(), lanes) == 1)
    return Joins::never;
  if (!rows.is_constant() || !columns.is_constant()) return Joins::perhaps;
  return snippet::rows_to_join(rows.constant(), columns.constant(), lanes) > 1 ? Joins::always : Joins::never;
}

}  // namespace

bool folds_columns(const snippet::Body& body, int64_t least_row) {
  if (!body.reduces() || body.dims.back().reduced) return false;
  const Expr& row = body.dims.back().extent;
  return !row.is_constant() || row.constant() >= least_row;
}

size_t FormMaker::first_cache_bytes() const {
  constexpr size_t kUnstated = size_t{32} << 10;
  const MemorySpace* cache = target_.memory("l1");
  return cache ? cache->size_bytes : kUnstated;
}

// A cache that the target does not state counts as unlimited.
double FormMaker::cache_bytes(std::string_view name) const {
  const MemorySpace* memory = target_.memory(name);
  return memory ? static_cast<double>(memory->size_bytes) : std::numeric_limits<double>::infinity();
}

// For tensors within L2, beyond it, and beyond the last level; for columns, the last one also in blocks.
std::vector<FormMaker::Tier> FormMaker::tiers_by_size(const snippet::Body& body) const {
  const int lanes = lanes_of(isa_of(target_), body), lane_bytes = vector_bits(isa_of(target_)) / 8 / lanes;
  std::vector<Tier> tiers(
      3, Tier{.lower = {.lanes = lanes_of_rows(body, lanes), .held_vectors = kHeldVectors, .reread_outputs = true},
              .passes = {.isa = isa_of(target_), .contract = options_.contract}});
  tiers[1].suffix = ".prefetching";
  tiers[1].calls.least_bytes = cache_bytes("l2");
  if (const MemorySpace* cache = target_.memory("l2"))
    tiers[1].passes.block_cache_bytes = static_cast<int64_t>(cache->size_bytes);
  if (const MemorySpace* cache = target_.memory("l3"))
    tiers[1].passes.last_cache_bytes = static_cast<int64_t>(cache->size_bytes);
  tiers[1].passes.prefetch_blocks = true;
  tiers[1].lower.whole_rows = folds_columns(body, kLeastRowVectors * lanes);
  tiers[2] = tiers[1];
  tiers[2].suffix = ".streaming";
  tiers[2].lower.reread_outputs = false;
  tiers[2].calls.least_bytes = target_.memory("l3") ? kShareOfLastCache * cache_bytes("l3") : cache_bytes("l2");
  tiers[2].passes.stream_stores = true;
  if (body.reduces()) tiers[2].lower.resweep_cycles = kMovedVectorCycles;
  walk_from(tiers[0], "l2", lane_bytes);
  walk_from(tiers[1], target_.memory("l3") ? "l3" : "host", lane_bytes);
  walk_from(tiers[2], "host", lane_bytes);
  if (tiers[2].lower.whole_rows) add_blocks(tiers);
  return tiers;
}

// L2 holds the rows of a block, what waits to be stored, and the prefetched next block. With more rows, blocks have
// fewer columns.
void FormMaker::add_blocks(std::vector<Tier>& tiers) const {
  const Tier streaming = tiers.back();
  double least = 0;
  for (const int columns : {512, 256, 128}) {
    Tier& blocks = tiers.emplace_back(streaming);
    blocks.suffix += columns == 512 ? ".blocks" : str(".blocks", columns);
    blocks.lower.behind_blocks = true;
    blocks.passes.block_columns = columns;
    blocks.calls.least_folded_bytes = least;
    least = cache_bytes("l2") / 5 * 2 / columns * irgen::CallRange::kColumns;
    if (columns != 128) blocks.calls.most_folded_bytes = least;
  }
}

// Merges two sweeps that reduce, for stretches of which no cache holds two; for columns also in blocks.
void FormMaker::add_merged(std::vector<Tier>& tiers) const {
  const auto merge = [&](const Tier& like, double least_folded_bytes) -> Tier& {
    Tier& merged = tiers.emplace_back(Tier(like));
    merged.suffix += ".merged";
    merged.lower.merge_sweeps = true;
    merged.calls.least_folded_bytes = least_folded_bytes;
    return merged;
  };
  const int64_t near =
      tiers.back().calls.rows != irgen::RowRange{} ? tiers.back().calls.rows.most : -1;  // the longest a cache holds
  merge(tiers[2], cache_bytes("l2")).calls.rows.least = near + 1;
  // With fewer rows, L2 holds the blocks.
  if (!tiers[2].lower.whole_rows) return;
  Tier& blocks = merge(tiers[3], cache_bytes("l2") / 5 * 4);
  blocks.calls.most_folded_bytes = std::numeric_limits<double>::infinity();
  blocks.passes.block_columns = 0;
}

// The same for rows that only the last-level cache holds, where it is so slow that lines are prefetched from it:
// merging reads it once less. Not where powers would then be computed twice.
void FormMaker::add_merged_rows(std::vector<Tier>& tiers, const snippet::Body& body) const {
  const FarRows rows = far_rows_of(body);
  if (rows.bytes.moving == 0 || !rows.merges || rows.costly || tiers[1].passes.prefetch_reads.lines == 0) return;
  Tier merged = tiers[1];
  merged.suffix += ".merged";
  merged.lower.merge_sweeps = true;
  merged.lower.resweep_cycles = kMovedVectorCycles;
  merged.calls.rows.least = rows.l2 / rows.bytes.again() + 1;
  tiers.insert(tiers.begin() + 2, std::move(merged));
}

// A variant of each form for calls whose short rows are joined; it replaces the form where all of them are.
void FormMaker::add_joined(std::vector<Tier>& tiers, bool always, bool tiles) const {
  std::vector<Tier> all;
  for (const Tier& tier : tiers) {
    if (!always && !(tier.lower.merge_sweeps && tiles)) all.push_back(tier);
    if (tier.lower.behind_blocks) continue;
    Tier& joined = all.emplace_back(tier);
    joined.suffix += ".joined";
    joined.lower.whole_rows = joined.lower.join_rows = joined.calls.joins_rows = true;
    // Joined rows are back to back, so one at a time is a sequence that hardware prefetchers follow.
    if (joined.calls.least_bytes > 0) joined.lower.rows = 1;
    joined.passes.streams.each = 1;
  }
  tiers = std::move(all);
}

std::vector<FormMaker::Tier> FormMaker::tiers_of(const FormBodies& bodies) const {
  const snippet::Body& body = bodies.body();
  std::vector<Tier> tiers = tiers_by_size(body);
  const Joins joins = joins_of(body, lanes_of(isa_of(target_), body));
  const bool tiles =
      body.reduces() && !body.dims.back().reduced && !tiers[2].lower.whole_rows;  // if rows are not joined
  add_rows(tiers, body);
  if (snippet::may_merge_sweeps(body) && !(tiles && joins == Joins::never)) add_merged(tiers);
  add_row_orders(tiers, body);
  if (joins != Joins::never) add_joined(tiers, joins == Joins::always, tiles);
  add_far(tiers, body);
  add_merged_rows(tiers, body);
  add_heads(tiers, body);
  add_lines(tiers, body);
  add_few_rows(tiers, body);
  add_items(tiers, body);
  add_staged_rows(tiers, body);
  keep_certain(tiers, body);
  return tiers;
}

// Sets what the target states for loops over data in `memory`, if it states it.
void FormMaker::walk_from(Tier& tier, std::string_view memory, int lane_bytes) const {
  constexpr uint64_t kRows = 4;  // the most at once, in half of L1 where they are traversed again
  const MemorySpace* from = target_.memory(memory);
  if (!from) return;
  const auto together = static_cast<int>(from->prefetch_together);
  tier.passes.prefetch_reads = {.lines = static_cast<int>(from->prefetch_reads), .together = together};
  tier.passes.prefetch_writes = {.lines = static_cast<int>(from->prefetch_writes), .together = together};
  tier.passes.streams = {.each = static_cast<int>(from->streams), .most = static_cast<int>(from->most_streams)};
  tier.passes.far_by_halves = from->load_bytes > 0 && from->load_bytes < kLineBytes;
  if (from->row_lines > 0) tier.lower.longest_row_once = static_cast<int>(from->row_lines * kLineBytes) / lane_bytes;
  tier.lower.longest_row_again = static_cast<int>(first_cache_bytes() / 2 / kRows) / lane_bytes;
  // Lines are prefetched along single rows.
  if (from->prefetch_reads > 0)
    tier.lower.longest_row_again = std::min(tier.lower.longest_row_again, tier.lower.longest_row_once);
}

}  // namespace tenon::x86
