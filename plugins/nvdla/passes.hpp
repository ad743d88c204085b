// The passes of the plugin, in the order of the phases. Each is made for one machine.
//
//   preparation        prepare-half     f32 operators that the machine runs in f16, with casts at the borders
//   tensor selection   select-nvdla     generic and fused operators to those of the machine (select.hpp)
//                      fuse-nvdla       the chains that the target file lists
//                      lay-out-nvdla    activations and weights in the target file's layouts
//   tensor scheduling  plan-nvdla       the convolution buffer (buffer_plan.hpp)
//   memory allocation  place-nvdla      places in DRAM
//   code emission      encode-nvdla     commands (command.hpp)
#pragma once
#include <tenon/passes/pass_manager.hpp>

#include "nvdla/machine.hpp"

namespace tenon::nvdla {

Pass prepare_half_pass(MachinePtr machine);
Pass select_pass(MachinePtr machine);
// Code::invalid_argument for a chain that the machine has no units for.
Result<Pass> fuse_pass(MachinePtr machine);
Pass lay_out_pass(MachinePtr machine);
Pass plan_pass(MachinePtr machine);
Pass place_pass(MachinePtr machine);
Pass encode_pass(MachinePtr machine);

}  // namespace tenon::nvdla
