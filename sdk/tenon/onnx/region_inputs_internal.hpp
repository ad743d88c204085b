// The types of a region's inputs, as far as the operator around it tells them: files mostly leave them out.
#pragma once
#include <tenon/ir/graph.hpp>

namespace tenon::onnx {

// For input `i` of the body of a Loop, Scan or SequenceMap; unknown for others. Shapes that may change from one
// iteration to the next are left open.
Type region_input_type(const Op& op, size_t i);

}  // namespace tenon::onnx
