// A model that alternates between two host targets, whose kernels allocate no memory.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <string>

#include <support_lib/assembled.hpp>
#include <support_lib/fake_backend.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/irgen/kernel_source.hpp>
#include <tenon/plugin/host_executable.hpp>

namespace tenon::testing {

// A first element that the kernels refuse.
inline constexpr float kRefused = 12345;

// Evaluators of the reference allocate memory; these kernels do not.
template <float (*kFunction)(float)>
Result<void> map_all(program::CallContext& call) {
  int64_t count = 1;
  for (const program::DimView& dim : call.operands[0].dims) count *= dim.extent;
  const auto* x = reinterpret_cast<const float*>(call.operands[0].base);
  if (count > 0 && x[0] == kRefused) return error(Code::invalid_argument, "refused");
  auto* y = reinterpret_cast<float*>(call.operands[1].base);
  for (int64_t i = 0; i < count; ++i) y[i] = kFunction(x[i]);
  return {};
}
inline float negated(float x) { return -x; }
inline float absolute(float x) { return std::abs(x); }

class OwnKernels final : public irgen::KernelSource {
 public:
  std::string_view name() const override { return "own"; }
  Result<irgen::KernelChoice> kernel(const irgen::KernelRequest& request) const override {
    if (request.op.is("Neg")) return irgen::KernelChoice{.kernel = program::make_kernel("neg", map_all<negated>)};
    if (request.op.is("Abs")) return irgen::KernelChoice{.kernel = program::make_kernel("abs", map_all<absolute>)};
    return error(Code::unsupported, "only Neg and Abs");
  }
};

// A host target whose executables run synchronously.
class HostBackend final : public FakeBackend {
 public:
  using FakeBackend::FakeBackend;
  Result<std::unique_ptr<Executable>> build(std::unique_ptr<Graph> graph) override {
    return make_host_executable(std::move(graph),
                                {.target = "host", .kernels = std::make_shared<OwnKernels>(), .runner = {}});
  }
};

// Compiled for two host targets, with Neg on the first and Abs on the second.
inline std::unique_ptr<CompiledModel> on_two_targets(const std::string& text) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  HostBackend first("first", {"Neg"}), second("second", {"Abs"});
  auto model = assembled(**graph, {&first, &second});
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  return *std::move(model);
}

// Alternating segments of two targets: y = |-|-x||, and the value in the middle.
inline std::unique_ptr<CompiledModel> alternating(const std::string& extent, const std::string& outputs = "%y, %b") {
  auto model = on_two_targets("graph @turns(%x: f32[" + extent + ",64]) -> (" + outputs + R"() {
    %a = Neg %x
    %b = Abs %a
    %c = Neg %b
    %d = Abs %c
    %e = Neg %d
    %y = Abs %e
  })");
  EXPECT_EQ(model->segments().size(), 6u);
  return model;
}

inline Tensor filled(int64_t rows, float first) {
  Tensor tensor = *Tensor::allocate(kF32, {rows, 64});
  std::iota(tensor.mutable_as<float>().begin(), tensor.mutable_as<float>().end(), first);
  return tensor;
}

inline void expect_absolute(const Datum& output, const Datum& input) {
  ASSERT_TRUE(output.is_tensor());
  ASSERT_EQ(output.tensor().dims(), input.tensor().dims());
  const auto x = input.tensor().as<float>(), y = output.tensor().as<float>();
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], std::abs(x[i])) << i;
}

}  // namespace tenon::testing
