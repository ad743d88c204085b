// The targets of the plugin, without its library: what they accept, compile and refuse.
#include "x86/backend.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/ir/text.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/runtime/host_run.hpp>
#include <tenon/runtime/thread_pool.hpp>
#include <tenon/tensor/compare.hpp>

#include "x86/isa.hpp"
#include "x86/kernel_support.hpp"

namespace tenon::x86 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

constexpr std::string_view kText = R"(graph @g(%x: f32[3,37], %b: f32[37]) -> %y {
  %s = Add %x, %b "sum"
  %r = Relu %s "positive"
  %y = Softmax %r "weights" {axis = -1}
})";

TargetDescription machine() { return testing::target_of(Isa::avx2); }

class X86Backend : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!machine_has(Isa::avx2)) GTEST_SKIP() << "this machine has no AVX2";
  }
  static std::unique_ptr<TargetBackend> backend(TargetDescription target = machine()) {
    auto made = create_backend(std::move(target));
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    return *std::move(made);
  }
  static std::unique_ptr<Executable> built(TargetBackend& backend) {
    auto graph = *parse_graph(kText);
    PassManager passes;
    EXPECT_TRUE(backend.add_tensor_sel(passes).ok());
    EXPECT_TRUE(passes.run(*graph).ok());
    auto made = backend.build(std::move(graph));
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    return *std::move(made);
  }
};

TEST_F(X86Backend, OneKernelForWhatIsMemoryBound) {
  auto target = backend();
  auto executable = built(*target);
  const std::vector<KernelInfo> kernels = executable->kernels();
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_THAT(kernels[0].operators, ElementsAre("Add sum", "Relu positive", "Softmax weights"));
  EXPECT_EQ(kernels[0].bytes_fused, 4 * (2 * 3 * 37 + 37));
  EXPECT_EQ(kernels[0].bytes_unfused, 4 * (6 * 3 * 37 + 37));
  EXPECT_GT(kernels[0].code_bytes, 0u);
  EXPECT_EQ(kernels[0].predicted_us, 0);  // the description has no memories
  const auto listing = executable->listing();
  ASSERT_TRUE(listing.ok());
  for (const char* name : {"Add sum", "Relu positive", "Softmax weights", "vaddps", "vmaxps"})
    EXPECT_THAT(*listing, HasSubstr(name));
}

// Threads share a long reduction with few results; the stages are listed after the kernel.
TEST_F(X86Backend, ListsTheStagesOfSharedFolds) {
  if (default_pool().threads() < 2) GTEST_SKIP() << "one thread runs the kernel";
  const auto executable_of = [](int64_t length) {
    const auto target = backend();
    auto graph = *parse_graph(str("graph @g(%x: f32[", length, "]) -> %y { %y = Softmax %x \"soft\" {axis = 0} }"));
    PassManager passes;
    EXPECT_TRUE(target->add_tensor_sel(passes).ok());
    EXPECT_TRUE(passes.run(*graph).ok());
    return *target->build(std::move(graph));
  };
  const auto shared = executable_of(1 << 20);
  std::vector<std::string> names;
  const std::vector<KernelInfo> kernels = shared->kernels();
  for (const KernelStage& stage : kernels.at(0).stages) {
    names.push_back(stage.name);
    EXPECT_GT(stage.code_bytes, 0u) << stage.name;
    EXPECT_THAT(*shared->listing(), HasSubstr(stage.name));
  }
  EXPECT_THAT(names, ElementsAre(HasSubstr(".parts1"), HasSubstr(".joins1"), HasSubstr(".rest")));
  const auto small = executable_of(100);
  EXPECT_THAT(small->kernels().at(0).stages, ElementsAre());
  EXPECT_THAT(*small->listing(), Not(HasSubstr(".parts1")));
}

// Kernels without labels are identified in a profile, although they run in a different order from that of the graph.
TEST_F(X86Backend, ProfilesNameKernels) {
  const auto target = backend();
  auto graph = *parse_graph(R"(graph @g(%x: f32[3,37], %b: f32[5], %c: f32[7]) -> (%y, %z, %w) {
  %y = Exp %x
  %z = Neg %b "named"
  %w = Abs %c
})");
  PassManager passes;
  ASSERT_TRUE(target->add_tensor_sel(passes).ok());
  ASSERT_TRUE(passes.run(*graph).ok());
  const auto executable = target->build(std::move(graph));
  ASSERT_TRUE(executable.ok()) << executable.error().to_string();
  std::vector<std::string> kernels, ran;
  for (const KernelInfo& kernel : (*executable)->kernels()) kernels.push_back(kernel.label);
  EXPECT_THAT(kernels, ElementsAre("#0", "named", "#2"));
  std::vector<OpProfile> profile;
  const auto stream = *(*executable)->device().create_stream(false);
  std::vector<RunValue> inputs, outputs(3);
  for (const Dims& dims : {Dims{3, 37}, Dims{5}, Dims{7}})
    inputs.push_back(*to_device(*stream, *Tensor::zeros(kF32, dims)));
  ASSERT_TRUE((*(*executable)->enqueue(*stream, inputs, outputs, {.profile = &profile}))->wait().ok());
  for (const OpProfile& entry : profile) ran.push_back(entry.label);
  EXPECT_THAT(ran, UnorderedElementsAreArray(kernels));
}

