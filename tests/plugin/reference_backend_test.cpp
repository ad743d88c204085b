#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/model/compiled_model.hpp>
#include <tenon/plugin/reference_backend.hpp>
#include <tenon/reference/evaluator.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Graph> graph(std::string_view text) {
  auto parsed = parse_graph(text);
  EXPECT_TRUE(parsed.ok()) << parsed.error().to_string();
  return *std::move(parsed);
}

std::unique_ptr<TargetBackend> reference() { return *create_reference_backend(); }

constexpr std::string_view kChain = R"(graph @chain(%x: f32[N,3], %b: f32[3]) -> (sum: %s, %n) {
  %s = Add %x, %b
  %d = Mul %s, %x
  %n = Neg %d
})";

Result<std::vector<RunValue>> run(const Executable& executable, std::vector<Datum> inputs, bool background = false,
                                  const RunOptions& options = {}) {
  TENON_TRY(stream, executable.device().create_stream(background));
  std::vector<RunValue> values, outputs(executable.outputs().size());
  for (Datum& input : inputs) values.push_back({std::move(input), {}});
  TENON_TRY(done, executable.enqueue(*stream, values, outputs, options));
  TENON_OK(done->wait());
  return outputs;
}

TEST(ReferenceBackend, RunsAGraphOnBothKindsOfStream) {
  auto executable = reference()->build(graph(kChain));
  ASSERT_TRUE(executable.ok()) << executable.error().to_string();
  EXPECT_EQ((*executable)->inputs()[0].name, "x");
  EXPECT_EQ((*executable)->outputs()[0].name, "sum");
  EXPECT_EQ((*executable)->outputs()[1].name, "n");
  for (const bool background : {false, true}) {
    auto made =
        run(**executable, {Tensor::of<float>({1, 3}, {1, 2, 3}), Tensor::of<float>({3}, {10, 20, 30})}, background);
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    EXPECT_TRUE((*made)[0].host.tensor().identical(Tensor::of<float>({1, 3}, {11, 22, 33})));
    EXPECT_TRUE((*made)[1].host.tensor().identical(Tensor::of<float>({1, 3}, {-11, -44, -99})));
  }
}

TEST(ReferenceBackend, TakesTensorsInHostBuffers) {
  auto executable = *reference()->build(graph(kChain));
  const Tensor x = Tensor::of<float>({1, 3}, {1, 2, 3});
  auto stream = *host_device()->create_stream(false);
  auto buffer = *host_device()->allocate("host", 32);
  ASSERT_TRUE(stream->copy_to_device(*buffer, 16, {x.data(), x.bytes()}).ok());
  std::vector<RunValue> inputs = {{{}, {x.element(), x.dims(), buffer, 16}}, {Tensor::of<float>({3}, {1, 1, 1}), {}}},
                        outputs(2);
  auto done = executable->enqueue(*stream, inputs, outputs, {});
  ASSERT_TRUE(done.ok()) << done.error().to_string();
  EXPECT_TRUE(outputs[0].host.tensor().identical(Tensor::of<float>({1, 3}, {2, 3, 4})));
  // A tensor that leaves its buffer.
  inputs[0].device.offset = 24;
  EXPECT_FALSE(executable->enqueue(*stream, inputs, outputs, {}).ok());
  inputs[0].device.offset = 64;
  EXPECT_FALSE(executable->enqueue(*stream, inputs, outputs, {}).ok());
}

TEST(ReferenceBackend, WrongCountsAndTypesAreErrors) {
  auto executable = *reference()->build(graph(kChain));
  auto few = run(*executable, {Tensor::of<float>({1, 3}, {1, 2, 3})});
  ASSERT_FALSE(few.ok());
  EXPECT_THAT(few.error().message(), HasSubstr("2 inputs"));
  auto wrong = run(*executable, {Tensor::of<float>({1, 4}, {1, 2, 3, 4}), Tensor::of<float>({3}, {1, 1, 1})});
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().message(), HasSubstr("f32[1,4]"));
}

