#include "vta/kernel_tiling.hpp"
#include "vta/passes/walk.hpp"

namespace tenon::vta {

Pass vta_double_buffer(const PassContext& context) {
  const auto run = [hardware = context.hardware, wanted = context.double_buffer](Kernel& kernel) -> Result<void> {
    TENON_TRY(layer, layer_of(kernel, hardware));
    TENON_TRY(slots, slots_of(layer, hardware, wanted));
    kernel->set_attr(names().slots, slots);
    return {};
  };
  return pass_over_kernels("vta-double-buffer",
                           "Needs packed kernels. Leaves `slots`: into how many parts INP and ACC are cut.", run);
}

}  // namespace tenon::vta
