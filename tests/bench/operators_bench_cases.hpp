// What operators_bench measures.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::bench {

struct OperatorCase {
  std::string name, graph;  // the graph in its text form
};

// Every elementwise operator of the registry that needs no more attributes than those with few values (all are taken),
// in every element type that it takes, and Cast from each to each: `elements` elements.
std::vector<OperatorCase> elementwise_cases(int64_t elements);

// Folds, softmaxes and normalisations by rows, columns and groups in f32, f16 and bf16, the operators that move
// elements, and small graphs that networks have: about `elements` elements.
std::vector<OperatorCase> structured_cases(int64_t elements);

}  // namespace tenon::bench
