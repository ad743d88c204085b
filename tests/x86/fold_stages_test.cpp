// Calls with few results, whose reductions are divided among threads. Results are within the bounds of their bodies
// (SnippetOptions::self_check), and have the same bits for any number of threads.
#include <gtest/gtest.h>
#include <support_lib/shredding_parallel.hpp>

#include "x86/guarded_graph.hpp"
#include "x86/run_snippet.hpp"

namespace tenon::x86 {
namespace {

using tenon::testing::ShreddingParallel;

constexpr unsigned kSeed = 20261128;

// Operators on %x, f32[`dims`], and on further `inputs`.
struct Case {
  std::string_view name, dims, body, results = "%y", inputs = "";
};
constexpr Case kCases[] = {
    {"sum", "200007", "%y = ReduceSum %x, %first"},
    {"sum of columns", "40001,7", "%y = ReduceSum %x, %first"},
    {"sum of more columns", "5001,33", "%y = ReduceSum %x, %first"},
    {"greatest, in the middle", "1,50000,5", "%y = ReduceMax %x, %second"},
    {"three", "80000,3", "%s = ReduceSum %x, %first\n%p = ReduceMax %x, %first\n%q = ReduceMin %x, %first",
     "(%s, %p, %q)"},
    {"softmax", "1,120001", "%y = Softmax %x {axis = -1}"},
    {"softmax of columns", "20003,9", "%y = Softmax %x {axis = 0}"},
    {"logarithm of softmax", "120001", "%y = LogSoftmax %x {axis = -1}"},
    {"layer norm", "1,100003", "%y = LayerNormalization %x, %s, %b {axis = -1, epsilon = 1e-5}", "%y",
     ", %s: f32[100003], %b: f32[100003]"},
    {"layer norm with its moments", "100003", "%y, %m, %d = LayerNormalization %x, %s, %b {axis = 0, epsilon = 1e-5}",
     "(%y, %m, %d)", ", %s: f32[100003], %b: f32[100003]"},
    {"instance norm", "1,1,800,301", "%y = InstanceNormalization %x, %s, %b {epsilon = 1e-5}", "%y",
     ", %s: f32[1], %b: f32[1]"},
    {"less its mean, rounded", "400001",
     "%h = Cast %x {to = type<f16[*]>}\n%m = ReduceMean %h, %first\n%y = Sub %h, %m"},
    {"quantised", "300007", "%y, %q, %z = DynamicQuantizeLinear %x", "(%y, %q, %z)"},
};

class SharedFolds : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
    compiler_ = std::make_shared<Compiler>(testing::target_of(GetParam()), **jitter_table());
  }

  std::vector<Datum> run(const Case& one, const std::vector<Datum>& inputs, ParallelFor& threads) const {
    auto results = testing::run_snippet(str("graph @g(%x: f32[", one.dims, "]", one.inputs, ") -> ", one.results,
                                            " {\n%first = Constant {value = dense<i64[1]: 0>}\n",
                                            "%second = Constant {value = dense<i64[1]: 1>}\n", one.body, "\n}"),
                                        compiler_, inputs, {.self_check = true}, threads);
    EXPECT_TRUE(results.ok()) << results.error().to_string();
    return results.ok() ? *std::move(results) : std::vector<Datum>();
  }

  std::shared_ptr<Compiler> compiler_;
};

std::vector<Datum> inputs_of(const Case& one, std::mt19937& random) {
  auto graph = parse_graph(str("graph @g(%x: f32[", one.dims, "]", one.inputs, ") -> %x {\n}"));
  TENON_CHECK(graph.ok(), graph.ok() ? "" : graph.error().to_string());
  std::vector<Datum> inputs;
  for (size_t i = 0; i < (*graph)->body().input_count(); ++i)
    inputs.emplace_back(
        tenon::testing::random_tensor(random, kF32, *(*graph)->body().input(i)->type().shape().static_dims(), -1, 3));
  return inputs;
}

TEST_P(SharedFolds, KeepToTheBoundsOfTheirBodies) {
  std::mt19937 random(kSeed);
  for (const Case& one : kCases) {
    SCOPED_TRACE(str(one.name, ", seed ", kSeed));
    const std::vector<Datum> inputs = inputs_of(one, random);
    ShreddingParallel two(1, 2), many(3, 9);
    const std::vector<Datum> a = run(one, inputs, two), b = run(one, inputs, many);
    EXPECT_GT(two.loops, 0) << "one thread ran it";
    ASSERT_FALSE(HasFailure());
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].tensor().bytes(), b[i].tensor().bytes());
      EXPECT_EQ(std::memcmp(a[i].tensor().data(), b[i].tensor().data(), a[i].tensor().bytes()), 0) << "result " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, SharedFolds, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86
