// What runs of a compiled model take from the heap, and where values between its segments lie.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <thread>

#include <support_lib/assembled.hpp>
#include <support_lib/fake_backend.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/irgen/kernel_source.hpp>
#include <tenon/plugin/host_executable.hpp>

#include "support/count_allocations.hpp"

namespace tenon {
namespace {

// Evaluators of the reference take memory of their own: these kernels take none.
template <float (*kFunction)(float)>
Result<void> map_all(program::CallContext& call) {
  int64_t count = 1;
  for (const program::DimView& dim : call.operands[0].dims) count *= dim.extent;
  const auto* x = reinterpret_cast<const float*>(call.operands[0].base);
  auto* y = reinterpret_cast<float*>(call.operands[1].base);
  for (int64_t i = 0; i < count; ++i) y[i] = kFunction(x[i]);
  return {};
}
float negated(float x) { return -x; }
float absolute(float x) { return std::abs(x); }

class OwnKernels final : public irgen::KernelSource {
 public:
  std::string_view name() const override { return "own"; }
  Result<irgen::KernelChoice> kernel(const irgen::KernelRequest& request) const override {
    if (request.op.is("Neg")) return irgen::KernelChoice{.kernel = program::make_kernel("neg", map_all<negated>)};
    if (request.op.is("Abs")) return irgen::KernelChoice{.kernel = program::make_kernel("abs", map_all<absolute>)};
    return error(Code::unsupported, "only Neg and Abs");
  }
};

// A target of the host whose executables run at once.
class HostBackend final : public testing::FakeBackend {
 public:
  using FakeBackend::FakeBackend;
  Result<std::unique_ptr<Executable>> build(std::unique_ptr<Graph> graph) override {
    return make_host_executable(std::move(graph),
                                {.target = "host", .kernels = std::make_shared<OwnKernels>(), .runner = {}});
  }
};

// Segments of two targets in turn: y = |-|-x||, and the value in the middle.
std::unique_ptr<CompiledModel> alternating(const std::string& extent, const std::string& outputs = "%y, %b") {
  auto graph = parse_graph("graph @turns(%x: f32[" + extent + ",64]) -> (" + outputs + R"() {
    %a = Neg %x
    %b = Abs %a
    %c = Neg %b
    %d = Abs %c
    %e = Neg %d
    %y = Abs %e
  })");
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  HostBackend first("first", {"Neg"}), second("second", {"Abs"});
  auto model = testing::assembled(**graph, {&first, &second});
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  EXPECT_EQ((*model)->segments().size(), 6u);
  return *std::move(model);
}

Tensor filled(int64_t rows, float first) {
  Tensor tensor = *Tensor::allocate(kF32, {rows, 64});
  std::iota(tensor.mutable_as<float>().begin(), tensor.mutable_as<float>().end(), first);
  return tensor;
}

void expect_absolute(const Datum& output, const Datum& input) {
  ASSERT_TRUE(output.is_tensor());
  ASSERT_EQ(output.tensor().dims(), input.tensor().dims());
  const auto x = input.tensor().as<float>(), y = output.tensor().as<float>();
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], std::abs(x[i])) << i;
}

// Inputs, and places for both outputs.
struct Caller {
  explicit Caller(int64_t rows, float first = -100)
      : inputs{Datum(filled(rows, first))}, outputs{Datum(filled(rows, 0)), Datum(filled(rows, 0))} {}
  void operator()(const CompiledModel& model) {
    const auto ran = model.run_into(inputs, outputs, {.parallel = &serial()});
    ASSERT_TRUE(ran.ok()) << ran.error().to_string();
  }
  int64_t taken(const CompiledModel& model) {
    const int64_t before = test::allocations;
    (*this)(model);
    return test::allocations - before;
  }
  void check() const {
    for (const Datum& output : outputs) expect_absolute(output, inputs[0]);
  }
  std::vector<Datum> inputs, outputs;
};

TEST(ModelMemory, RunsAfterTheFirstTakeNothing) {
  const auto model = alternating("8");
  Caller run(8);
  run(*model);
  EXPECT_EQ(run.taken(*model), 0);
  run.check();
}

