// Reductions and sums of work groups by sub-groups: those of the device if it has them, and emulated ones of several
// sizes.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>

#include <support_lib/environment.hpp>
#include <support_lib/random_tensor.hpp>

#include "emulated_sub_groups.hpp"
#include "graph_support.hpp"

namespace tenon::opencl::testing {
namespace {

using tenon::testing::pick;
using tenon::testing::random_tensor;
using ::testing::HasSubstr;

constexpr const char* kFolds =
    R"(graph @g(%a: f32[R,W], %b: i32[R,W], %c: f32[R,W]) -> (%sum, %most, %least, %isum, %imost, %ileast, %product) {
  %axis = Constant {value = dense<i64[1]: 1>} : i64[1]
  %sum = ReduceSum %a, %axis {keepdims = 0}
  %most = ReduceMax %c, %axis {keepdims = 0}
  %least = ReduceMin %c, %axis {keepdims = 0}
  %isum = ReduceSum %b, %axis {keepdims = 0}
  %imost = ReduceMax %b, %axis {keepdims = 0}
  %ileast = ReduceMin %b, %axis {keepdims = 0}
  %product = ReduceProd %b, %axis {keepdims = 0}
})";

constexpr const char* kWideFolds =
    R"(graph @g(%a: f64[R,W], %b: i64[R,W], %c: f64[R,W]) -> (%sum, %most, %least, %product) {
  %axis = Constant {value = dense<i64[1]: 1>} : i64[1]
  %sum = ReduceSum %a, %axis
  %most = ReduceMax %c, %axis
  %least = ReduceMin %c, %axis
  %product = ReduceProd %b, %axis
})";

class OpenclSubGroups : public OpenclTest {
 protected:
  void SetUp() override {
    setenv("TENON_CACHE_DIR", "", 1);  // no other process should load programs built with the emulation
    OpenclTest::SetUp();
  }

  static TargetDescription groups(int64_t group) {
    TargetDescription made = cpu_target();
    made.options.add("work_group", Setting::word(str(group)));
    made.options.add("lanes", Setting::word("4"));
    return made;
  }
  static TargetDescription with_features(int64_t group, bool shuffle) {
    TargetDescription made = groups(group);
    made.features.emplace_back(kSubGroups);
    if (shuffle) made.features.emplace_back(kSubGroupShuffle);
    return made;
  }

  // Integers, so that sums are exact in any order; operand 2 also has infinite and subnormal numbers and NaN.
  Tensor input(size_t operand, ElementType element, const Dims& dims) {
    if (!element.is_float()) return random_tensor(random_, element, dims, element.is_signed_int() ? -3 : 1, 3);
    Tensor made = *Tensor::allocate(element, dims);
    const double some[] = {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), 1e-42,
                           -1e-42};
    const bool any = operand == 2;
    for (int64_t i = 0; i < made.size(); ++i) {
      double value = static_cast<double>(pick(random_, -9, 9));
      if (any && pick(random_, 0, 40) == 0) value = some[pick(random_, 0, 3)];
      if (any && pick(random_, 0, 400) == 0)
        value = std::copysign(std::numeric_limits<double>::quiet_NaN(), pick(random_, -1, 0));
      made.set_double(i, value);
    }
    return made;
  }

  // Compiles a graph once, for the extents of all `calls`.
  void right(const TargetDescription& target, const std::string& text, const std::vector<std::vector<Dims>>& calls,
             double tolerance = 0) {
    SCOPED_TRACE(str("seed ", seed_));
    auto backend = create_backend(target);
    ASSERT_TRUE(backend.ok()) << backend.error().to_string();
    const auto graph = parse_graph(text);
    ASSERT_TRUE(graph.ok()) << graph.error().to_string();
    const auto executable = compiled(**backend, (*graph)->clone());
    ASSERT_TRUE(executable.ok()) << executable.error().to_string();
    for (const std::vector<Dims>& shapes : calls) {
      std::vector<Datum> inputs;
      std::string extents;
      for (size_t i = 0; i < shapes.size(); ++i) {
        inputs.emplace_back(input(i, (*graph)->body().input(i)->type().element(), shapes[i]));
        extents += str(Shape(shapes[i]), ' ');
      }
      const std::vector<Tensor> expected = on_reference(**graph, inputs);
      const auto got = run_on(*stream, **executable, inputs);
      ASSERT_TRUE(got.ok()) << got.error().to_string();
      for (size_t i = 0; i < expected.size(); ++i) {
        const Comparison comparison = compare((*got)[i], expected[i], {.rtol = tolerance, .atol = tolerance});
        EXPECT_TRUE(comparison.equal) << extents << "output " << i << ": " << comparison.difference;
      }
    }
  }

  void folds_are_right(const TargetDescription& target) {
    std::vector<std::vector<Dims>> calls;
    for (const int64_t width : {1, 3, 130, 1000}) calls.push_back({{7, width}, {7, width}, {7, width}});
    right(target, kFolds, calls);
    right(target, "graph @g(%a: f32[R,W]) -> (%y) { %y = Softmax %a {axis = -1} }", {{{6, 130}}, {{6, 31}}}, 1e-5);
    if (this->target.has_feature(kFp64)) right(target, kWideFolds, {{{3, 77}, {3, 77}, {3, 77}}});
  }
  void products_of_few_rows_are_right(const TargetDescription& target) {
    std::vector<std::vector<Dims>> by_rows, by_columns;
    for (const int64_t k : {1, 15, 197, 770})
      for (const int64_t n : {1, 24, 67}) by_rows.push_back({{3, k}, {k, n}}), by_columns.push_back({{3, k}, {n, k}});
    right(target, "graph @g(%a: f32[3,K], %b: f32[K,N]) -> %y { %y = MatMul %a, %b }", by_rows);
    right(target, "graph @g(%a: f32[3,K], %b: f32[N,K]) -> %y { %y = Gemm %a, %b {transB = 1} }", by_columns);
  }

  uint32_t seed_ = tenon::testing::first_seed();
  std::mt19937 random_{seed_};
};

