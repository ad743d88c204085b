// Random windows over planes, pools and depthwise convolutions, compared with the reference, in both forms
// (planes.hpp): reading inputs in place, and by work groups of several items. Elements are small integers; for maximum
// pools some are infinite or NaN.
//
// TENON_FUZZ_SEEDS sets the number of seeds, TENON_FUZZ_FIRST the first. One graph has kWindows of them, because a
// device's compiler is slow for each program.
#include <limits>
#include <set>

#include <support_lib/environment.hpp>

#include "fuzz_support.hpp"
#include "graph_support.hpp"

namespace tenon::opencl::testing {
namespace {

constexpr int kWindows = 6;

class RandomWindows : public RandomLines {
 public:
  using RandomLines::RandomLines;

  std::string text() {
    std::string outputs;
    for (int i = 0; i < kWindows; ++i) {
      const int64_t kind = one_of(3);
      outputs += str(i ? ", " : "", kind == 0 ? largest() : kind == 1 ? average() : depthwise());
    }
    return graph(outputs);
  }
  // The inputs of a maximum pool also have infinities and NaN.
  Tensor value(size_t i) {
    Tensor made = input(i);
    if (!of_largest_.contains(i)) return made;
    using Limits = std::numeric_limits<float>;
    const int64_t one_in = one_of(2) ? 40 : 1000;  // rows that hold only numbers follow a different path
    for (float& element : made.mutable_as<float>())
      if (one_of(one_in) == 0) element = one_of(2) ? -Limits::infinity() : Limits::quiet_NaN();
    return made;
  }

 private:
  struct Axes {
    Dims in, kernel;
    std::string attributes;
  };
  // Pads are smaller than the kernel, so that every window has an input. Widths are around that of a vector.
  Axes axes(bool dilated) {
    Axes made;
    std::string strides, dilations, begin, end, kernels;
    const int64_t rank = one_of(4) ? 2 : 1;
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t kernel = 1 + one_of(one_of(4) ? 3 : 7), stride = 1 + one_of(3);
      const int64_t dilation = dilated && one_of(3) == 0 ? 2 : 1, reach = (kernel - 1) * dilation + 1;
      const int64_t low = one_of(kernel), high = one_of(kernel);
      made.in.push_back(reach + one_of(d + 1 == rank ? 50 : 14));
      made.kernel.push_back(kernel);
      const std::string comma = d ? ", " : "";
      strides += str(comma, stride), dilations += str(comma, dilation), kernels += str(comma, kernel);
      begin += str(comma, low), end += str(", ", high);
    }
    made.attributes = str("strides = [", strides, "], pads = [", begin, end, "], kernel_shape = [", kernels, "]",
                          dilated ? str(", dilations = [", dilations, "]") : "");
    return made;
  }
  static Dims tensor(int64_t first, int64_t second, const Dims& rest) {
    Dims made{first, second};
    made.insert(made.end(), rest.begin(), rest.end());
    return made;
  }

  std::string largest() {
    const Axes of = axes(true);
    of_largest_.insert(inputs());
    return add(str("MaxPool ", add_input(tensor(1 + one_of(2), extent(5), of.in)), " {", of.attributes,
                   ", ceil_mode = ", one_of(2), "}"));
  }
  std::string average() {
    const Axes of = axes(true);
    return add(str("AveragePool ", add_input(tensor(1 + one_of(2), extent(5), of.in)), " {", of.attributes,
                   ", count_include_pad = ", one_of(2), ", ceil_mode = ", one_of(2), "}"));
  }
  std::string depthwise() {
    const Axes of = axes(true);
    const int64_t channels = extent(6), outputs = channels * (1 + one_of(3));
    std::string text =
        str("Conv ", add_input(tensor(1 + one_of(2), channels, of.in)), ", ", add_input(tensor(outputs, 1, of.kernel)));
    if (one_of(2)) text += str(", ", add_input({outputs}));
    const std::string made = add(str(text, " {group = ", channels, ", ", of.attributes, "}"));
    return one_of(2) ? add(str("Relu ", made)) : made;
  }

  std::set<size_t> of_largest_;
};

class OpenclWindows : public OpenclTest {
 protected:
  void try_seeds(const TargetDescription& target) {
    auto backend = create_backend(guarded_target(target));
    ASSERT_TRUE(backend.ok()) << backend.error().to_string();
    const uint32_t first = tenon::testing::first_seed(), seeds = tenon::testing::seeds(3);
    for (uint32_t seed = first; seed < first + seeds; ++seed) {
      SCOPED_TRACE(str("seed ", seed));
      try_seed(**backend, seed);
    }
  }

 private:
  void try_seed(TargetBackend& backend, uint32_t seed) {
    RandomWindows windows(seed);
    const std::string text = windows.text();
    const auto graph = parse_graph(text);
    ASSERT_TRUE(graph.ok()) << graph.error().to_string() << "\n" << text;
    std::vector<Datum> inputs;
    for (size_t i = 0; i < windows.inputs(); ++i) inputs.emplace_back(windows.value(i));
    std::vector<OpProfile> profile;
    // The division of an average is rounded once more where it is computed in doubles.
    expect_reference(*stream, backend, **graph, inputs, {.rtol = 1e-6, .atol = 1e-6}, &profile);
    EXPECT_EQ(profile.size(), static_cast<size_t>(kWindows)) << text;
  }
};

TEST_F(OpenclWindows, WhereInputsLieGiveTheReferencesResults) { try_seeds(cpu_target()); }

TEST_F(OpenclWindows, ByWorkGroupsGiveTheReferencesResults) {
  TargetDescription target = cpu_target();
  target.options.add("work_group", Setting::word("4"));
  try_seeds(target);
}

}  // namespace
}  // namespace tenon::opencl::testing
