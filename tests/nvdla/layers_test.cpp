// Each kind of layer on both machines: bit for bit the reference's result for the graph after tensor selection, over
// seeded shapes; for i8 also its result for the original graph. TENON_NVDLA_CASES: the number of shapes of products
// (400).
#include "layers.hpp"

#include <cstdlib>

#include "nvdla/operators.hpp"

namespace tenon::nvdla {
namespace {

using namespace testing;

int cases() {
  const char* text = std::getenv("TENON_NVDLA_CASES");
  return text ? std::atoi(text) : 400;
}

// The sizes of the target files, and smaller buffers, which more layers exceed.
std::vector<TargetDescription> machines(const std::string& name) {
  const TargetDescription target = target_of(name);
  return {target, with_buffer(target, 8, name == "nvdla-full" ? 16 : 128),
          with_buffer(target, 4, name == "nvdla-full" ? 40 : 512)};
}

Net random_convolution(std::mt19937& r, bool half) {
  Net net;
  const ElementType element = half ? kF16 : kI8;
  const Windows w = Windows::random(r, pick(r, 0, 3) == 0 ? 30 : 10, pick(r, 0, 3) == 0 ? 5 : 3, true);
  const int64_t kind = pick(r, 0, 5), group = kind == 0 ? pick(r, 2, 40) : kind == 1 ? pick(r, 2, 6) : 1;
  const int64_t in = kind == 0 ? 1 : pick(r, 1, group > 1 ? 20 : 90),
                out = kind == 0 ? pick(r, 1, 2) : pick(r, 1, group > 1 ? 20 : 50);
  std::vector<Value*> operands{net.input(random_tensor(r, element, {1, in * group, w.extent[0], w.extent[1]}))};
  operands.push_back(net.constant(random_tensor(r, element, {out * group, in, w.kernel[0], w.kernel[1]})));
  Attributes attributes = w.conv_attributes(group);
  const bool bias = pick(r, 0, 1) == 0;
  if (half) {
    if (bias) operands.push_back(net.constant(random_tensor(r, kF16, {out * group})));
    Value* y = net.op("Conv", operands, attributes);
    if (pick(r, 0, 1) == 0) y = net.op("Relu", {y});
    if (pick(r, 0, 3) == 0)
      y = net.op("MaxPool", {y},
                 {{"kernel_shape", Integers{2, 2}}, {"pads", Integers{1, 1, 1, 1}}, {"strides", Integers{2, 2}}});
    net.output(y);
    return net;
  }
  add_epilogue(r, attributes, 16);
  Tensor biases = *Tensor::allocate(kI32, {out * group});
  for (int32_t& b : biases.mutable_as<int32_t>()) b = static_cast<int32_t>(pick(r, -100000, 100000));
  operands.push_back(bias ? net.constant(biases) : nullptr);
  if (pick(r, 0, 2) == 0) {
    operands.push_back(net.input(random_tensor(r, kI8, {1, out * group, w.out(0), w.out(1)})));
    attributes.set("residual_shift", pick(r, 0, 14));
  }
  Value* y = net.op("fused.QConv", operands, attributes);
  if (pick(r, 0, 3) == 0)
    y = net.op("fused.QMaxPool", {y}, {{"kernel_shape", Integers{2, 2}}, {"pads", Integers{1, 1, 1, 1}}});
  net.output(y);
  return net;
}

Net random_dense(std::mt19937& r, bool half) {
  Net net;
  const ElementType element = half ? kF16 : kI8;
  const int64_t k = pick(r, 1, 300), m = pick(r, 1, 200);
  Value* x = net.input(random_tensor(r, element, {1, k}));
  if (half) {
    const bool turned = pick(r, 0, 1) == 0;
    Value* w = net.constant(random_tensor(r, element, turned ? Dims{m, k} : Dims{k, m}));
    Value* c = net.constant(random_tensor(r, element, {m}));
    Value* y = net.op("Gemm", {x, w, c}, {{"transB", int64_t{turned}}});
    net.output(pick(r, 0, 1) == 0 ? y : net.op("Relu", {y}));
    return net;
  }
  Attributes attributes;
  add_epilogue(r, attributes, 16);
  net.output(net.op("fused.QDense", {x, net.constant(random_tensor(r, element, {m, k}))}, attributes));
  return net;
}

Net random_elementwise(std::mt19937& r, bool half) {
  Net net;
  const Dims dims =
      pick(r, 0, 2) == 0 ? Dims{1, pick(r, 1, 90)} : Dims{1, pick(r, 1, 60), pick(r, 1, 15), pick(r, 1, 15)};
  Value* a = net.input(random_tensor(r, half ? kF16 : kI8, dims));
  Value* b = pick(r, 0, 3) == 0 ? net.constant(random_tensor(r, half ? kF16 : kI8, dims))
                                : net.input(random_tensor(r, half ? kF16 : kI8, dims));
  if (half) {
    Value* y = net.op("Add", {a, b});
    const int64_t kind = pick(r, 0, 2);
    if (kind == 0) y = net.op("Relu", {y});
    if (kind == 1)
      y = net.op("Clip", {y, net.constant(Tensor::scalar(f16(0.0f))), net.constant(Tensor::scalar(f16(0.75f)))});
    net.output(y);
    return net;
  }
  Attributes attributes;
  add_epilogue(r, attributes, 14);
  attributes.set("a_shift", pick(r, 0, 12)), attributes.set("b_shift", pick(r, 0, 12));
  Value* y = net.op("fused.QAdd", {a, b}, attributes);
  net.output(pick(r, 0, 1) == 0 ? net.op("Relu", {y}) : y);
  return net;
}

Net random_pool(std::mt19937& r, bool half) {
  Net net;
  const Windows w = Windows::random(r, pick(r, 0, 2) == 0 ? 40 : 12, 4, false);
  Value* x = net.input(random_tensor(r, half ? kF16 : kI8, {1, pick(r, 1, 60), w.extent[0], w.extent[1]}));
  Attributes attributes = w.pool_attributes();
  if (pick(r, 0, 1) == 0) {
    net.output(net.op(half ? "MaxPool" : "fused.QMaxPool", {x}, attributes));
  } else if (half) {
    attributes.set("count_include_pad", pick(r, 0, 1));
    net.output(net.op("AveragePool", {x}, attributes));
  } else {
    add_epilogue(r, attributes, 20);
    attributes.set("multiplier", pick(r, 1, 2000));
    net.output(net.op("fused.QAvgPool", {x}, attributes));
  }
  return net;
}

void expect_bits(const std::vector<Datum>& got, const std::vector<Datum>& wanted, const std::string& where) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_TRUE(got[i].tensor().identical(wanted[i].tensor())) << where;
}

// `products` of f16: compares bits of the selected graph only.
void expect_same(Net& net, const TargetDescription& target, bool products, int seed, int& ran) {
  const std::string where = str("seed ", seed, ", ", target.name, "\n", net.what());
  auto backend = create_backend(target);
  ASSERT_TRUE(backend.ok()) << backend.error().to_string();
  if (refused(**backend, *net.graph)) return;
  ++ran;
  const auto before = on_reference(*net.graph, net.inputs);
  ASSERT_TRUE(before.ok()) << before.error().to_string();
  const auto phases = run_phases(**backend, *net.graph);
  ASSERT_TRUE(phases.ok()) << where << phases.error().to_string();
  const auto selected = on_reference(*net.graph, net.inputs);
  ASSERT_TRUE(selected.ok()) << where << selected.error().to_string();
  auto executable = (*backend)->build(std::move(net.graph));
  ASSERT_TRUE(executable.ok()) << where << executable.error().to_string();
  const auto got = run_executable(**executable, net.inputs);
  ASSERT_TRUE(got.ok()) << where << got.error().to_string();
  expect_bits(*got, *selected, where);
  if (!products) expect_bits(*got, *before, where);
}

using MakeNet = Net (*)(std::mt19937&, bool half);

void expect_all_same(int count, MakeNet make, bool products) {
  for (const bool half : {true, false}) {
    const auto targets = machines(half ? "nvdla-full" : "nvdla-small");
    int ran = 0;
    for (int seed = 0; seed < count; ++seed) {
      std::mt19937 r(static_cast<uint32_t>(seed));
      Net net = make(r, half);
      expect_same(net, targets[static_cast<size_t>(seed) % targets.size()], products && half, seed, ran);
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GE(ran, count * 8 / 10) << "most shapes fit";
  }
}

TEST(Layers, Convolutions) { expect_all_same(cases(), random_convolution, true); }
TEST(Layers, DenseProducts) { expect_all_same(cases() / 4, random_dense, true); }
TEST(Layers, Elementwise) { expect_all_same(cases() / 4, random_elementwise, false); }
TEST(Layers, Pools) { expect_all_same(cases() / 4, random_pool, false); }

}  // namespace
}  // namespace tenon::nvdla
