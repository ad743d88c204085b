// Alignment of rows, and the forms for rows that begin anywhere (RowBegins).
#include <algorithm>
#include <optional>

#include "x86/forms/far_rows.hpp"

namespace tenon::x86 {
namespace {

// Whether the rows of an output begin at whole lines if the tensor does; none: unknown.
std::optional<bool> rows_aligned(const snippet::Body& body, const snippet::BodyPort& output) {
  constexpr int64_t kUnknown = -1, kLines = 0;  // kLines: a whole number of lines, not known how many
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

int64_t FormMaker::elements_of_line(const snippet::Body& body) const {
  return int64_t{kLineBytes} * lanes_of(isa_of(target_), body) * 8 / vector_bits(isa_of(target_));
}

int64_t FormMaker::least_head_row(const snippet::Body& body) const {
  const int lanes = lanes_of(isa_of(target_), body);
  const bool parts = std::ranges::any_of(
      body.outputs, [&](const snippet::BodyPort& output) { return lanes * output.element.bits() / 8 < kLineBytes; });
  return (parts ? options_.head_row_lines_of_parts : options_.head_row_lines) * elements_of_line(body);
}

// Storing whole lines has a cost at both ends of each skewed row. Several tensors and costly sweeps amortise it
// earlier.
int64_t FormMaker::least_turned_row(const snippet::Body& body) const {
  const auto moves = [&](const snippet::BodyPort& input) {
    return body.values[static_cast<size_t>(input.value)].varies == body.all_dims();
  };
  const bool several = std::ranges::count_if(body.inputs, moves) > 1, costly = costly_of(body) != Costly::none;
  return elements_of_line(body) * (costly ? 14 : several ? 32 : 64);
}

bool FormMaker::stores_lines(const snippet::Body& body) const {
  const int lanes = lanes_of(isa_of(target_), body);
  return isa_of(target_) == Isa::avx512 && std::ranges::any_of(body.outputs, [&](const snippet::BodyPort& output) {
           return lanes * output.element.bits() == 8 * kLineBytes && output.element.bits() >= 32;
         });
}

// For rows that are reduced, begin anywhere and are too short for heads: no non-temporal stores, but prefetching as in
// the forms that have them.
void FormMaker::add_far(std::vector<Tier>& tiers, const snippet::Body& body) const {
  if (rows_aligned(body).value_or(false) || !body.reduces() || !body.dims.back().reduced) return;
  Tier far = tiers[1];
  far.suffix = ".far";
  far.calls.least_bytes = tiers[2].calls.least_bytes;
  far.calls.innermost.most = least_head_row(body) - 1;
  walk_from(far, "host", vector_bits(isa_of(target_)) / 8 / lanes_of(isa_of(target_), body));
  tiers.insert(tiers.begin() + 2, std::move(far));
}

std::optional<StagedRows> staged_rows_of(const snippet::Body& body) {
  if (rows_aligned(body).value_or(false) || !body.reduces() || !body.dims.back().reduced) return std::nullopt;
  if (body.outputs.size() != 1 || body.first_of_row() != 1 || !body.outputs[0].cuts.empty()) return std::nullopt;
  if (body.values[static_cast<size_t>(body.outputs[0].value)].varies != body.all_dims()) return std::nullopt;
  return StagedRows{.output = static_cast<int>(body.inputs.size()), .dims = body.reduced_dims()};
}

// Results are collected in a staging buffer until they fill whole lines, which are stored with non-temporal stores. Not
// for rows shorter than a line: a line would be stored for every few of them, which costs more than it gains. Longer
// rows are skewed, or processed alone where nothing is prefetched.
void FormMaker::add_staged_rows(std::vector<Tier>& tiers, const snippet::Body& body) const {
  const std::optional<StagedRows> rows = staged_rows_of(body);
  const auto non_temporal = [](const Tier& tier) { return tier.passes.stream_stores; };
  const auto streaming = std::ranges::find_if(tiers, non_temporal);
  if (!rows || streaming == tiers.end()) return;
  Tier staged = tiers[1];
  staged.suffix = ".staged";
  staged.calls = {
      .least_bytes = streaming->calls.least_bytes, .rows = {.least = elements_of_line(body)}, .rows_aligned = false};
  walk_from(staged, "host", vector_bits(isa_of(target_)) / 8 / lanes_of(isa_of(target_), body));
  const bool go_alone = staged.passes.prefetch_reads.lines == 0;
  staged.calls.rows.most = (go_alone ? far_rows_of(body).shortest : least_turned_row(body)) - 1;
  staged.passes.prefetch_writes = {};
  staged.passes.streams = {};
  staged.passes.staged_rows = rows;
  tiers.push_back(std::move(staged));
}

// A second non-temporal form, for rows that begin anywhere; it replaces the first one where rows are known to do so.
// Not for columns, nor for orders that store several rows in one sweep, because each of these would have another
// alignment. The store of skewed rows is fused with a reduction, so it has no head: its vectors are rotated instead.
void FormMaker::add_heads(std::vector<Tier>& tiers, const snippet::Body& body) const {
  const std::optional<bool> aligned = rows_aligned(body);
  if (aligned.value_or(false) || folds_columns(body, 0)) return;
  const Expr& row = body.dims.back().extent;
  if (row.is_constant() && row.constant() < least_head_row(body)) return;
  const bool costly = costly_of(body) != Costly::none;
  const int64_t least = least_turned_row(body);
  std::vector<Tier> all;
  for (const Tier& tier : tiers) {
    if (!tier.passes.stream_stores || !aligned) all.push_back(tier);
    const bool skewed = is_skewed(tier.row_order);
    if (!tier.passes.stream_stores || (skewed && !stores_lines(body)) || tier.calls.multiple > 1 ||
        stores_several_rows(tier.row_order))
      continue;
    Tier& any = all.emplace_back(tier);
    const bool lines = skewed || (tier.row_order == RowOrder::one_by_one && stores_lines(body) && !costly);
    any.suffix += lines ? ".lines" : ".heads";
    if (lines) any.lower.held_vectors = 0;  // in fully unrolled rows, stores have no loop counter
    any.passes.row_begins = lines ? RowBegins::turned : RowBegins::behind_heads;
    if (skewed && !tier.lower.merge_sweeps) any.calls.rows.least = std::max(any.calls.rows.least, least);
  }
  tiers = std::move(all);
}

// Further forms that store rows of columns non-temporally, in whole lines wherever rows begin; they replace the others
// where no row is known to begin at a line. A row of a block has two edges, which cost as much as several lines. The
// rows must therefore have four times as many lines as rows that are stored alone, and twice that where blocks are
// small.
void FormMaker::add_lines(std::vector<Tier>& tiers, const snippet::Body& body) const {
  const std::optional<bool> aligned = rows_aligned(body);
  if (aligned.value_or(false) || !body.reduces() || body.dims.back().reduced || !stores_lines(body)) return;
  const Expr& row = body.dims.back().extent;
  const int64_t least_row = 4 * least_head_row(body);
  if (row.is_constant() && row.constant() < least_row) return;
  std::vector<Tier> all;
  for (Tier& tier : tiers) {
    const bool streams = tier.passes.stream_stores && tier.lower.whole_rows && !tier.lower.join_rows;
    Tier lines = tier;
    if (streams && tier.lower.behind_blocks) tier.calls.rows_aligned = true;
    if (!streams || !aligned) all.push_back(std::move(tier));
    if (!streams) continue;
    lines.calls.rows_aligned = false;
    lines.calls.rows.least = lines.lower.behind_blocks && lines.lower.merge_sweeps ? 2 * least_row : least_row;
    lines.suffix += ".lines";
    lines.passes.row_begins = RowBegins::turned;
    all.push_back(std::move(lines));
  }
  tiers = std::move(all);
}

}  // namespace tenon::x86