TEST_F(X86Backend, PredictsTheLongerOfMovementAndArithmetic) {
  TargetDescription target = machine();
  const auto predicted = [&] { return built(*backend(target))->kernels().at(0).predicted_us; };
  target.clock_hz = 1000000000;
  const double arithmetic = predicted();
  EXPECT_GT(arithmetic, 0);
  target.engines = {{.name = "fma", .macs_per_cycle = 32, .lanes = 16}};
  EXPECT_EQ(predicted(), arithmetic / 2) << "two units";
  target.engines.clear();
  MemorySpace& host = target.memories.emplace_back();
  host.name = "host";
  host.size_bytes = uint64_t{1} << 30;
  host.bandwidth = Bandwidth{1e12, Bandwidth::Per::second};
  EXPECT_EQ(predicted(), arithmetic);
  host.bandwidth = Bandwidth{1e6, Bandwidth::Per::second};
  EXPECT_EQ(predicted(), 4 * (2 * 3 * 37 + 37));
}

// If a value and its copy are known to fill L2, one kernel stores all outputs; otherwise one is stored, then copied.
TEST_F(X86Backend, StoresAgainWhatFillsL2WithItsCopy) {
  TargetDescription description = machine();
  description.memories = {{.name = "l2", .size_bytes = 2 * 4 * 1000}};
  const auto target = backend(description), unknown = backend();
  const auto graph = parse_graph(R"(graph @g(%l: f32[10,N,100], %s: f32[999], %h: f16[10,N,100]) -> (a: %a, again: %a,
      b: %b, flat: %f, c: %c, copy: %c, t: %t) {
  %a = Neg %l
  %b = Abs %l
  %f = Flatten %b
  %c = Neg %s
  %d = Neg %h
  %t = Transpose %l
})");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  std::vector<bool> again;
  for (const Op& op : (*graph)->body()) {
    again.push_back(target->stores_again(op));
    EXPECT_FALSE(unknown->stores_again(op)) << op.describe();
  }
  EXPECT_THAT(again, ElementsAre(true, true, false, false, false, false));

  const std::vector<Datum> inputs{*Tensor::zeros(kF32, {10, 2, 100}), *Tensor::zeros(kF32, {999}),
                                  *Tensor::zeros(kF16, {10, 2, 100})};
  for (const Datum& input : {inputs[0], inputs[1]}) {
    Tensor tensor = input.tensor();
    for (float next = -500; float& x : tensor.mutable_as<float>()) x = next++;
  }
  const auto wanted = (*Interpreter::prepare(**graph))->run(inputs);
  auto fused = (*graph)->clone();
  PassManager passes;
  ASSERT_TRUE(target->add_tensor_sel(passes).ok());
  ASSERT_TRUE(passes.run(*fused).ok());
  const Region& body = fused->body();
  EXPECT_NE(body.output(0), body.output(1));
  EXPECT_EQ(body.output(3)->producer()->operand(0)->producer(), body.output(2)->producer());
  EXPECT_NE(body.output(3)->producer()->operand(0), body.output(2));
  EXPECT_EQ(body.output(4), body.output(5));
  const auto executable = target->build(std::move(fused));
  ASSERT_TRUE(executable.ok()) << executable.error().to_string();
  const auto& run = dynamic_cast<const HostRun&>(**executable);
  std::vector<Datum> outputs(wanted->size());
  std::vector<const Datum*> from;
  std::vector<Datum*> to;
  for (const Datum& input : inputs) from.push_back(&input);
  for (Datum& output : outputs) to.push_back(&output);
  for (int i = 0; i < 2; ++i) {
    const auto done = run.run(from, to, {});
    ASSERT_TRUE(done.ok()) << done.error().to_string();
    for (size_t o = 0; o < outputs.size(); ++o) {
      EXPECT_TRUE(outputs[o].tensor().identical((*wanted)[o].tensor())) << o;
      for (size_t other = 0; other < o; ++other) EXPECT_NE(outputs[o].tensor().data(), outputs[other].tensor().data());
    }
  }
}

