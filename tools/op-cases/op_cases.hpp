// Random instances of operators, with one way to draw them for each operator with a bounds rule: for tests and for
// `tenon certify`.
#pragma once
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <tenon/ir/attribute.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::testing {

// One operand: how to draw its elements, repeatedly with the same type and shape.
struct DrawnOperand {
  std::function<Tensor(std::mt19937&)> draw;  // none: the operand is absent
  bool constant = false;                      // part of the instance: a Constant in the graph, drawn only once
  bool finite = false;                        // NaN and infinity are not allowed
};
struct DrawnOp {
  std::vector<DrawnOperand> operands;
  Attributes attributes;
  size_t results = 1;
};
using DrawOp = std::function<DrawnOp(std::mt19937&)>;

// By operator name; several where an operator has very different modes.
const std::multimap<std::string, DrawOp>& op_cases();

}  // namespace tenon::testing
