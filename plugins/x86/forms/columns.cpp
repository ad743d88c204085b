// Forms for columns of few rows, and for short columns of many items.
#include <algorithm>
#include <bit>

#include "x86/forms/forms.hpp"

namespace tenon::x86 {

// All of the few rows are read side by side, one tile of columns at a time. Accumulators stay in registers, whereas
// whole rows would carry them to scratch memory and back for every few rows. Not where outputs advance along with the
// rows, because in tiles their stores do not overlap with reads.
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
  // Among forms for the same size, those for fewer calls come after those for more.
  std::ranges::stable_sort(all, {}, [](const Tier& tier) { return tier.calls.least_bytes; });
  tiers = std::move(all);
}

// Kept dims, then reduced ones, which together with its columns make up an item.
std::optional<Items> items_of(const snippet::Body& body) {
  if (!body.reduces() || body.dims.back().reduced || body.outputs.size() != 1) return std::nullopt;
  if (body.values[static_cast<size_t>(body.outputs[0].value)].varies != body.all_dims() ||
      !body.outputs[0].cuts.empty())
    return std::nullopt;
  const snippet::DimSet reduced = body.reduced_dims();
  const int first = std::countr_zero(reduced), columns = static_cast<int>(body.rank()) - 1;
  if (first == 0 || (reduced >> first) + 1 != snippet::DimSet{1} << (columns - first)) return std::nullopt;
  Items items{.dim = first - 1, .output = static_cast<int>(body.inputs.size())};
  const snippet::DimSet of_item = body.all_dims() >> items.dim << items.dim;
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    const snippet::BodyPort& input = body.inputs[i];
    if ((body.values[static_cast<size_t>(input.value)].varies & of_item) == of_item && input.cuts.empty())
      items.dense.push_back(static_cast<int>(i));
  }
  return items;
}

// For short columns of many items. A near cache must hold an item, the next one, what sweeps keep of it, and two staged
// items.
void FormMaker::add_items(std::vector<Tier>& tiers, const snippet::Body& body) const {
  constexpr double kLeastItemBytes = 4096;
  constexpr int64_t kMostColumns = 1024;
  const MemorySpace* second = target_.memory("l2");
  const std::optional<Items> walked = items_of(body);
  if (isa_of(target_) != Isa::avx512 || !second || !walked) return;
  const auto streams = [](const Tier& tier) { return tier.passes.stream_stores; };
  const auto streaming = std::ranges::find_if(tiers, streams);
  if (streaming == tiers.end()) return;
  Tier items = tiers.front();
  items.suffix = ".items";
  items.lower.whole_rows = items.lower.join_rows = false;
  items.calls = {.least_bytes = streaming->calls.least_bytes,
                 .rows = {.least = kLeastRowVectors * items.lower.lanes, .most = kMostColumns},
                 .least_folded_bytes = kLeastItemBytes,
                 .most_item_bytes = static_cast<double>(second->size_bytes) / 5 * 2};
  items.passes.items = walked;
  tiers.push_back(std::move(items));
}

}  // namespace tenon::x86
