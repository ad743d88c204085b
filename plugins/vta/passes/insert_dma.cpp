#include "vta/command_ops.hpp"
#include "vta/kernel_tiling.hpp"
#include "vta/passes/walk.hpp"

namespace tenon::vta {

Pass vta_insert_dma(const PassContext& context) {
  const auto run = [hardware = context.hardware](Kernel& kernel) -> Result<void> {
    TENON_TRY(layer, layer_of(kernel, hardware));
    TENON_TRY(tiling, tiling_of(kernel, layer));
    Kernel tiled = new_kernel(kernel, kernel->operands());
    Value* y = write_commands(commands_of(layer, tiling, hardware), tiled, hardware);
    finish_kernel(tiled, y, kernel);
    return {};
  };
  return pass_over_kernels("vta-insert-dma",
                           "Needs tiles. Leaves bodies in tiles: loads, steps and stores of each, in slots.", run);
}

}  // namespace tenon::vta
