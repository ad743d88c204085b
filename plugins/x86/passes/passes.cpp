// The order of all passes.
#include "x86/passes/passes.hpp"

#include <tenon/snippet/linear/unroll.hpp>

#include "x86/passes/internal.hpp"

namespace tenon::x86 {

Result<void> optimise(LinearKernel& kernel, const PassOptions& options) {
  if (options.near) unswitch_loops(kernel, options);
  use_low_bits(kernel);
  if (options.near || options.bytes) join_bytes(kernel, options.isa);
  options.isa == Isa::avx512 ? join_conditions(kernel) : turn_choices(kernel);
  if (options.contract) tabulate_functions(kernel, options.isa);
  divide_by_constants(kernel);
  multiply_by_powers(kernel);
  mark_narrow_integers(kernel);
  mark_narrow_loads(kernel);
  if (options.contract) contract_multiply_add(kernel);
  set_signs(kernel);
  // After contraction, because it counts the other instructions beside quotients.
  if (options.contract) divide_by_standing(kernel, options), divide_by_rows(kernel, options);
  // After contraction, which does not cross loops, so that the bits are those of open extents.
  if (options.near) snippet::unroll_known_loops(kernel);
  drop_neutral_folds(kernel);
  share_nan_checks(kernel);
  mark_first_lanes(kernel);
  pack_fours(kernel);
  narrow_alike(kernel);
  take_roots_by_products(kernel, options);
  leave_rounding_to_stores(kernel);
  if (options.far_by_halves)
    load_by_halves(kernel, ByHalves::first_walks);
  else if (options.row_begins != RowBegins::at_lines && kernel.blocks.dim < 0)
    load_by_halves(kernel, ByHalves::all);
  if (options.memory_operands) fold_loads(kernel, options.isa);
  if (options.stream_stores) stream_stores(kernel, options), loads_before_stores(kernel);
  if (options.items) stage_items(kernel, *options.items);
  if (options.staged_rows) stage_rows(kernel, *options.staged_rows);
  // Blocks and joined rows are short, and several of their rows are processed side by side already.
  if (kernel.blocks.dim < 0) {
    fetch_ahead(kernel, options);
  } else if (options.block_cache_bytes > 0) {
    size_blocks(kernel, options);
    if (options.prefetch_blocks && kernel.blocks.inside && kernel.merged)
      fetch_rows_ahead(kernel);
    else if (options.prefetch_blocks && !kernel.merged)
      prefetch_blocks(kernel);
    // The blocks are long rows that no cache holds.
    if (kernel.merged && !kernel.blocks.inside && options.prefetch_reads.lines > 0)
      prefetch_lines(kernel, {}, options.prefetch_reads);
  }
  if (options.row_begins == RowBegins::turned) store_lines(kernel);
  spread_prefetches(kernel);
  fold_steps(kernel);
  store_fours(kernel);
  return snippet::verify(kernel);
}

}  // namespace tenon::x86