TEST(ReferenceBackend, StoresAndLoads) {
  auto executable = *reference()->build(graph(kChain));
  auto stored = executable->serialize();
  ASSERT_TRUE(stored.ok());
  auto owner = std::make_shared<AlignedBytes>(*allocate_aligned(stored->size()));
  std::copy_n(reinterpret_cast<const std::byte*>(stored->data()), stored->size(), owner->get());
  auto loaded = reference()->load({owner->get(), stored->size()}, owner);
  ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
  EXPECT_EQ((*loaded)->inputs(), executable->inputs());
  EXPECT_EQ((*loaded)->outputs(), executable->outputs());
  auto made = run(**loaded, {Tensor::of<float>({1, 3}, {1, 2, 3}), Tensor::of<float>({3}, {0, 0, 0})});
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE((*made)[1].host.tensor().identical(Tensor::of<float>({1, 3}, {-1, -4, -9})));
  EXPECT_FALSE(reference()->load({owner->get(), stored->size() / 2}, owner).ok());
  EXPECT_FALSE(reference()->load({owner->get(), 0}, owner).ok());
}

TEST(ReferenceBackend, RefusesWhatNobodyEvaluatesAlsoInsideRegions) {
  Graph g("g");
  Value* x = g.body().add_input("x", Type(kF32, Shape(Dims{2})));
  Value* operands[] = {x};
  Op& stranger = g.body().create("test.Unheard", operands, {x->type()});
  auto refusal = reference()->refuses(stranger);
  ASSERT_TRUE(refusal);
  EXPECT_THAT(refusal->reason, HasSubstr("test.Unheard"));

  Op& known = g.body().create("Neg", operands, {x->type()});
  EXPECT_FALSE(reference()->refuses(known));
  known.add_region().create("test.Unheard", operands, {x->type()});
  refusal = reference()->refuses(known);
  ASSERT_TRUE(refusal);
  EXPECT_THAT(refusal->reason, HasSubstr("test.Unheard"));
  EXPECT_FALSE(reference()->build(g.clone()).ok());
}

TEST(ReferenceBackend, LimitsOfADescriptionAreRefusals) {
  TargetDescription description;
  description.name = "narrow";
  description.plugin = "reference";
  OperatorLimits no_neg, small_add;
  no_neg.name = "Neg";
  no_neg.supported = false;
  small_add.name = "Add";
  small_add.types = {"i32"};
  description.operators = {no_neg, small_add};
  auto backend = create_reference_backend(description);
  const auto g = graph(kChain);
  std::map<std::string, bool> refused;
  for (const Op& op : g->body()) {
    const auto refusal = backend->refuses(op);
    refused[op.name().str()] = refusal.has_value();
    if (!refusal) continue;
    EXPECT_THAT(refusal->reason, HasSubstr("narrow"));
  }
  EXPECT_EQ(refused, (std::map<std::string, bool>{{"Add", true}, {"Mul", false}, {"Neg", true}}));
}

TEST(ReferenceBackend, ProfilesEachOperatorInOrder) {
  auto executable = *reference()->build(graph(kChain));
  std::vector<OpProfile> profile;
  RunOptions options;
  options.profile = &profile;
  ASSERT_TRUE(
      run(*executable, {Tensor::of<float>({1, 3}, {1, 2, 3}), Tensor::of<float>({3}, {1, 1, 1})}, false, options).ok());
  std::vector<std::string> ops;
  for (const OpProfile& entry : profile) {
    ops.push_back(entry.op);
    EXPECT_GE(entry.microseconds, 0);
  }
  EXPECT_EQ(ops, (std::vector<std::string>{"Add", "Mul", "Neg"}));
}

TEST(ReferenceBackend, EightThreadsRunOneExecutable) {
  auto executable = *reference()->build(graph(kChain));
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const auto v = static_cast<float>(t);
      for (int i = 0; i < 100; ++i) {
        auto made =
            run(*executable, {Tensor::of<float>({1, 3}, {v, v, v}), Tensor::of<float>({3}, {1, 2, 3})}, i % 8 == 0);
        const auto want = Tensor::of<float>({1, 3}, {-v * (v + 1), -v * (v + 2), -v * (v + 3)});
        if (!made.ok() || (*made)[1].host.tensor().as<float>()[2] != want.as<float>()[2]) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tenon
