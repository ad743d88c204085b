// From an operator with its places and its plan to commands.
#pragma once
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/tensor.hpp>

#include "nvdla/command.hpp"
#include "nvdla/hardware.hpp"

namespace tenon::nvdla {

// For nvdla.Conv, nvdla.Sdp or nvdla.Pdp with the attributes that scheduling and memory allocation set.
Result<std::vector<Command>> commands_of(const Op& op, const Hardware& hardware);

// Conversion to the attribute `commands` and back.
Result<Tensor> to_tensor(const std::vector<Command>& commands);
Result<std::vector<Words>> words_of(const Op& op);

}  // namespace tenon::nvdla
