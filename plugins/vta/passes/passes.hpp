// The passes of the four phases, in their order. Each takes what the one before it left; operators that are not the
// device's are left alone.
#pragma once
#include <tenon/passes/pass_manager.hpp>
#include <tenon/target/description.hpp>

#include "vta/hardware.hpp"

namespace tenon::vta {

struct PassContext {
  TargetDescription target;
  Hardware hardware;
  bool double_buffer = true;  // two slots where they fit
  bool check_races = true;
};

// ---- Tensor selection ----
// Needs types. Leaves vta.View for what changes shapes alone, by names that the model may have many of.
Pass vta_legalise(const PassContext& context);
// Needs vta-legalise. Leaves a vta.Kernel on whole tensors for each fused operator; views between them are gone.
Pass vta_select(const PassContext& context);
// Needs vta-select. Leaves constants in the machine's blocks, layouts on activations, and dma between host and DRAM.
Pass vta_pack(const PassContext& context);

// ---- Tensor scheduling ----
// Needs packed kernels. Leaves `slots` on them: into how many parts INP and ACC are cut.
Pass vta_double_buffer(const PassContext& context);
// Needs slots. Leaves the tiles with the fewest cycles as attributes of kernels.
Pass vta_tile(const PassContext& context);
// Needs tiles. Leaves bodies in tiles: loads, steps and stores of each, in slots.
Pass vta_insert_dma(const PassContext& context);

// ---- Memory allocation ----
// Needs bodies in tiles. Leaves their places in INP, WGT and ACC, and micro-ops in pages of UOP.
Pass vta_scratchpads(const PassContext& context);
// Needs kernels. Leaves addresses in DRAM: an arena of activations by their lives, constants behind it.
Pass vta_dram(const PassContext& context);

// ---- Code emission ----
// Needs places of everything. Leaves a vta.Stream for each kernel: instructions by the jitter table, checked for races.
Pass vta_encode(const PassContext& context);

}  // namespace tenon::vta
