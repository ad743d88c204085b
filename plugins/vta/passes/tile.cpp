#include "vta/kernel_tiling.hpp"
#include "vta/passes/walk.hpp"

namespace tenon::vta {

Pass vta_tile(const PassContext& context) {
  const auto run = [hardware = context.hardware](Kernel& kernel) -> Result<void> {
    TENON_TRY(layer, layer_of(kernel, hardware));
    const int64_t slots = integer_of(kernel->attributes(), names().slots, 1);
    TENON_TRY(tiling, best_tiling(layer, kernel->operand_count(), slots, hardware));
    set_tiling(kernel.op(), tiling);
    return {};
  };
  return pass_over_kernels("vta-tile", "Needs slots. Leaves the tiles with the fewest cycles as attributes of kernels.",
                           run);
}

}  // namespace tenon::vta
