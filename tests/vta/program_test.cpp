// Graphs of several operators: activations share DRAM, views need none, and any driver runs the streams.
#include "vta/program.hpp"

#include <algorithm>
#include <cstring>

#include <gmock/gmock.h>
#include <support_lib/doc_example.hpp>

#include <tenon/plugin/backend.hpp>
#include <tenon/runtime/thread_pool.hpp>
#include <tenon/support/memory.hpp>
#include <tenon/target/load.hpp>

#include "fused_ops.hpp"

namespace tenon::vta {
namespace {

using namespace testing;
using ::testing::HasSubstr;

// A residual block, pools and a classifier, as in a quantised network.
OneOp small_network(std::mt19937& r) {
  OneOp net;
  Builder b(net.graph->body());
  const auto op = [&](Name name, std::vector<Value*> operands, Attributes attributes) {
    auto made = b.op(name, operands, std::move(attributes));
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().to_string());
    return made.ok() ? *made : nullptr;
  };
  const auto conv = [&](Value* x, int64_t in, int64_t out, int64_t kernel, int64_t stride, Value* residual) {
    Value* w = b.constant(random_of<int8_t>(r, {out, in, kernel, kernel}, -30, 30));
    Value* bias = b.constant(random_of<int32_t>(r, {out}, -2000, 2000));
    const int64_t pad = kernel / 2;
    Attributes attributes{{"pads", Attribute::Integers{pad, pad, pad, pad}},
                          {"strides", Attribute::Integers{stride, stride}},
                          {"shift", int64_t{8}},
                          {"clip_min", int64_t{0}}};
    if (residual) attributes.set("residual_shift", int64_t{8});
    return op("fused.QConv", {x, w, bias, residual}, attributes);
  };
  Value* x = net.input(r, {2, 3, 32, 32});
  Value* y = conv(x, 3, 24, 7, 2, nullptr);
  y = op("fused.QMaxPool", {y},
         {{"kernel_shape", Attribute::Integers{3, 3}},
          {"strides", Attribute::Integers{2, 2}},
          {"pads", Attribute::Integers{1, 1, 1, 1}}});
  Value* skip = conv(y, 24, 40, 1, 2, nullptr);
  Value* inner = conv(y, 24, 40, 3, 2, nullptr);
  y = conv(inner, 40, 40, 3, 1, skip);
  y = op("fused.QAdd", {y, b.constant(random_of<int8_t>(r, {2, 40, 4, 4}, -20, 20))}, {{"shift", int64_t{1}}});
  y = op("fused.QAvgPool", {y}, {{"kernel_shape", Attribute::Integers{4, 4}}, {"shift", int64_t{4}}});
  y = op("Flatten", {y}, {});
  y = op("fused.QDense", {y, b.constant(random_of<int8_t>(r, {10, 40}, -50, 50))}, {{"shift", int64_t{6}}});
  net.graph->body().add_output(y, "y");
  return net;
}

// Whether the target refuses some operator; then it never gets the whole graph.
bool runs_in_parts(const Graph& graph, const TargetDescription& target) {
  const auto backend = create_backend(target);
  return std::any_of(graph.body().begin(), graph.body().end(),
                     [&](const Op& op) { return (*backend)->refuses(op).has_value(); });
}

TEST(Program, RunsAWholeNetworkAsTheReferenceDoes) {
  std::mt19937 r(11);
  const OneOp net = small_network(r);
  const auto wanted = on_reference(net);
  ASSERT_TRUE(wanted.ok()) << wanted.error().to_string();
  for (const TargetDescription& target : machines()) {
    const auto program = compile_program(*net.graph, target);
    if (!program.ok() && runs_in_parts(*net.graph, target)) continue;  // a window of 7 x 7 in 1 KiB
    ASSERT_TRUE(program.ok()) << target.name << ": " << program.error().to_string();
    const auto y = run_program(*program, net);
    ASSERT_TRUE(y.ok()) << target.name << ": " << y.error().to_string();
    EXPECT_TRUE(y->identical(*wanted)) << target.name;
  }
}

TEST(Program, ActivationsShareDram) {
  std::mt19937 r(12);
  const OneOp net = small_network(r);
  const Hardware hardware = default_hardware();
  const auto program = compile_program(*net.graph, default_target());
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  const auto bytes = [&](const Image& image) { return static_cast<size_t>(image.elements() * hardware.lanes()); };
  size_t all = bytes((*program)->inputs()[0].image);
  for (const Op& op : net.graph->body())
    if (const auto made = device_op(op, hardware); made.ok())
      if (const auto* layer = std::get_if<Layer>(&made->work)) all += bytes(layer->output);
  EXPECT_LT((*program)->activation_bytes(), all);
  EXPECT_EQ((*program)->activation_bytes(), (*program)->activation_bound_bytes());
}

TEST(Program, ReportsWhatEachOperatorDid) {
  std::mt19937 r(13);
  const OneOp net = small_network(r);
  const auto program = compile_program(*net.graph, default_target());
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  std::vector<StepReport> report;
  ASSERT_TRUE(run_program(*program, net, &report).ok());
  ASSERT_EQ(report.size(), 8u);  // Flatten does nothing
  for (const StepReport& step : report) {
    ASSERT_TRUE(step.counters) << step.op;
    EXPECT_GT(step.counters->cycles, 0) << step.op;
    EXPECT_GT(step.counters->stored_bytes, 0) << step.op;
  }
}

TEST(Program, RunsOnTheDriverOfAnotherLibrary) {
  ::setenv("TENON_VTA_TARGET", default_path().c_str(), 1);
  const auto driver = open_library_driver(VTA_DRIVER_LIBRARY);
  ASSERT_TRUE(driver.ok()) << driver.error().to_string();
  std::mt19937 r(14);
  const OneOp net = small_network(r);
  const auto program = compile_program(*net.graph, default_target());
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  auto loaded = LoadedProgram::load(*program, *driver);
  ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
  Tensor y = *Tensor::zeros(kI8, (*program)->outputs()[0].dims);
  const Tensor* x = &net.inputs[0].tensor();
  Tensor* place = &y;
  std::vector<StepReport> report;
  const auto done = (*loaded)->run(std::span(&x, 1), std::span(&place, 1), &report);
  ASSERT_TRUE(done.ok()) << done.error().to_string();
  EXPECT_TRUE(y.identical(*on_reference(net)));
  EXPECT_FALSE(report.front().counters);  // the C interface does not count
  EXPECT_GT(report.front().instructions, 0);
}

TEST(Program, SaysWhenDramIsTooSmall) {
  std::mt19937 r(15);
  const OneOp net = small_network(r);
  TargetDescription target = default_target();
  for (MemorySpace& memory : target.memories)
    if (memory.name == "dram") memory.size_bytes = 1 << 12;
  const auto program = compile_program(*net.graph, target);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().code(), Code::resource_exhausted);
}

