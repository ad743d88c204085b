// Generic operators for random graphs, and inputs for them: for comparing two ways of running the same graph.
#pragma once
#include <random>
#include <string>
#include <vector>

#include <support_lib/random_graph.hpp>
#include <support_lib/random_tensor.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon::testing {
namespace detail {

inline Attributes cast_to(std::mt19937_64& random) {
  static const ElementType kTo[] = {kF32, kF32, kI64, kBool, kF64, kI32};
  return {{"to", Type(kTo[random() % std::size(kTo)], Shape())}};
}
inline Attributes permutation(std::mt19937_64& random) {
  static const std::vector<Attribute::Integers> kPerms = {{1, 0}, {0, 1}, {2, 0, 1}, {1, 2, 0}, {0, 2, 1}, {1, 0, 2}};
  return {{"perm", kPerms[random() % kPerms.size()]}};
}
inline Attributes axis(std::mt19937_64& random) { return {{"axis", static_cast<int64_t>(random() % 3)}}; }

}  // namespace detail

// Operators that occur more often in the list are drawn more often. None makes shapes from data: an untaken branch
// could otherwise become contradictory when a pass infers more.
inline std::vector<RandomOp> usual_operators() {
  std::vector<RandomOp> ops = {"Add",   "Add",   "Sub",     "Mul",       "Div", "Neg",    "Abs",  "Relu",  "Relu",
                               "Min",   "Max",   "Sum",     "Mean",      "Pow", "Floor",  "Ceil", "Round", "Sign",
                               "Where", "Equal", "Less",    "Not",       "And", "Or",     "Xor",  "Clip",  "Identity",
                               "Shape", "Size",  "Greater", "LeakyRelu", "Exp", "Dropout"};
  ops.push_back({"Cast", detail::cast_to});
  ops.push_back({"Cast", detail::cast_to});
  for (int i = 0; i < 5; ++i) ops.push_back({"Transpose", detail::permutation});
  ops.push_back(RandomOp("Transpose"));
  ops.push_back({"Flatten", detail::axis});
  ops.push_back({"Concat", detail::axis});
  return ops;
}

// Small numbers for each input; the symbol "N" is 4.
inline std::vector<Datum> random_inputs(const Graph& graph, uint64_t seed) {
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
  std::vector<Datum> inputs;
  for (size_t i = 0; i < graph.body().input_count(); ++i) {
    const Type& type = graph.body().input(i)->type();
    Dims dims;
    for (const Dim& dim : type.shape().dims()) dims.push_back(dim.is_static() ? dim.value() : 4);  // "N"
    const bool truth = type.element().is_bool();
    inputs.emplace_back(random_tensor(random, type.element(), dims, truth ? 0 : -20, truth ? 1 : 20));
  }
  return inputs;
}

}  // namespace tenon::testing