// Sub-group sizes that divide the group and that do not, of one item, and larger than the group.
struct Emulation {
  int64_t group;
  int size;
  bool shuffle;
};
constexpr Emulation kEmulations[] = {{64, 32, false}, {64, 24, true}, {64, 100, true},
                                     {64, 8, true},   {6, 1, true},   {6, 4, false}};

TEST_F(OpenclSubGroups, EmulatedOnesAreRight) {
  for (const auto& [group, size, shuffle] : kEmulations) {
    SCOPED_TRACE(str("sub-groups of ", size, " in groups of ", group, shuffle ? ", shuffles" : ""));
    const EmulatedSubGroups emulated(size);
    folds_are_right(with_features(group, shuffle));
    const int folds = emulated.programs();
    EXPECT_GT(folds, 0);
    products_of_few_rows_are_right(with_features(group, shuffle));
    EXPECT_GT(emulated.programs(), folds);
  }
}

TEST_F(OpenclSubGroups, OfTheDeviceAreRight) {
  if (!target.has_feature(kSubGroups)) GTEST_SKIP() << "device '" << device->info().name << "' has no sub-groups";
  folds_are_right(groups(64));
  products_of_few_rows_are_right(groups(64));
  products_of_few_rows_are_right(groups(6));
  for (const int64_t size : {1, 4, 32}) {
    if (!(device->info().sub_group_sizes & size)) continue;
    SCOPED_TRACE(str("sub-groups of ", size));
    TargetDescription of_size = groups(64);
    of_size.options.add("sub_group_size", Setting::word(str(size)));
    folds_are_right(of_size);
    products_of_few_rows_are_right(of_size);
  }
}

TEST_F(OpenclSubGroups, CanBeTurnedOff) {
  const EmulatedSubGroups emulated(8);
  TargetDescription without = with_features(64, true);
  without.options.add("sub_groups", Setting::word("false"));
  folds_are_right(without);
  products_of_few_rows_are_right(without);
  EXPECT_EQ(emulated.programs(), 0);
}

TEST_F(OpenclSubGroups, ASizeThatTheDeviceDoesNotHaveIsRefused) {
  TargetDescription odd = groups(64);
  odd.options.add("sub_group_size", Setting::word("3"));
  const auto refused = create_backend(odd);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().to_string(), HasSubstr("sub_group_size is 3; device '"));
}

TEST(OpenclSubGroupLanguage, IsThatOfTheDevice) {
  DeviceInfo info{};
  const auto language = [&](const char* version, const char* extensions, bool feature, uint32_t most) {
    std::strcpy(info.version, version);
    std::strcpy(info.extensions, extensions);
    info.subgroups_feature = feature, info.most_sub_groups = most;
    return info.sub_group_language();
  };
  EXPECT_EQ(language("OpenCL 3.0 PoCL", "cl_khr_fp64", true, 128), "CL3.0");
  EXPECT_EQ(language("OpenCL 3.0 PoCL", "cl_khr_subgroups", false, 128), "CL3.0");
  EXPECT_EQ(language("OpenCL 3.0 PoCL", "cl_khr_fp64", false, 128), "");
  EXPECT_EQ(language("OpenCL 3.0 PoCL", "cl_khr_subgroups", true, 0), "");
  EXPECT_EQ(language("OpenCL 2.1 ", "cl_khr_subgroups", false, 64), "CL2.0");
  EXPECT_EQ(language("OpenCL 2.1 ", "cl_khr_fp64", false, 64), "");
  EXPECT_EQ(language("OpenCL 1.2 ", "cl_khr_subgroups", false, 64), "");
  EXPECT_EQ(language("", "cl_khr_subgroups", true, 64), "");
}

}  // namespace
}  // namespace tenon::opencl::testing
