// Tiles fit the buffers, depend only on the numbers, and let transfers overlap with computation.
#include "vta/tiling.hpp"

#include <gmock/gmock.h>

#include "fused_ops.hpp"

namespace tenon::vta {
namespace {

using namespace testing;
using ::testing::HasSubstr;

// A convolution with a square kernel, padded to keep the extents, on an image of `size` x `size`.
OneOp convolution(int64_t in, int64_t out, int64_t size, int64_t kernel, int64_t stride) {
  OneOp made;
  const int64_t pad = kernel / 2;
  Value* x = made.graph->body().add_input("x", Type(kI8, {1, in, size, size}));
  Value* w = made.constant(*Tensor::zeros(kI8, {out, in, kernel, kernel}));
  Value* b = made.constant(*Tensor::zeros(kI32, {out}));
  made.finish("fused.QConv", {x, w, b},
              {{"pads", Attribute::Integers{pad, pad, pad, pad}},
               {"strides", Attribute::Integers{stride, stride}},
               {"shift", int64_t{8}}});
  return made;
}

Layer layer_of(const OneOp& one, const Hardware& hardware) {
  auto op = device_op(one.op(), hardware);
  EXPECT_TRUE(op.ok()) << (op.ok() ? "" : op.error().to_string());
  return std::get<Layer>(op->work);
}

RunCounters timed(const OneOp& one, const Hardware& hardware, bool double_buffer) {
  const auto stream = encoded_stream(one, hardware, double_buffer);
  EXPECT_TRUE(stream.ok()) << (stream.ok() ? "" : stream.error().to_string());
  return *time_stream(*stream->bound(separate_addresses(16), hardware), hardware);
}

TEST(Tiling, FitsItsSlots) {
  for (const TargetDescription& target : machines()) {
    const Hardware hardware = *Hardware::of(target);
    const Layer layer = layer_of(convolution(128, 128, 28, 3, 1), hardware);
    const auto candidates = tile_candidates(layer, hardware, 2);
    ASSERT_TRUE(candidates.ok()) << candidates.error().to_string();
    for (const Tiling& tile : *candidates) {
      const SramMap map = SramMap::of(layer, hardware, tile);
      EXPECT_LE(tile.blocks * tile.rows * tile.cols, map.acc_slot) << target.name;
      EXPECT_LE(tile.blocks * tile.reduce * 9, map.wgt_slot) << target.name;
      EXPECT_LE(tile.reduce * (tile.rows + 1) * (tile.cols + 1), map.inp_slot) << target.name;
    }
  }
}

TEST(Tiling, IsTheSameEachTime) {
  const Hardware hardware = default_hardware();
  const Layer layer = layer_of(convolution(256, 256, 14, 3, 1), hardware);
  const Tiling a = tile_candidates(layer, hardware, 2)->front(), b = tile_candidates(layer, hardware, 2)->front();
  EXPECT_EQ(std::tuple(a.blocks, a.rows, a.cols, a.reduce, a.inp_whole, a.wgt_whole, a.spatial_outer),
            std::tuple(b.blocks, b.rows, b.cols, b.reduce, b.inp_whole, b.wgt_whole, b.spatial_outer));
}

TEST(Tiling, RefusesAWindowThatNoBufferHolds) {
  const Hardware hardware = default_hardware();
  OneOp one;
  Value* x = one.graph->body().add_input("x", Type(kI8, {1, 16, 56, 56}));
  one.finish("fused.QAvgPool", {x}, {{"kernel_shape", Attribute::Integers{56, 56}}});
  const auto refused = check_tiles(layer_of(one, hardware), hardware, 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::unsupported);
  EXPECT_THAT(refused.error().message(),
              HasSubstr("takes 3136 elements of INP, 2048 are there on target 'vta-default'"));
}

TEST(Tiling, OverlapsTransfersWithProducts) {
  // Cycles of products and transfers are alike here.
  const OneOp one = convolution(512, 512, 7, 3, 1);
  const Hardware hardware = default_hardware();
  const RunCounters two = timed(one, hardware, true), serial = timed(one, hardware, false);
  EXPECT_GE(static_cast<double>(two.dram_cycles), 0.65 * static_cast<double>(two.of(UnitId::compute).busy_cycles));
  EXPECT_LE(static_cast<double>(two.cycles), 0.7 * static_cast<double>(serial.cycles));
  EXPECT_GE(static_cast<double>(two.gemm_cycles), 0.85 * static_cast<double>(two.cycles));
}

TEST(Tiling, TakesLittleMoreThanItsSlowestUnit) {
  const Hardware hardware = default_hardware();
  for (const auto& [in, out, size, kernel, stride] :
       {std::tuple(64, 64, 56, 3, 1), std::tuple(64, 128, 56, 3, 2), std::tuple(64, 128, 56, 1, 2),
        std::tuple(128, 128, 28, 3, 1), std::tuple(256, 512, 14, 3, 2), std::tuple(512, 512, 7, 3, 1)}) {
    const RunCounters counters = timed(convolution(in, out, size, kernel, stride), hardware, true);
    const int64_t least = std::max(counters.of(UnitId::compute).busy_cycles, counters.dram_cycles);
    EXPECT_LE(static_cast<double>(counters.cycles), 1.15 * static_cast<double>(least))
        << in << " to " << out << " on " << size << ", kernel " << kernel;
  }
}

}  // namespace
}  // namespace tenon::vta
