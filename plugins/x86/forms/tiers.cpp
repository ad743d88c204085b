// Which forms a body has, and for which calls each is.
#include <algorithm>
#include <limits>
#include <optional>

#include <tenon/snippet/lower.hpp>
#include <tenon/snippet/params.hpp>

#include "x86/body/narrow_ports.hpp"
#include "x86/forms/forms.hpp"

namespace tenon::x86 {
namespace {

// What tensors may have of the last-level cache before stores past it are faster: whether its lines are written back or
// not, they make room for one another from there on (docs/performance/snippets.md).
constexpr double kShareOfLastCache = 0.75;

// Vectors in the longest row that is written out.
constexpr int kHeldVectors = 16;

// Bytes of all ports, or, as CallPlan::folded_bytes() counts, for one fold; none where extents are not known.
std::optional<double> bytes_of(const snippet::Body& body, bool of_fold = false) {
  const auto counted = [&](size_t d) -> double {
    const auto extent = static_cast<double>(body.dims[d].extent.constant());
    if (!of_fold || body.dims[d].reduced) return extent;
    return d + 1 == body.rank() ? std::min<double>(extent, irgen::CallRange::kColumns) : 1;
  };
  double bytes = 0;
  for (const std::vector<snippet::BodyPort>* ports : {&body.inputs, &body.outputs}) {
    for (const snippet::BodyPort& port : *ports) {
      double size = port.element.bits() / 8.0;
      for (size_t d = 0; d < body.rank(); ++d) {
        if (!(body.values[static_cast<size_t>(port.value)].varies >> d & 1)) continue;
        if (!body.dims[d].extent.is_constant()) return std::nullopt;
        size *= counted(d);
      }
      bytes += size;
    }
  }
  return bytes;
}

// That a fold takes, of known extents.
int64_t folded_elements(const snippet::Body& body) {
  int64_t elements = 1;
  for (const snippet::BodyDim& dim : body.dims)
    if (dim.reduced) elements *= dim.extent.constant();
  return elements;
}

// Of 512 bits. Vectors half as long hold short rows, but where columns are folded: a processor takes half the time for
// such where it has no wider units (EPYC Zen 4), and divides them faster everywhere.
int lanes_of_rows(const snippet::Body& body, int lanes) {
  constexpr int kLanes = 16;
  if (lanes != kLanes || body.rank() == 0 || (body.reduces() && !body.dims.back().reduced)) return lanes;
  const Expr& row = body.dims.back().extent;
  return row.is_constant() && row.constant() <= kLanes / 2 ? kLanes / 2 : lanes;
}

// Are columns folded that may be walked in whole rows?
bool folds_columns(const snippet::Body& body, int64_t least_row) {
  if (!body.reduces() || body.dims.back().reduced) return false;
  const Expr& row = body.dims.back().extent;
  return !row.is_constant() || row.constant() >= least_row;
}

// What is known of calls: are short rows joined?
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

namespace {

// Do the rows of an output begin at whole lines, if the tensor does?
std::optional<bool> rows_aligned(const snippet::Body& body, const snippet::BodyPort& output) {
  constexpr int64_t kUnknown = -1, kLines = 0;  // the latter: whole lines, how many is not known
  const snippet::DimSet varies = body.values[static_cast<size_t>(output.value)].varies;
  bool known = true;
  int64_t stride = output.element.bits() / 8, begin = 0;
  auto cut = output.cuts.begin();
  for (size_t d = body.rank(); d-- > 0;) {
    const Expr& extent = body.dims[d].extent;
    if ((varies >> d & 1) && !(extent.is_constant() && extent.constant() == 1)) {
      const bool row = d + 1 == body.rank(), lines = stride != kUnknown && stride % kLineBytes == 0;
      if (!row && !lines && stride != kUnknown && extent.is_constant()) return false;
      known &= row || lines;
      stride = stride > 0 && extent.is_constant() ? stride * extent.constant() : lines ? kLines : kUnknown;
    }
    for (; cut != output.cuts.end() && cut->dim == static_cast<int>(d); ++cut) {
      known &= stride > 0 || cut->begin == 0;
      begin += stride > 0 ? stride / cut->box * cut->begin : 0;
      stride = stride > 0 ? stride / cut->box * cut->whole : kUnknown;
    }
  }
  if (begin % kLineBytes != 0) return false;
  return known ? std::optional(true) : std::nullopt;
}

}  // namespace

std::optional<bool> rows_aligned(const snippet::Body& body) {
  bool known = true;
  for (const snippet::BodyPort& output : body.outputs) {
    const snippet::DimSet varies = body.values[static_cast<size_t>(output.value)].varies;
    if (body.rank() == 0 || !(varies >> (body.rank() - 1) & 1)) continue;
    const std::optional<bool> aligned = rows_aligned(body, output);
    if (aligned == false) return false;
    known &= aligned.has_value();
  }
  return known ? std::optional(true) : std::nullopt;
}

size_t FormMaker::first_cache_bytes() const {
  constexpr size_t kUnstated = size_t{32} << 10;
  const MemorySpace* cache = target_.memory("l1");
  return cache ? cache->size_bytes : kUnstated;
}

// A cache that the target does not state is one that nothing exceeds.
double FormMaker::cache_bytes(std::string_view name) const {
  const MemorySpace* memory = target_.memory(name);
  return memory ? static_cast<double>(memory->size_bytes) : std::numeric_limits<double>::infinity();
}

// For tensors within the second-level cache, beyond it, and beyond the last one; down columns the last in blocks, too.
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

// Beside the rows of a block, what it makes waits to be stored, and the next one is fetched: of more rows fewer
// columns.
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

// Two sweeps that fold as one, for stretches that no cache holds with the next; of columns in blocks, too.
void FormMaker::add_merged(std::vector<Tier>& tiers) const {
  const auto merge = [&](const Tier& like, double least_folded_bytes) -> Tier& {
    Tier& merged = tiers.emplace_back(Tier(like));
    merged.suffix += ".merged";
    merged.lower.merge_sweeps = true;
    merged.calls.least_folded_bytes = least_folded_bytes;
    return merged;
  };
  const int64_t near =
      tiers.back().calls.rows != irgen::RowRange{} ? tiers.back().calls.rows.most : -1;  // that a cache holds
  merge(tiers[2], cache_bytes("l2")).calls.rows.least = near + 1;
  // Fewer rows have blocks that lie in the second-level cache.
  if (!tiers[2].lower.whole_rows) return;
  Tier& blocks = merge(tiers[3], cache_bytes("l2") / 5 * 4);
  blocks.calls.most_folded_bytes = std::numeric_limits<double>::infinity();
  blocks.passes.block_columns = 0;
}

// Each for calls whose short rows are joined, in its place where all of them are.
void FormMaker::add_joined(std::vector<Tier>& tiers, bool always, bool tiles) const {
  std::vector<Tier> all;
  for (const Tier& tier : tiers) {
    if (!always && !(tier.lower.merge_sweeps && tiles)) all.push_back(tier);
    if (tier.lower.behind_blocks) continue;
    Tier& joined = all.emplace_back(tier);
    joined.suffix += ".joined";
    joined.lower.whole_rows = joined.lower.join_rows = joined.calls.joins_rows = true;
    // They lie one behind the other: a single one is walked as prefetches follow it.
    if (joined.calls.least_bytes > 0) joined.lower.rows = 1;
    joined.passes.streams.each = 1;
  }
  tiers = std::move(all);
}

// Of calls whose extents are known: no code that none of them runs.
void FormMaker::keep_certain(std::vector<Tier>& tiers, const snippet::Body& body, double bytes) const {
  const int64_t innermost = body.rank() == 0 ? 0 : body.dims.back().extent.constant();
  int64_t row = 1;
  for (size_t d = body.first_of_row(); d < body.rank(); ++d) row *= body.dims[d].extent.constant();
  const double folded = *bytes_of(body, /*of_fold=*/true);
  const int64_t elements = folded_elements(body);
  const std::optional<bool> aligned = rows_aligned(body);
  std::erase_if(tiers, [&](const Tier& tier) {
    if (is_skewed(tier.row_order) && !tier.passes.whole_lines && !aligned.value_or(true)) return true;
    if (!tier.calls.holds_rows(row, innermost)) return true;
    return tier.calls.least_bytes > bytes || tier.calls.least_folded_bytes > folded ||
           tier.calls.most_folded_bytes < folded || tier.calls.most_folded < elements;
  });
  // For which calls others are not wanted, where rows are known to begin at lines or not.
  const auto is_last = [](const Tier& tier) { return tier.row_order != RowOrder::as_lowered; };
  const auto is_of_rows = [&](const Tier& tier) {
    const irgen::RowRange any;
    return (tier.calls.rows != any || tier.calls.innermost != any) && !tier.lower.merge_sweeps && !is_last(tier) &&
           !tier.passes.whole_lines && !tier.passes.items;
  };
  if (aligned && std::ranges::any_of(tiers, is_last))
    std::erase_if(tiers,
                  [&](const Tier& tier) { return is_of_rows(tier) || (tier.lower.merge_sweeps && !is_last(tier)); });
  else if (std::ranges::any_of(tiers, is_of_rows))
    std::erase_if(tiers, [&](const Tier& tier) { return tier.passes.stream_stores && !is_of_rows(tier); });
  if (tiers.size() > 1) tiers.erase(tiers.begin());
  for (Tier& tier : tiers) tier.certain = true;
  tiers.front().suffix.clear();
}

std::vector<FormMaker::Tier> FormMaker::tiers_of(const snippet::Body& as_it_is) const {
  const snippet::Body body = with_narrow_ports(as_it_is);
  std::vector<Tier> tiers = tiers_by_size(body);
  const Joins joins = joins_of(body, lanes_of(isa_of(target_), body));
  const bool tiles =
      body.reduces() && !body.dims.back().reduced && !tiers[2].lower.whole_rows;  // if rows are not joined
  add_rows(tiers, body);
  if (snippet::may_merge_sweeps(body) && !(tiles && joins == Joins::never)) add_merged(tiers);
  add_skewed(tiers, body);
  if (joins != Joins::never) add_joined(tiers, joins == Joins::always, tiles);
  add_far(tiers, body);
  add_heads(tiers, body);
  add_lines(tiers, body);
  add_few_rows(tiers, body);
  add_items(tiers, body);
  if (const auto bytes = bytes_of(body)) keep_certain(tiers, body, *bytes);
  return tiers;
}

int64_t FormMaker::elements_of_line(const snippet::Body& body) const {
  return int64_t{kLineBytes} * lanes_of(isa_of(target_), body) * 8 / vector_bits(isa_of(target_));
}

int64_t FormMaker::least_head_row(const snippet::Body& body) const {
  const int lanes = lanes_of(isa_of(target_), body);
  const bool parts = std::ranges::any_of(
      body.outputs, [&](const snippet::BodyPort& output) { return lanes * output.element.bits() / 8 < kLineBytes; });
  return (parts ? options_.head_row_lines_of_parts : options_.head_row_lines) * elements_of_line(body);
}

// Rows that are folded, begin anywhere and are too short for heads: no store goes past the caches, but lines are
// fetched as for those that do.
void FormMaker::add_far(std::vector<Tier>& tiers, const snippet::Body& body) const {
  if (rows_aligned(body).value_or(false) || !body.reduces() || !body.dims.back().reduced) return;
  Tier far = tiers[1];
  far.suffix = ".far";
  far.calls.least_bytes = tiers[2].calls.least_bytes;
  far.calls.innermost.most = least_head_row(body) - 1;
  walk_from(far, "host", vector_bits(isa_of(target_)) / 8 / lanes_of(isa_of(target_), body));
  tiers.insert(tiers.begin() + 2, std::move(far));
}

// The form that stores past the caches once more, for rows that begin anywhere; where these are known to, in its place.
// Not of columns: several of their rows go at once, each of which would begin elsewhere. The store of rows that are
// skewed keeps step with a fold, so it has no head: its vectors are turned.
void FormMaker::add_heads(std::vector<Tier>& tiers, const snippet::Body& body) const {
  const std::optional<bool> aligned = rows_aligned(body);
  if (aligned.value_or(false) || folds_columns(body, 0)) return;
  const Expr& row = body.dims.back().extent;
  if (row.is_constant() && row.constant() < least_head_row(body)) return;
  const auto moves = [&](const snippet::BodyPort& input) {
    return body.values[static_cast<size_t>(input.value)].varies == body.all_dims();
  };
  const bool several = std::ranges::count_if(body.inputs, moves) > 1, costly = costly_of(body) != Costly::none;
  // Whole lines cost something at the ends of each skewed row, which several tensors and costly sweeps outweigh
  // earlier.
  const int64_t least = elements_of_line(body) * (costly ? 14 : several ? 32 : 64);
  std::vector<Tier> all;
  for (const Tier& tier : tiers) {
    if (!tier.passes.stream_stores || !aligned) all.push_back(tier);
    const bool skewed = is_skewed(tier.row_order);
    if (!tier.passes.stream_stores || (skewed && !stores_lines(body)) || tier.calls.multiple > 1) continue;
    Tier& any = all.emplace_back(tier);
    any.passes.any_rows = true;
    const bool lines = skewed || (tier.row_order == RowOrder::one_by_one && stores_lines(body) && !costly);
    any.suffix += lines ? ".lines" : ".heads";
    if (lines) any.lower.held_vectors = 0;  // of a row that is written out no store has a counter
    (lines ? any.passes.whole_lines : any.lower.heads) = true;
    if (skewed && !tier.lower.merge_sweeps) any.calls.rows.least = std::max(any.calls.rows.least, least);
  }
  tiers = std::move(all);
}

// As the target says that loops best walk what lies in `memory`, if it states it.
void FormMaker::walk_from(Tier& tier, std::string_view memory, int lane_bytes) const {
  constexpr uint64_t kRows = 4;  // go at once at most, in half of the first-level cache where they are walked again
  const MemorySpace* from = target_.memory(memory);
  if (!from) return;
  const auto together = static_cast<int>(from->prefetch_together);
  tier.passes.prefetch_reads = {.lines = static_cast<int>(from->prefetch_reads), .together = together};
  tier.passes.prefetch_writes = {.lines = static_cast<int>(from->prefetch_writes), .together = together};
  tier.passes.streams = {.each = static_cast<int>(from->streams), .most = static_cast<int>(from->most_streams)};
  tier.passes.far_by_halves = from->load_bytes > 0 && from->load_bytes < kLineBytes;
  if (from->row_lines > 0) tier.lower.longest_row_once = static_cast<int>(from->row_lines * kLineBytes) / lane_bytes;
  tier.lower.longest_row_again = static_cast<int>(first_cache_bytes() / 2 / kRows) / lane_bytes;
  // Lines are fetched ahead along single rows.
  if (from->prefetch_reads > 0)
    tier.lower.longest_row_again = std::min(tier.lower.longest_row_again, tier.lower.longest_row_once);
}

}  // namespace tenon::x86