// ---- The backend ----

TEST(Backend, RunsWhatItDoesNotRefuse) {
  std::mt19937 r(16);
  OneOp net = small_network(r);
  const auto wanted = on_reference(net);
  auto backend = create_backend(default_target());
  ASSERT_TRUE(backend.ok()) << backend.error().to_string();
  for (const Op& op : net.graph->body()) EXPECT_FALSE((*backend)->refuses(op)) << op.describe();
  ASSERT_TRUE(run_phases(*net.graph, *pass_context(default_target())).ok());
  auto executable = (*backend)->build(std::move(net.graph));
  ASSERT_TRUE(executable.ok()) << executable.error().to_string();
  auto stream = host_device()->create_stream(false);
  std::vector<RunValue> inputs{{net.inputs[0], {}}}, outputs(1);
  std::vector<OpProfile> profile;
  auto done = (*executable)->enqueue(**stream, inputs, outputs, {.profile = &profile});
  ASSERT_TRUE(done.ok() && (*done)->wait().ok());
  EXPECT_TRUE(outputs[0].host.tensor().identical(*wanted));
  EXPECT_GT((*executable)->arena_bytes(), 0u);
  ASSERT_EQ(profile.size(), 8u);
  EXPECT_EQ(profile[0].op, "fused.QConv");
  EXPECT_EQ(profile[0].counters[0].first, "instructions");
  const auto listing = (*executable)->listing();
  ASSERT_TRUE(listing.ok());
  EXPECT_THAT(*listing, HasSubstr("GEMM"));
}

// The board described in the guide to target files, as a reader would try it.
TEST(Backend, OpensTheBoardOfTheGuideAndRunsOnIt) {
  const auto board = parse_target(test::doc_example("target-yaml.md", "yaml"), "target-yaml.md");
  ASSERT_TRUE(board.ok()) << board.error().to_string();
  auto backend = create_backend(*board);
  ASSERT_TRUE(backend.ok()) << backend.error().to_string();
  std::mt19937 r(20);
  const OneOp net = small_network(r);
  for (const Op& op : net.graph->body()) EXPECT_FALSE((*backend)->refuses(op)) << op.describe();
  const auto program = compile_program(*net.graph, *board);
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  const auto y = run_program(*program, net);
  ASSERT_TRUE(y.ok()) << y.error().to_string();
  EXPECT_TRUE(y->identical(*on_reference(net)));
}

