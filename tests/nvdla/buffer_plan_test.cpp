// The plans of the convolution buffer: for each, a convolution that uses it; with one more element, the next plan is
// used. What no plan can hold is refused with the numbers.
#include "nvdla/buffer_plan.hpp"

#include <gmock/gmock.h>

#include "layers.hpp"
#include "nvdla/operators.hpp"

namespace tenon::nvdla {
namespace {

using namespace testing;
using ::testing::HasSubstr;

// 4 banks of 4 entries of 128 bytes: rows of 4 atoms and groups of up to 2 entries for a kernel of 1 x 1 on 16
// channels.
Hardware small_buffer() {
  auto hardware = Hardware::of(with_buffer(target_of("nvdla-full"), 4, 4));
  EXPECT_TRUE(hardware.ok()) << (hardware.ok() ? "" : hardware.error().to_string());
  return *hardware;
}

struct Sizes {
  int64_t channels, height, width, kernels, window;
};

ConvLayer layer_of(const Sizes& s, const Hardware& h) {
  ConvLayer layer;
  layer.label = "c";
  layer.input = *Image::of({1, s.channels, s.height, s.width}, h);
  layer.rows.kernel = layer.cols.kernel = s.window;
  layer.out_height = s.height - s.window + 1, layer.out_width = s.width - s.window + 1;
  layer.output = *Image::of({1, s.kernels, layer.out_height, layer.out_width}, h);
  layer.parts = Parts::of(s.channels, s.kernels, 1, h.atom_channels);
  return layer;
}

std::string plan_of(const Sizes& s, const Hardware& h = small_buffer()) {
  const auto plan = plan_buffer(layer_of(s, h), h);
  if (!plan.ok()) return plan.error().message();
  return str(plan_name(plan->kind), "; rows ", plan->band_rows, ", banks ", plan->data_banks, "+", plan->weight_banks);
}

// A row of 4 pixels of 16 channels is one entry, a group of 16 kernels of them 4 entries: one bank. 12 entries are
// three banks.
TEST(BufferPlan, EachPlanEndsWhereTheNextOneBegins) {
  // All data and all weights: three groups need three banks, and data of up to 4 rows the fourth.
  EXPECT_EQ(plan_of({16, 4, 4, 48, 1}), "all data, all weights; rows 4, banks 1+3");
  // One kernel more is one group more.
  EXPECT_EQ(plan_of({16, 4, 4, 49, 1}), "all data, 2K kernels; rows 4, banks 1+2");
  EXPECT_EQ(plan_of({16, 8, 4, 49, 1}), "all data, 2K kernels; rows 8, banks 2+2");
  // One row more leaves no bank for two groups beside it; weights of 49 kernels do not fit beside any row either.
  EXPECT_EQ(plan_of({16, 9, 4, 49, 1}), "split rows, 2K kernels; rows 8, banks 2+2");
  // Where all weights fit beside bands, they stay.
  EXPECT_EQ(plan_of({16, 9, 4, 48, 1}), "split rows, all weights; rows 4, banks 1+3");
  // A pixel more and a row takes two entries.
  EXPECT_EQ(plan_of({16, 4, 5, 48, 1}), "all data, 2K kernels; rows 4, banks 2+2");
}

// Kernels of two banks a group: two groups are the whole buffer.
TEST(BufferPlan, OneGroupAtATimeWhereTwoDoNotFit) {
  EXPECT_EQ(plan_of({32, 4, 4, 32, 1}), "all data, K kernels; rows 4, banks 2+2");
  EXPECT_EQ(plan_of({32, 5, 4, 32, 1}), "split rows, K kernels; rows 4, banks 2+2");
  // 16 kernels are one group: nothing to take turns.
  EXPECT_EQ(plan_of({32, 4, 4, 16, 1}), "all data, all weights; rows 4, banks 2+2");
}

TEST(BufferPlan, RefusesWithTheNumbersWhatNoPlanHolds) {
  EXPECT_EQ(plan_of({16, 8, 8, 16, 2}),
            "convolution \"c\" needs 5 banks of the convolution buffer (1 for 2 rows of data, "
            "4 for 16 kernels), 4 are there on target nvdla-full");
  EXPECT_EQ(plan_of({16, 8, 8, 12, 2}), "split rows, all weights; rows 1, banks 1+3");
  EXPECT_EQ(plan_of({16, 1, 64, 16, 1}),
            "convolution \"c\" needs 5 banks of the convolution buffer (4 for 1 row of data, "
            "1 for 16 kernels), 4 are there on target nvdla-full");
}

// The refusal applies to whole operators, before anything is compiled.
TEST(BufferPlan, IsAReasonToRefuse) {
  std::mt19937 r(1);
  auto backend = create_backend(with_buffer(target_of("nvdla-full"), 4, 4));
  ASSERT_TRUE(backend.ok()) << backend.error().to_string();
  Net net;
  Value* x = net.input(random_tensor(r, kF16, {1, 16, 8, 8}));
  Value* y = net.op("Conv", {x, net.constant(random_tensor(r, kF16, {16, 16, 2, 2}))});
  const auto refusal = (*backend)->refuses(*y->producer());
  ASSERT_TRUE(refusal);
  EXPECT_THAT(refusal->reason, HasSubstr("needs 5 banks of the convolution buffer"));
}

// A band of a pool needs all rows under its window.
TEST(BufferPlan, CountsTheRowsUnderAPool) {
  const Hardware h = small_buffer();
  ConvLayer layer = layer_of({16, 20, 4, 49, 1}, h);
  layer.pooled = true;
  layer.pool_rows = {.kernel = 3, .stride = 2, .dilation = 1, .pad = 1};
  layer.output = *Image::of({1, 49, 10, 4}, h);
  EXPECT_EQ(layer.most_input_rows(1), 3);
  EXPECT_EQ(layer.most_input_rows(3), 7);
  EXPECT_EQ(layer.most_input_rows(10), 20) << "no more than there are";
  const auto plan = plan_buffer(layer, h);
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  EXPECT_EQ(plan->band_rows, 3) << "8 rows of data hold 7";
  EXPECT_EQ(layer.conv_rows({0, 3}).end, 6);
  EXPECT_EQ(layer.conv_rows({3, 6}).first, 5) << "one row is computed twice";
}

// The machines of the target files, with layers of ResNet-18.
TEST(BufferPlan, OfNetworks) {
  const Hardware full = *Hardware::of(target_of("nvdla-full")), small = *Hardware::of(target_of("nvdla-small"));
  EXPECT_EQ(plan_of({64, 56, 56, 64, 3}, full), "all data, all weights; rows 54, banks 13+3");
  EXPECT_EQ(plan_of({512, 9, 9, 512, 3}, full), "all data, 2K kernels; rows 7, banks 3+9");
  EXPECT_EQ(plan_of({64, 56, 56, 64, 3}, small), "split rows, all weights; rows 24, banks 23+9");
}

}  // namespace
}  // namespace tenon::nvdla
