// Whole networks: f16 products close to those of the reference, reuse of memory, groups, and stored compiled networks.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "layers.hpp"
#include "nvdla/operators.hpp"

namespace tenon::nvdla {
namespace {

using namespace testing;

struct Compiled {
  std::unique_ptr<TargetBackend> backend;
  std::unique_ptr<Executable> executable;
};

Compiled compiled(Net& net, const TargetDescription& target) {
  Compiled made;
  auto backend = create_backend(target);
  EXPECT_TRUE(backend.ok()) << (backend.ok() ? "" : backend.error().to_string());
  made.backend = std::move(*backend);
  const auto refusal = refused(*made.backend, *net.graph);
  EXPECT_FALSE(refusal) << refusal->reason;
  const auto phases = run_phases(*made.backend, *net.graph);
  EXPECT_TRUE(phases.ok()) << (phases.ok() ? "" : phases.error().to_string());
  auto executable = made.backend->build(std::move(net.graph));
  EXPECT_TRUE(executable.ok()) << (executable.ok() ? "" : executable.error().to_string());
  if (executable.ok()) made.executable = std::move(*executable);
  return made;
}

// ---- Against another order of sums ----

// Sums of |x * w| and |b|, by the reference in f64.
Tensor magnitudes(const Net& net, const Op& conv) {
  const auto absolute = [&](const Tensor& tensor) {
    Tensor out = *Tensor::allocate(kF64, tensor.dims());
    for (int64_t i = 0; i < tensor.size(); ++i) out.set_double(i, std::abs(tensor.double_at(i)));
    return Datum(out);
  };
  std::vector<Datum> operands{absolute(net.inputs[0].tensor()), absolute(*constant_of(conv.operand(1))),
                              absolute(*constant_of(conv.operand(2)))};
  auto made = evaluate("Conv", operands, conv.attributes());
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().to_string());
  return (*made)[0].tensor();
}

// Both sums are of n products and a bias in f32, in different orders. To first order, each has an error of at most n
// roundings of 2^-24 of the sum of magnitudes; each is then rounded to f16 once, with an error of at most 2^-11 of
// itself or half of f16's smallest step, 2^-25.
TEST(Networks, HalfConvolutionsAreWithinTheBoundOfTwoOrders) {
  for (int seed = 0; seed < 30; ++seed) {
    std::mt19937 r(static_cast<uint32_t>(seed));
    Net net;
    const int64_t channels = pick(r, 1, 300), window = pick(r, 1, 3), kernels = pick(r, 1, 20);
    Value* x = net.input(random_tensor(r, kF16, {1, channels, 8, 8}));
    Value* w = net.constant(random_tensor(r, kF16, {kernels, channels, window, window}));
    Value* y = net.op("Conv", {x, w, net.constant(random_tensor(r, kF16, {kernels}))});
    net.output(y);
    const Tensor wanted = (*on_reference(*net.graph, net.inputs))[0].tensor();
    const Tensor bound = magnitudes(net, *y->producer());
    const std::vector<Datum> inputs = net.inputs;
    const Compiled made = compiled(net, target_of("nvdla-full"));
    const auto got = run_executable(*made.executable, inputs);
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    const Tensor& values = (*got)[0].tensor();
    const double n = static_cast<double>(channels * window * window + 1);
    for (int64_t i = 0; i < values.size(); ++i) {
      const double a = values.double_at(i), b = wanted.double_at(i);
      const double allowed = 2 * n * std::ldexp(bound.double_at(i), -24) * 1.001 +
                             std::ldexp(std::abs(a) + std::abs(b), -11) + std::ldexp(1, -24);
      ASSERT_LE(std::abs(a - b), allowed) << "seed " << seed << ", element " << i;
    }
  }
}

// ---- A residual network in both types ----

Value* conv_layer(std::mt19937& r, Net& net, bool half, Value* x, int64_t in, int64_t out, int64_t stride, bool relu) {
  const ElementType element = half ? kF16 : kI8;
  Value* w = net.constant(random_tensor(r, element, {out, in, 3, 3}, std::sqrt(2.0 / static_cast<double>(9 * in))));
  Attributes window{{"pads", Integers{1, 1, 1, 1}}, {"strides", Integers{stride, stride}}};
  if (!half) {
    window.set("shift", 10);
    if (relu) window.set("clip_min", 0);
    return net.op("fused.QConv", {x, w}, window);
  }
  Value* y = net.op("Conv", {x, w, net.constant(random_tensor(r, kF16, {out}, 0.1))}, window);
  return relu ? net.op("Relu", {y}) : y;
}

Net residual_network(std::mt19937& r, bool half) {
  Net net;
  Value* x = net.input(random_tensor(r, half ? kF16 : kI8, {1, 3, 64, 64}));
  Value* y = conv_layer(r, net, half, x, 3, 32, 1, true);
  y = net.op(half ? "MaxPool" : "fused.QMaxPool", {y}, {{"kernel_shape", Integers{2, 2}}, {"strides", Integers{2, 2}}});
  for (int block = 0; block < 3; ++block) {
    Value* inner = conv_layer(r, net, half, y, 32, 32, 1, true);
    Value* outer = conv_layer(r, net, half, inner, 32, 32, 1, false);
    y = half ? net.op("Relu", {net.op("Add", {outer, y})})
             : net.op("fused.QAdd", {outer, y}, {{"shift", 1}, {"clip_min", 0}});
  }
  y = conv_layer(r, net, half, y, 32, 40, 4, true);
  y = half ? net.op("GlobalAveragePool", {y})
           : net.op("fused.QAvgPool", {y}, {{"kernel_shape", Integers{8, 8}}, {"shift", 6}});
  y = net.op("Flatten", {y});
  Value* w = net.constant(random_tensor(r, half ? kF16 : kI8, {10, 40}));
  net.output(half ? net.op("Gemm", {y, w}, {{"transB", 1}}) : net.op("fused.QDense", {y, w}, {{"shift", 8}}));
  return net;
}

// Bytes of one 4 KiB-aligned entry per tensor of the graph, in the machine's surfaces: ONNC's layout of DRAM.
int64_t entries_of(const Graph& graph, const Hardware& hardware) {
  int64_t bytes = 0;
  const auto add = [&](const Value& value) {
    bytes += round_up(Image::of(*value.type().shape().static_dims(), hardware)->bytes, 4096);
  };
  for (size_t i = 0; i < graph.body().input_count(); ++i) add(*graph.body().input(i));
  for (const Op& op : graph.body())
    if (op.name().view() != "Constant") add(*op.result());
  return bytes;
}

TEST(Networks, ResidualNetworkAsTheReferenceHasIt) {
  for (const bool half : {true, false}) {
    std::mt19937 r(5);
    Net net = residual_network(r, half);
    const TargetDescription target = target_of(half ? "nvdla-full" : "nvdla-small");
    const auto before = on_reference(*net.graph, net.inputs);
    const int64_t entries = entries_of(*net.graph, *Hardware::of(target));
    const Compiled made = compiled(net, target);
    std::vector<OpProfile> profile;
    const auto got = run_executable(*made.executable, net.inputs, &profile);
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    if (!half) {
      EXPECT_TRUE((*got)[0].tensor().identical((*before)[0].tensor()));
    }
    EXPECT_EQ(made.executable->arena_bytes(), made.executable->arena_lower_bound_bytes());
    EXPECT_GE(entries, 5 * static_cast<int64_t>(made.executable->arena_bytes())) << "one entry for each tensor";
    ASSERT_FALSE(profile.empty());
    for (const OpProfile& op : profile) EXPECT_GT(op.microseconds, 0) << op.op;
  }
}

TEST(Networks, StoredAndLoadedAgain) {
  std::mt19937 r(6);
  Net net = residual_network(r, true);
  const Compiled made = compiled(net, target_of("nvdla-full"));
  const auto bytes = made.executable->serialize();
  ASSERT_TRUE(bytes.ok()) << bytes.error().to_string();
  const auto owner = std::make_shared<std::vector<std::byte>>(bytes->size() + 64);
  void* start = owner->data();
  size_t room = owner->size();
  std::align(64, bytes->size(), start, room);
  std::memcpy(start, bytes->data(), bytes->size());
  auto again = made.backend->load({static_cast<const std::byte*>(start), bytes->size()}, owner);
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_TRUE((*run_executable(**again, net.inputs))[0].tensor().identical(
      (*run_executable(*made.executable, net.inputs))[0].tensor()));
}

// A stored address outside DRAM must not lead to a write there.
TEST(Networks, StoredPlacesAreNotTakenOnTrust) {
  std::mt19937 r(7);
  Net net;
  Value* x = net.input(random_tensor(r, kF16, {1, 8}));
  net.output(net.op("Gemm", {x, net.constant(random_tensor(r, kF16, {8, 4}))}));
  auto backend = create_backend(target_of("nvdla-full"));
  ASSERT_TRUE(run_phases(**backend, *net.graph).ok());
  for (Op* op : net.graph->body().ops())
    if (isa<Conv>(*op)) op->set_attr("dram", Integers{0, int64_t{1} << 40, 0});
  const auto built = (*backend)->build(std::move(net.graph));
  ASSERT_FALSE(built.ok());
  EXPECT_THAT(built.error().message(), ::testing::HasSubstr("leaves DRAM of"));
}

TEST(Networks, ListsItsCommands) {
  std::mt19937 r(8);
  Net net;
  Value* x = net.input(random_tensor(r, kF16, {1, 8}));
  net.output(net.op("Gemm", {x, net.constant(random_tensor(r, kF16, {8, 4}))}));
  const Compiled made = compiled(net, target_of("nvdla-full"));
  const auto listing = made.executable->listing();
  ASSERT_TRUE(listing.ok());
  EXPECT_THAT(*listing, ::testing::HasSubstr("// Gemm op1: 4 commands\nbegin\nload_weights weight_address="));
}

}  // namespace
}  // namespace tenon::nvdla
