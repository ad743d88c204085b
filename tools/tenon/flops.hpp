// Floating-point operations of one run, from static shapes.
#pragma once
#include <cstdint>

#include <tenon/ir/graph.hpp>

namespace tenon::cli {

// 2 per multiply-add of convolutions, matrix products and recurrent layers; elementwise work is not counted. Operators
// without static shapes count 0.
int64_t count_flops(Graph& graph);

}  // namespace tenon::cli
