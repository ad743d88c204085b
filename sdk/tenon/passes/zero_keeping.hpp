// Which operators map zero padding to zero.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon {

// Evaluates the reference, once per combination of operator, attributes, types and constants.
class ZeroKeeping {
 public:
  // Whether the elementwise operator gives all-zero bits where its operands are 0. `known` has an entry per operand:
  // the one element that it has everywhere, or null for zero.
  bool keeps(const Op& op, const std::vector<const Tensor*>& known);

 private:
  std::unordered_map<std::string, bool> answers_;
};

}  // namespace tenon
