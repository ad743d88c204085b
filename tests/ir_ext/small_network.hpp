// A small network of common parts, and samples for it.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include <tenon-ext/quant/calibrate.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon::quant {

inline Tensor normal(std::mt19937& random, Dims dims, float deviation) {
  std::normal_distribution<float> numbers(0, deviation);
  Tensor out = *Tensor::zeros(kF32, std::move(dims));
  for (float& x : out.mutable_as<float>()) x = numbers(random);
  return out;
}

// A residual block between two convolutions, a mean and a classifier, with weights similar to trained ones.
inline std::unique_ptr<Graph> network(std::mt19937& random) {
  auto graph = std::make_unique<Graph>("net");
  Builder b(graph->body());
  Value* x = graph->body().add_input("x", Type(kF32, Shape(Dims{1, 3, 12, 12})));
  const auto conv = [&](Value* input, int64_t channels, int64_t outputs, const char* name) {
    Value* w =
        b.constant(normal(random, {outputs, channels, 3, 3}, std::sqrt(2.0f / static_cast<float>(9 * channels))));
    Value* bias = b.constant(normal(random, {outputs}, 0.1f));
    Value* y = *b.op("Conv", {input, w, bias}, {{"pads", Attribute::Integers{1, 1, 1, 1}}});
    y->set_name(name);
    return y;
  };
  Value* first = *b.op("Relu", {conv(x, 3, 16, "c1")});
  first->set_name("r1");
  Value* second = *b.op("Relu", {conv(first, 16, 16, "c2")});
  second->set_name("r2");
  Value* sum = *b.op("Relu", {*b.op("Add", {conv(second, 16, 16, "c3"), first})});
  sum->set_name("sum");
  Value* pooled =
      *b.op("MaxPool", {sum}, {{"kernel_shape", Attribute::Integers{2, 2}}, {"strides", Attribute::Integers{2, 2}}});
  pooled->set_name("pooled");
  Value* mean = *b.op("GlobalAveragePool", {pooled});
  mean->set_name("mean");
  Value* flat = *b.op("Flatten", {mean});
  Value* y = *b.op("Gemm", {flat, b.constant(normal(random, {10, 16}, 0.5f)), b.constant(normal(random, {10}, 0.1f))},
                   {{"transB", int64_t{1}}});
  y->set_name("y");
  graph->body().add_output(y, "y");
  return graph;
}

inline Samples samples_of(std::mt19937& random, size_t count) {
  Samples samples(count);
  for (auto& inputs : samples) inputs.push_back(normal(random, {1, 3, 12, 12}, 1));
  return samples;
}

// The first output, on the reference.
inline Tensor output_of(const Graph& graph, const std::vector<Datum>& inputs) {
  const auto interpreter = Interpreter::prepare(graph);
  EXPECT_TRUE(interpreter.ok()) << interpreter.error().to_string();
  const auto outputs = (*interpreter)->run(inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.error().to_string();
  return (*outputs)[0].tensor();
}

// Without constants.
inline std::map<std::string, int> count_operators(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Op& op : graph.body()) ++counts[std::string(op.name().str())];
  counts.erase("Constant");
  return counts;
}

}  // namespace tenon::quant