TEST(ModelMemory, RunsOfExtentsAsBeforeTakeNothing) {
  const auto model = alternating("N");
  Caller few(8), many(33, -2000);
  for (int i = 0; i < 2; ++i) few(*model), many(*model);
  EXPECT_EQ(few.taken(*model), 0);
  EXPECT_EQ(many.taken(*model), 0);
  EXPECT_EQ(few.taken(*model), 0);
  few.check();
  many.check();
}

TEST(ModelMemory, ValuesBetweenSegmentsShareAnArena) {
  constexpr size_t kValue = 8 * 64 * 4;
  // %b is an output, and lies where the caller wants it: %a, and later two of %c, %d, %e at a time.
  const auto fixed = alternating("8");
  EXPECT_EQ(fixed->arena_bytes(), 2 * kValue);
  EXPECT_EQ(fixed->arena_lower_bound_bytes(), 2 * kValue);
  const auto open = alternating("N");
  EXPECT_EQ(open->arena_bytes(), 0u) << "before a run nothing is known";
  Caller run(8);
  run(*open);
  EXPECT_EQ(open->arena_bytes(), 2 * kValue);
}

TEST(ModelMemory, OutputsOfEarlierRunsStayAsTheyAre) {
  const auto model = alternating("N");
  std::vector<std::vector<Datum>> inputs, outputs;
  for (const int64_t rows : {4, 4, 9, 4}) {
    inputs.push_back({Datum(filled(rows, static_cast<float>(-7 * rows)))});
    auto made = model->run(inputs.back());
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    outputs.push_back(*std::move(made));
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    for (const Datum& output : outputs[i]) expect_absolute(output, inputs[i][0]);
}

TEST(ModelMemory, RunsAtTheSameTimeHavePlacesOfTheirOwn) {
  for (const char* extent : {"8", "N"}) {
    const auto model = alternating(extent);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&model, t] {
        Caller run(8, static_cast<float>(-100 * t));
        for (int i = 0; i < 50; ++i) {
          run(*model);
          run.check();
        }
      });
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(ModelMemory, OutputsThatAreInputsOrOthersOwnTheirBytes) {
  const auto model = alternating("8", "%y, %x, %y, %b");
  const std::vector<Datum> inputs{Datum(filled(8, -100))};
  const auto outputs = model->run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  EXPECT_TRUE((*outputs)[1].tensor().identical(inputs[0].tensor()));
  EXPECT_NE((*outputs)[1].tensor().data(), inputs[0].tensor().data());
  EXPECT_NE((*outputs)[0].tensor().data(), (*outputs)[2].tensor().data());
  for (const size_t i : {0u, 2u, 3u}) expect_absolute((*outputs)[i], inputs[0]);
}

TEST(ModelMemory, ARunThatFailsLeavesNothingBehind) {
  const auto model = alternating("8");
  Caller run(8);
  run(*model);
  const std::vector<Datum> wrong{Datum(filled(9, 0))};
  EXPECT_FALSE(model->run(wrong).ok());
  run(*model);
  run.check();
}

TEST(ModelMemory, LargeOutputsThatNobodyHoldsServeTheNextRun) {
  const auto model = alternating("8192", "%y");
  const auto run = [&](float first) {
    const Datum input(filled(8192, first));
    auto outputs = model->run({&input, 1});
    EXPECT_TRUE(outputs.ok()) << outputs.error().to_string();
    expect_absolute((*outputs)[0], input);
    return std::move((*outputs)[0]);
  };
  const auto place = [](const Datum& output) { return output.tensor().data(); };
  Datum held = run(-5);
  const auto first = place(held);
  const Datum copy = held;
  held = run(-7);
  EXPECT_NE(place(held), first) << "somebody has a copy";
  expect_absolute(copy, Datum(filled(8192, -5)));
  const auto second = place(held);
  held = Datum();
  held = run(-9);
  EXPECT_EQ(place(held), second);
}

TEST(ModelMemory, SmallOutputsStayWithTheirCallers) {
  const auto model = alternating("4", "%y");
  const Datum input(filled(4, -5));
  std::weak_ptr<void> owner = (*model->run({&input, 1}))[0].tensor().owner();
  EXPECT_TRUE(owner.expired());
}

}  // namespace
}  // namespace tenon
