// The passes of the four phases, in order. Each requires the results of the previous one. Operators that are not the
// device's are left alone.
#pragma once
#include <tenon/passes/pass_manager.hpp>
#include <tenon/target/description.hpp>

#include "vta/hardware.hpp"

namespace tenon::vta {

struct PassContext {
  TargetDescription target;
  Hardware hardware;
  bool double_buffer = true;  // uses two slots where they fit
  bool check_races = true;
};

// ---- Tensor selection ----
// Needs types. Replaces operators that only change shapes by vta.View.
Pass vta_legalise(const PassContext& context);
// Needs vta-legalise. Makes a vta.Kernel on whole tensors for each fused operator; views between kernels disappear.
Pass vta_select(const PassContext& context);
// Needs vta-select. Packs constants into the machine's blocks, sets layouts of activations, and inserts dma transfers
// between host and DRAM.
Pass vta_pack(const PassContext& context);

// ---- Tensor scheduling ----
// Needs packed kernels. Sets `slots`: the number of parts into which INP and ACC are divided.
Pass vta_double_buffer(const PassContext& context);
// Needs slots. Sets the tiling with the fewest cycles as attributes of kernels.
Pass vta_tile(const PassContext& context);
// Needs tilings. Replaces bodies by tiled ones: loads, steps and stores, in slots.
Pass vta_insert_dma(const PassContext& context);

// ---- Memory allocation ----
// Needs tiled bodies. Assigns places in INP, WGT and ACC, and puts micro-ops into pages of UOP.
Pass vta_scratchpads(const PassContext& context);
// Needs kernels. Assigns addresses in DRAM: activations in an arena by lifetimes, followed by constants.
Pass vta_dram(const PassContext& context);

// ---- Code emission ----
// Needs all places. Makes a vta.Stream of each kernel: instructions by the jitter table, checked for races.
Pass vta_encode(const PassContext& context);

}  // namespace tenon::vta
