// Shared by the tests of lowering: bodies, and a fixture that checks a body with several register counts and widths.
#pragma once
#include <tenon/snippet/lower/lower.hpp>

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <vector>

#include <snippet/bodies.hpp>

namespace tenon::snippet::test {

class Lower : public ::testing::Test {
 protected:
  // Without register allocation, and with few and many registers.
  void check(const Body& body, const Dims& extents, double tolerance = 0) {
    for (const int count : {0, 4, 16}) {
      HarnessOptions options{.lower = options_, .blocks = blocks_, .tolerance = tolerance};
      if (count > 0) options.machine = test_machine(count, count == 16, true);
      check_body(body, extents, random_, options);
      if (HasFatalFailure()) return;
    }
  }
  // All widths of the innermost dim.
  void check_widths(const Body& body, Dims extents, double tolerance = 0) {
    for (const int64_t width : widths_of(options_.lanes)) {
      extents.back() = width;
      check(body, extents, tolerance);
      if (HasFatalFailure()) return;
    }
  }
  // As for a target where keeping a transcendental function in a scratch row is faster than recomputing it.
  static double cycles(const Body&, const BodyNode& node) { return node.op == "Exp" ? 10 : 1; }

  LowerOptions options_{.lanes = 4, .unroll = 4, .cycles = cycles};
  std::vector<LinearKernel::Blocks::Size> blocks_ = {{128, 2000}, {.elements = 64}};
  std::mt19937 random_{1};
};

inline Body softmax_body(std::string_view dims) {
  BodyBuilder build("softmax", dims);
  const ValueId x = build.input((DimSet{1} << dims.size()) - 1);
  const ValueId e = build.op("Exp", {build.op("Sub", {x, build.reduce("ReduceMax", x)})});
  build.output(build.op("Div", {e, build.reduce("ReduceSum", e)}));
  return build.take();
}

inline Body layer_norm_body(std::string_view dims, DimSet scale) {
  BodyBuilder build("layer_norm", dims);
  const ValueId x = build.input((DimSet{1} << dims.size()) - 1);
  const ValueId gamma = build.input(scale), beta = build.input(scale);
  const ValueId mean = build.op("Div", {build.reduce("ReduceSum", x), build.count()});
  const ValueId centred = build.op("Sub", {x, mean});
  const ValueId square = build.op("Mul", {centred, centred});
  const ValueId variance = build.op("Div", {build.reduce("ReduceSum", square), build.count()});
  const ValueId deviation = build.op("Sqrt", {build.op("Add", {variance, build.scalar(0.001f)})});
  const ValueId normal = build.op("Div", {centred, deviation});
  build.output(build.op("Add", {build.op("Mul", {normal, gamma}), beta}));
  build.output(mean);
  return build.take();
}

}  // namespace tenon::snippet::test