TEST_F(X86Backend, UnfusedItIsAKernelForEachOperator) {
  TargetDescription target = machine();
  target.options.add("fuse", Setting::word("false"));
  EXPECT_EQ(built(*backend(target))->kernels().size(), 3u);
}

std::string create_error(const TargetDescription& target) {
  const auto made = create_backend(target);
  return made.ok() ? "" : made.error().message();
}

TEST_F(X86Backend, TakesNoMoreRegistersThanTheDescriptionStates) {
  TargetDescription target = machine();
  target.registers = {{"vector", 6, 256}, {"general", 9, 64}};
  const auto executable = built(*backend(target));
  const auto listing = executable->listing();
  ASSERT_TRUE(listing.ok());
  for (const char* used : {"ymm5", "[rsp"}) EXPECT_THAT(*listing, HasSubstr(used));  // the remaining values are spilled
  for (const char* other : {"ymm6", "ymm15", "r15", "r9,"}) EXPECT_THAT(*listing, Not(HasSubstr(other)));
}

TEST_F(X86Backend, RefusesRegistersThatTheMachineDoesNotHave) {
  TargetDescription target = machine();
  target.registers = {{"vector", 17, 256}};
  EXPECT_THAT(create_error(target), HasSubstr("registers 'vector'"));
  EXPECT_THAT(create_error(target), HasSubstr("17 are stated, avx2 has 16"));
  target.registers = {{"vector", 16, 512}};
  EXPECT_THAT(create_error(target), HasSubstr("512 bits are stated, those of avx2 have 256"));
  target.registers = {{"general", 3, 64}};
  EXPECT_THAT(create_error(target), HasSubstr("3 are stated, 3 of which kernels keep for themselves"));
  target.registers = {{"general", 16, 64}, {"vector", 16, 256}, {"mask", 0, 64}};
  EXPECT_EQ(create_error(target), "");
}

TEST_F(X86Backend, RefusesWithAReason) {
  auto target = backend();
  const auto refusal = [&](std::string_view text) {
    auto graph = *parse_graph(text);
    const auto reason = target->refuses(*graph->body().begin());
    return reason ? reason->reason : "none";
  };
  EXPECT_EQ(refusal("graph @g(%x: f32[2,3]) -> %y { %y = Exp %x }"), "none");
  EXPECT_EQ(refusal("graph @g(%x: i8[2,3]) -> %y { %y = Transpose %x }"), "none");
  EXPECT_THAT(refusal("graph @g(%x: f32[2,3], %w: f32[3,4]) -> %y { %y = MatMul %x, %w \"product\" }"),
              "MatMul has no form in the dialect of snippets");
  EXPECT_EQ(refusal("graph @g(%x: f64[2,3]) -> %y { %y = Exp %x }"), "none");
  EXPECT_THAT(refusal("graph @g(%x: f64[2,3]) -> %y { %y = Erf %x }"), HasSubstr("no emitter for Erf"));
}

TEST_F(X86Backend, BadDescriptionsAreErrors) {
  TargetDescription plain = machine();
  plain.features = {"sse2"};
  EXPECT_THAT(create_backend(plain).error().message(), HasSubstr("neither avx2 nor avx512f"));
  TargetDescription odd = machine();
  odd.options.add("fues", Setting::word("false"));
  EXPECT_THAT(create_backend(odd).error().to_string(), HasSubstr("fues"));
  TargetDescription wrong = machine();
  wrong.options.add("fuse", Setting::word("maybe"));
  EXPECT_THAT(create_backend(wrong).error().to_string(), HasSubstr("fuse"));
  TargetDescription misspelt = machine();
  misspelt.memories.push_back({.name = "l22"});
  EXPECT_THAT(create_backend(misspelt).error().to_string(), HasSubstr("did you mean 'l2'?"));
  TargetDescription driven = machine();
  driven.driver = "cuda";
  EXPECT_THAT(create_backend(driven).error().to_string(), HasSubstr("plugin x86 has none"));
  TargetDescription permuting = machine();
  permuting.features = {"avx2", "avx512vbmi"};
  EXPECT_THAT(create_error(permuting), HasSubstr("avx512vbmi without avx512f"));
}

// Additional features of a processor are not an error.
TEST_F(X86Backend, DescriptionsMayListOtherFeatures) {
  TargetDescription more = machine();
  more.features.push_back("avx512_vnni");
  EXPECT_TRUE(create_backend(more).ok());
}

}  // namespace
}  // namespace tenon::x86
