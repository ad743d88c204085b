// The targets of the plugin, without its library: what they accept, compile and refuse, and the state after a failure.
#include "opencl/backend.hpp"

#include <gmock/gmock.h>

#include <thread>

#include <support_lib/random_tensor.hpp>
#include <tenon/tensor/compare.hpp>

#include "graph_support.hpp"

namespace tenon::opencl::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kChain = R"(graph @g(%x: f32[3,37], %b: f32[37]) -> %y {
  %s = Add %x, %b "sum"
  %r = Relu %s "positive"
  %y = Softmax %r "weights" {axis = -1}
})";

class OpenclBackend : public OpenclTest {
 protected:
  void SetUp() override {
    OpenclTest::SetUp();
    if (IsSkipped()) return;
    auto made = create_backend(cpu_target());
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    backend = *std::move(made);
  }
  std::unique_ptr<Executable> built(std::string_view text) {
    auto made = compiled(*backend, *parse_graph(text));
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    return *std::move(made);
  }
  static std::vector<Datum> inputs_of(std::initializer_list<Dims> shapes, ElementType element = kF32) {
    std::mt19937 random(7);
    std::vector<Datum> inputs;
    for (const Dims& dims : shapes) inputs.emplace_back(tenon::testing::random_tensor(random, element, dims));
    return inputs;
  }
  void expect_like_reference(std::string_view text, const std::vector<Datum>& inputs, double rtol = 0) {
    auto executable = built(text);
    expect_like_reference(*executable, text, inputs, rtol);
  }
  void expect_like_reference(const Executable& executable, std::string_view text, const std::vector<Datum>& inputs,
                             double rtol = 0) {
    const auto got = run_on(*stream, executable, inputs);
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    const std::vector<Tensor> expected = on_reference(**parse_graph(text), inputs);
    ASSERT_EQ(got->size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const Comparison comparison = compare((*got)[i], expected[i], {.rtol = rtol, .atol = rtol / 100});
      EXPECT_TRUE(comparison.equal) << "output " << i << ": " << comparison.difference;
    }
  }
  std::unique_ptr<TargetBackend> backend;
};

TEST_F(OpenclBackend, OneKernelForWhatIsMemoryBound) {
  auto executable = built(kChain);
  const std::vector<KernelInfo> kernels = executable->kernels();
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_THAT(kernels[0].operators, ElementsAre("Add sum", "Relu positive", "Softmax weights"));
  const auto listing = executable->listing();
  ASSERT_TRUE(listing.ok());
  for (const char* text : {"Add sum", "Relu positive", "Softmax weights", "exp(", "__kernel"})
    EXPECT_THAT(*listing, HasSubstr(text));
  expect_like_reference(*executable, kChain, inputs_of({{3, 37}, {37}}), 1e-6);
  std::vector<OpProfile> profile;
  ASSERT_TRUE(run_on(*stream, *executable, inputs_of({{3, 37}, {37}}), {.profile = &profile}).ok());
  ASSERT_EQ(profile.size(), 1u) << "one launch";
}

TEST_F(OpenclBackend, MovementIsCopiesOnTheDevice) {
  constexpr std::string_view kText = R"(graph @g(%x: f32[4,6,5], %y: f32[1,6,5]) -> (%t, %c, %e, %a, %b, %x) {
    %t = Transpose %x {perm = [2, 0, 1]}
    %c = Concat %x, %y {axis = 0}
    %shape = Constant {value = dense<i64[3]: 3, 6, 5>} : i64[3]
    %e = Expand %y, %shape
    %a, %b = Split %x {axis = 1, num_outputs = 2}
  })";
  expect_like_reference(kText, inputs_of({{4, 6, 5}, {1, 6, 5}}));
}

TEST_F(OpenclBackend, ElementsOfAllWidthsAreMoved) {
  for (const ElementType element : {kI8, kF16, kF64}) {
    const std::string text = str("graph @g(%x: ", element, "[7,9]) -> %t {\n %t = Transpose %x {perm = [1, 0]}\n}");
    expect_like_reference(text, inputs_of({{7, 9}}, element));
  }
}

TEST_F(OpenclBackend, ManyExtentsOneProgram) {
  constexpr std::string_view kText = R"(graph @g(%x: f32[N,M]) -> %y {
    %e = Neg %x
    %t = Transpose %e {perm = [1, 0]}
    %y = Abs %t
  })";
  auto executable = built(kText);
  for (const Dims& dims : {Dims{1, 1}, Dims{5, 33}, Dims{0, 3}, Dims{64, 200}, Dims{5, 33}})
    expect_like_reference(*executable, kText, inputs_of({dims}));
  EXPECT_GT(executable->arena_bytes(), 0u);
}

// Extents that depend on the values of an input are planned during the run.
TEST_F(OpenclBackend, TheArenaOfWhatARunDecidesIsToldAfterIt) {
  constexpr std::string_view kText = R"(graph @g(%x: f32[6,4], %shape: i64[2]) -> %y {
    %a = Reshape %x, %shape
    %t = Transpose %a {perm = [1, 0]}
    %m = MatMul %a, %t
    %y = Softmax %m {axis = 0}
  })";
  auto executable = built(kText);
  EXPECT_EQ(executable->arena_bytes(), 0u);
  const std::vector<Datum> inputs{inputs_of({{6, 4}})[0], Tensor::of<int64_t>({2}, {3, 8})};
  expect_like_reference(*executable, kText, inputs, 1e-5);
  EXPECT_GE(executable->arena_bytes(), executable->arena_lower_bound_bytes());
  EXPECT_GT(executable->arena_lower_bound_bytes(), 0u);
}

