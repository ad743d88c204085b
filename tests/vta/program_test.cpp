// Graphs of several operators: activations share DRAM, views take none, and any driver runs the streams.
#include "vta/program.hpp"

#include <gmock/gmock.h>

#include <tenon/plugin/backend.hpp>
#include <tenon/runtime/thread_pool.hpp>

#include "fused_ops.hpp"

namespace tenon::vta {
namespace {

using namespace testing;
using ::testing::HasSubstr;

// A residual block, pools and a classifier, as a quantised network has them.
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

TEST(Program, RunsAWholeNetworkAsTheReferenceDoes) {
  std::mt19937 r(11);
  const OneOp net = small_network(r);
  const auto wanted = on_reference(net);
  ASSERT_TRUE(wanted.ok()) << wanted.error().to_string();
  for (const TargetDescription& target : machines()) {
    const auto program = DeviceProgram::compile(*net.graph, *Hardware::of(target));
    if (!program.ok() && program.error().code() == Code::unsupported) continue;  // a window of 7 x 7 in 1 KiB
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
  const auto program = DeviceProgram::compile(*net.graph, hardware);
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  const auto bytes = [&](const Image& image) { return static_cast<size_t>(image.elements() * hardware.lanes()); };
  size_t all = bytes((*program)->inputs()[0].image);
  for (const DeviceProgram::Step& step : (*program)->steps())
    if (const auto* layer = std::get_if<Layer>(&step.op.work)) all += bytes(layer->output);
  EXPECT_LT((*program)->activation_bytes(), all);
  EXPECT_EQ((*program)->activation_bytes(), (*program)->activation_bound_bytes());
}

TEST(Program, ReportsWhatEachOperatorDid) {
  std::mt19937 r(13);
  const OneOp net = small_network(r);
  const auto program = DeviceProgram::compile(*net.graph, default_hardware());
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
  const auto program = DeviceProgram::compile(*net.graph, default_hardware());
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
  Hardware hardware = default_hardware();
  hardware.dram_bytes = 1 << 12;
  const auto program = DeviceProgram::compile(*net.graph, hardware);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().code(), Code::resource_exhausted);
}

// ---- The backend ----

std::string refusal(const TargetDescription& target, const OneOp& one) {
  const auto backend = create_backend(target);
  EXPECT_TRUE(backend.ok()) << (backend.ok() ? "" : backend.error().to_string());
  const auto refused = (*backend)->refuses(one.op());
  return refused ? refused->reason : "";
}

TEST(Backend, RunsWhatItDoesNotRefuse) {
  std::mt19937 r(16);
  OneOp net = small_network(r);
  const auto wanted = on_reference(net);
  auto backend = create_backend(default_target());
  ASSERT_TRUE(backend.ok()) << backend.error().to_string();
  for (const Op& op : net.graph->body()) EXPECT_FALSE((*backend)->refuses(op)) << op.describe();
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
