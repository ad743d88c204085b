// Forms for columns that few rows make, and for columns whose rows begin anywhere.
#include <algorithm>

#include "x86/forms.hpp"

namespace tenon::x86 {

// Of few rows all are read side by side, a tile of columns at a time: what columns fold into stays in registers, where
// whole rows would carry it to scratch memory and back for each few of them. Not where outputs are walked along with the
// rows, whose stores tiles do not overlap with reads.
void FormMaker::add_few_rows(std::vector<Tier>& tiers, const snippet::Body& body) const {
  constexpr int64_t kLeastVectors = 16;
  const MemorySpace* host = target_.memory("host");
  const auto is_swept = [&](const snippet::BodyPort& output) {
    return (body.values[static_cast<size_t>(output.value)].varies & body.reduced_dims()) != 0;
  };
  if (!host || host->most_streams == 0 || !body.reduces() || std::ranges::any_of(body.outputs, is_swept)) return;
  const int64_t least_row = kLeastVectors * lanes_of(isa_of(target_), body);
  const Expr& row = body.dims.back().extent;
  if (row.is_constant() && row.constant() < least_row) return;
  std::vector<Tier> all;
  for (const Tier& tier : tiers) {
    all.push_back(tier);
    if (!tier.lower.whole_rows || tier.lower.join_rows || tier.lower.behind_blocks || tier.lower.merge_sweeps) continue;
    Tier& few = all.emplace_back(tier);
    few.suffix += ".few";
    few.lower.whole_rows = false;
    few.calls.most_folded = static_cast<int64_t>(host->most_streams);
    few.calls.rows.least = least_row;
  }
  // What is for fewer calls comes behind what is for more of that size.
  std::ranges::stable_sort(all, {}, [](const Tier& tier) { return tier.calls.least_bytes; });
  tiers = std::move(all);
}

bool FormMaker::stores_lines(const snippet::Body& body) const {
  const int lanes = lanes_of(isa_of(target_), body);
  return isa_of(target_) == Isa::avx512 && std::ranges::any_of(body.outputs, [&](const snippet::BodyPort& output) {
    return lanes * output.element.bits() == 8 * kLineBytes && output.element.bits() >= 32;
  });
}

// The forms that store rows of columns past the caches once more, by whole lines wherever rows begin; where these are
// known to begin at none, in their place. A row of a block has two edges, which cost as much as several lines: rows of
// four times as many lines as rows that are stored alone, and twice that where blocks are small.
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
    lines.passes.whole_lines = true;
    all.push_back(std::move(lines));
  }
  tiers = std::move(all);
}

}  // namespace tenon::x86
