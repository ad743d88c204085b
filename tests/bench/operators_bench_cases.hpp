// The cases of operators_bench.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::bench {

struct OperatorCase {
  std::string name, graph;  // the graph in its text form
};

// Every elementwise operator of the registry whose required attributes have few values (all are tried), in every
// element type that it accepts, and Cast between all pairs: `elements` elements.
std::vector<OperatorCase> elementwise_cases(int64_t elements);

// Reductions, softmaxes and normalisations by rows, columns and groups in f32, f16 and bf16, operators that move
// elements, and small graphs from networks: about `elements` elements.
std::vector<OperatorCase> structured_cases(int64_t elements);

}  // namespace tenon::bench