TEST_F(OpenclBackend, ThreadsRunAtOnce) {
  auto executable = built(kChain);
  const auto inputs = inputs_of({{3, 37}, {37}});
  const auto expected = run_on(*stream, *executable, inputs);
  ASSERT_TRUE(expected.ok());
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      auto own = *device->open_stream();
      for (int i = 0; i < 20; ++i) {
        const auto got = run_on(*own, *executable, inputs);
        wrong += !got.ok() || !compare((*got)[0], (*expected)[0], {.rtol = 0, .atol = 0}).equal;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(OpenclBackend, StoresAndLoadsItself) {
  auto bytes = built(kChain)->serialize();
  ASSERT_TRUE(bytes.ok());
  auto owner = std::make_shared<std::string>(*std::move(bytes));
  auto loaded = backend->load(std::as_bytes(std::span(*owner)), owner);
  ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
  expect_like_reference(**loaded, kChain, inputs_of({{3, 37}, {37}}), 1e-6);
}

TEST_F(OpenclBackend, RefusesWithAReason) {
  const auto refusal = [&](std::string_view text) {
    auto graph = *parse_graph(text);
    const auto reason = backend->refuses(*graph->body().begin());
    return reason ? reason->reason : "none";
  };
  EXPECT_EQ(refusal("graph @g(%x: f32[2,3]) -> %y { %y = Exp %x }"), "none");
  EXPECT_EQ(refusal("graph @g(%x: i8[2,3]) -> %y { %y = Transpose %x }"), "none");
  EXPECT_EQ(refusal("graph @g(%x: f32[2,3], %w: f32[3,4]) -> %y { %y = MatMul %x, %w }"), "none");
  EXPECT_THAT(refusal("graph @g(%x: f32[3,3]) -> %y { %y = NonZero %x \"volume\" }"),
              HasSubstr("NonZero has no form in the dialect of snippets"));
}

TEST_F(OpenclBackend, ADeviceWithoutDoublesRefusesThem) {
  TargetDescription plain = target;
  plain.features.clear();
  const Compiler compiler(plain, *table, {});
  EXPECT_FALSE(compiler.can_access(kF64));
  const ElementType f32[] = {kF32}, f64[] = {kF64};
  EXPECT_TRUE(compiler.can_emit({Name("Exp"), f32, f32, {}}));
  EXPECT_FALSE(compiler.can_emit({Name("Exp"), f64, f64, {}}));
  EXPECT_FALSE(compiler.can_emit({Name("Convert"), f32, f64, {}}));
}

TEST_F(OpenclBackend, BadOptionsAreErrors) {
  const auto fails_with = [&](const char* key, const char* value) {
    TargetDescription odd = cpu_target();
    if (odd.options.find(key)) odd.options = Setting::map();
    odd.options.add(key, Setting::word(value));
    auto made = create_backend(odd);
    return made.ok() ? std::string() : made.error().to_string();
  };
  EXPECT_THAT(fails_with("fues", "false"), HasSubstr("fues"));
  EXPECT_THAT(fails_with("lanes", "5"), HasSubstr("power of two"));
  EXPECT_THAT(fails_with("work_group", "0"), HasSubstr("work_group"));
  EXPECT_THAT(fails_with("device_type", "tpu"), HasSubstr("cpu, gpu or any"));
  EXPECT_THAT(fails_with("platform", "Nobody"), HasSubstr("there is opencl:0"));
}

TEST_F(OpenclBackend, TellsTheKernelsThatItLaunches) {
  constexpr std::string_view kText = R"(graph @g(%x: f32[8,16], %w: f32[16,4], %b: f32[4]) -> (%y, %p) {
    %e = Neg %x "in"
    %m = MatMul %e, %w "mix"
    %s = Add %m, %b "bias"
    %y = Relu %s "out"
    %p = CumSum %y, %axis "sums"
  })";
  std::string text(kText);
  text.insert(text.find("%e ="), "%axis = Constant {value = dense<i64[]: 1>} : i64[]\n    ");
  auto executable = built(text);
  const std::vector<KernelInfo> kernels = executable->kernels();
  std::vector<OpProfile> profile;
  ASSERT_TRUE(run_on(*stream, *executable, inputs_of({{8, 16}, {16, 4}, {4}}), {.profile = &profile}).ok());
  ASSERT_EQ(kernels.size(), profile.size()) << "one for each launch";
  for (size_t i = 0; i < kernels.size(); ++i) EXPECT_EQ(kernels[i].label, profile[i].label);
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_THAT(kernels[1].operators, ElementsAre("MatMul mix", "Add bias", "Relu out"));
  const double x = 8 * 16 * 4, w = 16 * 4 * 4, b = 4 * 4, y = 8 * 4 * 4;
  EXPECT_EQ(kernels[1].bytes_fused, x + w + b + y);
  EXPECT_EQ(kernels[1].bytes_unfused, (x + w + y) + (y + b + y) + (y + y));
  EXPECT_EQ(kernels[1].parameters, 3u);
  EXPECT_THAT(kernels[2].operators, ElementsAre("CumSum sums"));
  EXPECT_EQ(kernels[2].bytes_fused, 2 * y + 8);
}

}  // namespace
}  // namespace tenon::opencl::testing
