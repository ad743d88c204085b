// The forms that remain where extents are known.
#include <algorithm>
#include <optional>

#include "x86/forms/forms.hpp"

namespace tenon::x86 {
namespace {

// Bytes of all ports, or for one reduction, counted like CallPlan::folded_bytes(); none where extents are not known.
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

// Elements of one reduction, for known extents.
int64_t folded_elements(const snippet::Body& body) {
  int64_t elements = 1;
  for (const snippet::BodyDim& dim : body.dims)
    if (dim.reduced) elements *= dim.extent.constant();
  return elements;
}

}  // namespace

// For calls of known extents: removes the forms that none of them runs.
void FormMaker::keep_certain(std::vector<Tier>& tiers, const snippet::Body& body) const {
  const std::optional<double> bytes = bytes_of(body);
  if (!bytes) return;
  const int64_t innermost = body.rank() == 0 ? 0 : body.dims.back().extent.constant();
  int64_t row = 1;
  for (size_t d = body.first_of_row(); d < body.rank(); ++d) row *= body.dims[d].extent.constant();
  const double folded = *bytes_of(body, /*of_fold=*/true);
  const int64_t elements = folded_elements(body);
  const std::optional<bool> aligned = rows_aligned(body);
  std::erase_if(tiers, [&](const Tier& tier) {
    if (needs_lines(tier.row_order) && tier.passes.row_begins != RowBegins::turned && !aligned.value_or(true))
      return true;
    if (!tier.calls.holds_rows(row, innermost)) return true;
    if (aligned && tier.calls.rows_aligned.value_or(*aligned) != *aligned) return true;
    return tier.calls.least_bytes > *bytes || tier.calls.least_folded_bytes > folded ||
           tier.calls.most_folded_bytes < folded || tier.calls.most_folded < elements;
  });
  // Forms by row order: the calls that they serve need no other form, if it is known whether rows begin at lines.
  const auto is_last = [](const Tier& tier) { return tier.row_order != RowOrder::as_lowered; };
  const auto is_of_rows = [&](const Tier& tier) {
    const irgen::RowRange any;
    return (tier.calls.rows != any || tier.calls.innermost != any) && !tier.lower.merge_sweeps && !is_last(tier) &&
           tier.passes.row_begins != RowBegins::turned && !tier.passes.items && !tier.passes.staged_rows;
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

}  // namespace tenon::x86