// The stream is stored: loading makes neither tiles nor instructions, and requires the same machine.
TEST(Backend, LoadsWhatItStored) {
  std::mt19937 r(18);
  OneOp net = small_network(r);
  const auto wanted = on_reference(net);
  auto backend = create_backend(default_target());
  ASSERT_TRUE(run_phases(*net.graph, *pass_context(default_target())).ok());
  const auto built = (*backend)->build(std::move(net.graph));
  ASSERT_TRUE(built.ok()) << built.error().to_string();
  const auto bytes = (*built)->serialize();
  ASSERT_TRUE(bytes.ok());
  const std::shared_ptr<std::byte[]> aligned = *allocate_aligned(bytes->size());
  std::memcpy(aligned.get(), bytes->data(), bytes->size());
  const std::span<const std::byte> stored(aligned.get(), bytes->size());
  const auto loaded = (*backend)->load(stored, aligned);
  ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
  EXPECT_EQ(*(*loaded)->listing(), *(*built)->listing());
  auto stream = host_device()->create_stream(false);
  std::vector<RunValue> inputs{{net.inputs[0], {}}}, outputs(1);
  auto done = (*loaded)->enqueue(**stream, inputs, outputs, {});
  ASSERT_TRUE(done.ok() && (*done)->wait().ok());
  EXPECT_TRUE(outputs[0].host.tensor().identical(*wanted));

  auto other = create_backend(*load_target(TENON_SOURCE_DIR "/targets/vta-half.yaml"));
  const auto refused = (*other)->load(stored, aligned);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().to_string(), HasSubstr("target 'vta-half' is 0.0.2, batch 1, block 16, UOP 4096"));
  EXPECT_THAT(refused.error().to_string(), HasSubstr("compile the model for it"));
}

// A graph that has not been through the passes is not a program.
TEST(Backend, BuildsStreamsOnly) {
  std::mt19937 r(19);
  OneOp net = small_network(r);
  const auto built = (*create_backend(default_target()))->build(std::move(net.graph));
  ASSERT_FALSE(built.ok());
  EXPECT_THAT(built.error().to_string(), HasSubstr("the passes of target 'vta-default' leave no such operator"));
}

TEST(Backend, RefusesWithNumbers) {
  const TargetDescription target = default_target();
  std::mt19937 r(17);
  OneOp window;
  Value* x = window.graph->body().add_input("x", Type(kI8, {1, 16, 56, 56}));
  window.finish("fused.QAvgPool", {x}, {{"kernel_shape", Attribute::Integers{56, 56}}});
  EXPECT_THAT(refusal(target, window), HasSubstr("3136 elements of INP, 2048 are there"));

  OneOp open;
  Value* y = open.graph->body().add_input("x", *parse_type("i8[N,16,8,8]"));
  open.finish("fused.QMaxPool", {y}, {{"kernel_shape", Attribute::Integers{2, 2}}});
  EXPECT_THAT(refusal(target, open), HasSubstr("which only a run tells"));

  OneOp weights;
  Value* data = weights.input(r, {1, 4, 4, 4});
  weights.finish("fused.QConv", {data, weights.input(r, {4, 4, 1, 1})}, {});
  EXPECT_THAT(refusal(target, weights), HasSubstr("w of fused.QConv is no constant"));

  OneOp pads;
  Value* small = pads.input(r, {1, 4, 4, 4});
  pads.finish("fused.QConv", {small, pads.constant(random_of<int8_t>(r, {4, 4, 1, 1}, -1, 1))},
              {{"pads", Attribute::Integers{1, 1, 1, 1}}});
  EXPECT_THAT(refusal(target, pads), HasSubstr("pad 1 reaches beyond a window of 1"));

  OneOp other;
  Value* f = other.graph->body().add_input("x", Type(kF32, {1, 4}));
  other.finish("Relu", {f}, {});
  EXPECT_THAT(refusal(target, other), HasSubstr("Relu has no form of sums and windows on target 'vta-default'"));
}

}  // namespace
}  // namespace tenon::vta
