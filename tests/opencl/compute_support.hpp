// Table-driven comparison of graphs on a device with the reference.
#pragma once
#include <support_lib/random_tensor.hpp>

#include "graph_support.hpp"

namespace tenon::opencl::testing {

struct ComputeCase {
  const char* name;
  const char* text;
  double rtol = 0;            // 0: bit for bit
  int64_t largest_index = 0;  // i64 inputs have values in [-n, n); 0: any
};

inline std::string name_of(const ::testing::TestParamInfo<ComputeCase>& info) { return info.param.name; }

class OpenclCompute : public OpenclTest, public ::testing::WithParamInterface<ComputeCase> {
 protected:
  static Datum input(std::mt19937& random, const Type& type, int64_t largest_index) {
    const Dims dims = *type.shape().static_dims();
    if (type.element() == kI64 && largest_index > 0) {
      Tensor tensor = *Tensor::allocate(kI64, dims);
      std::uniform_int_distribution<int64_t> any(-largest_index, largest_index - 1);
      for (int64_t& value : tensor.mutable_as<int64_t>()) value = any(random);
      return Datum(std::move(tensor));
    }
    return Datum(tenon::testing::random_tensor(random, type.element(), dims));
  }
  static std::vector<Datum> inputs_of(const Graph& graph, int64_t largest_index) {
    std::mt19937 random(11);
    std::vector<Datum> inputs;
    for (size_t i = 0; i < graph.body().input_count(); ++i)
      inputs.push_back(input(random, graph.body().input(i)->type(), largest_index));
    return inputs;
  }

  // No operator is refused, all run on the device, and the outputs equal those of the reference.
  void expect_reference(const ComputeCase& of) {
    auto backend = create_backend(cpu_target());
    ASSERT_TRUE(backend.ok()) << backend.error().to_string();
    auto graph = parse_graph(of.text);
    ASSERT_TRUE(graph.ok()) << graph.error().to_string();
    for (const Op& op : (*graph)->body()) {
      const auto refusal = op.is("Constant") ? std::nullopt : (*backend)->refuses(op);
      EXPECT_FALSE(refusal) << refusal->reason;
    }
    const std::vector<Datum> inputs = inputs_of(**graph, of.largest_index);
    std::vector<OpProfile> profile;
    testing::expect_reference(*stream, **backend, **graph, inputs, {.rtol = of.rtol, .atol = of.rtol}, &profile);
    EXPECT_FALSE(profile.empty());
  }
};

}  // namespace tenon::opencl::testing
