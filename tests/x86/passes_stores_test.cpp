// Passes on stores: with rounding, non-temporal, in several stretches of a row.
#include <random>
#include <set>
#include <snippet/bodies.hpp>

#include <tenon/tensor/numeric.hpp>

#include "x86/assembly/listing.hpp"
#include "x86/passes_support.hpp"

namespace tenon::x86::testing {
namespace {

template <class Half>
float widened(uint16_t bits) {
  return static_cast<float>(Half::from_bits(bits));
}

TEST_P(Passes, WhatIsStoredNarrowIsRoundedByTheStore) {
  const auto squares = [&](std::string_view element, std::string_view behind) {
    return row_kernel(GetParam().lanes,
                      str("    %10:f32 = Load@ ", element, " [%0 + %3]!\n    %12:f32 = Mul %10, %10\n", behind),
                      element);
  };
  std::mt19937 random(5);
  const auto check_squares = [&]<class Half>(std::string_view element) {
    const LinearKernel kernel = optimised(squares(element, str("    %20:f32 = Round %12 {to = \"", element, "\"}\n")));
    EXPECT_EQ(count(print(kernel), "Round"), 0) << print(kernel);
    const auto code = compiled(kernel);
    ASSERT_NE(code, nullptr);
    for (int64_t width : widths(GetParam().lanes)) {
      std::vector<uint16_t> x(static_cast<size_t>(width) * 8);
      for (uint16_t& bits : x) bits = static_cast<uint16_t>(random());
      const auto y = run<uint16_t>(*code, x, 0);
      for (size_t i = 0; i < x.size(); ++i) {
        const float exact = widened<Half>(x[i]) * widened<Half>(x[i]);
        const bool is_nan = std::isnan(exact);
        ASSERT_TRUE(is_nan ? std::isnan(widened<Half>(y[i])) : y[i] == Half(exact).bits)
            << element << " of bits " << x[i] << " gave " << y[i];
      }
    }
    // The rounding remains if the rounded value has another use, or if it is to another type.
    const std::string read = str("    %13:f32 = Round %12 {to = \"", element, "\"}\n    %20:f32 = Max %13, %13\n");
    EXPECT_EQ(count(print(optimised(squares(element, read))), "Round"), 2);
  };
  check_squares.operator()<f16>("f16");
  check_squares.operator()<bf16>("bf16");
  EXPECT_EQ(count(print(optimised(squares("bf16", "    %20:f32 = Round %12 {to = \"f16\"}\n"))), "Round"), 2);
}

// If several rows are traversed at once, the full stores of all rows are non-temporal, not only those of the first.
TEST_P(Passes, OfSeveralRowsAllAreStoredPastTheCaches) {
  snippet::test::BodyBuilder build("columns", "rk");
  const snippet::ValueId x = build.input(3);
  build.output(build.op("Sub", {x, build.reduce("ReduceSum", x)}));
  auto kernel = snippet::lower(build.take(), {.lanes = GetParam().lanes, .rows = 4, .whole_rows = true});
  ASSERT_TRUE(kernel.ok());
  const auto stores = [&](std::string_view op) {
    std::set<snippet::RegisterId> pointers;
    for (const snippet::Instruction& one : kernel->body)
      if (one.op == op && one.touched == codegen::Lanes::full) pointers.insert(one.memory->base);
    return pointers.size();
  };
  EXPECT_EQ(stores("Store"), 1u + 4u) << "the sums, and four rows of the result";
  ASSERT_TRUE(optimise(*kernel, FormPasses{.isa = GetParam().isa, .stream_stores = true}).ok());
  EXPECT_EQ(stores("StoreStreaming"), 4u) << print(*kernel);
  EXPECT_EQ(stores("Store"), 1u) << print(*kernel);
}

// Stores of whole vectors are non-temporal, with and without narrowing, and a fence precedes the return.
TEST_P(Passes, StoresGoPastTheCaches) {
  output_ = tenon::testing::GuardAt::lines;
  const int lanes = GetParam().lanes;
  for (const std::string_view element : {"f32", "f16", "bf16", "i32", "i16", "u8", "bool"}) {
    const bool is_bool = element == "bool";
    const std::string lane = is_bool                             ? "bool"
                             : element.find('f') != element.npos ? "f32"
                             : element[0] == 'u'                 ? "u32"
                                                                 : "i32";
    const int bits = *element.rbegin() == '2' ? 32 : element == "u8" || is_bool ? 8 : 16;
    if (is_bool && lanes * 8 < 128) continue;
    const std::string text = row_kernel(lanes, str("    %20:", lane, " = Load@ ", element, " [%0 + %3]!\n"), element);
    const LinearKernel kernel = optimised(text, {.stream_stores = true, .prefetch_writes = {.lines = 32}});
    const bool streams = lanes * bits >= 128;
    EXPECT_EQ(count(print(kernel), "StoreStreaming"), streams) << print(kernel);
    EXPECT_EQ(count(print(kernel), "PrefetchWrite"), !streams)
        << "lines that are stored non-temporally are not fetched";
    EXPECT_EQ(has_streaming_stores(kernel), streams);
    const auto code = compiled(kernel);
    ASSERT_NE(code, nullptr);
    EXPECT_EQ(count(listing(code->object()), "movnt"), streams);
    EXPECT_EQ(count(listing(code->object()), "sfence"), streams);
    if (bits == 32) check<float>(*code, [](float x, float) { return x; });
    if (bits == 16) check_copy<uint16_t>(*code);
    if (bits == 8) check_copy<uint8_t>(*code);
  }
}

// In rows with arbitrary alignment, only stores marked aligned are non-temporal, and lines are loaded by halves instead
// of as memory operands.
TEST_P(Passes, WhereRowsBeginAnywhereAlignedStoresAloneGoPastTheCaches) {
  const int lanes = GetParam().lanes;
  const std::string text = row_kernel(lanes, load("f32") + "    %20:f32 = Neg %10\n");
  const size_t store = text.find("Store f32"), line = text.find('\n', store);
  const std::string aligned = text.substr(0, line) + " {aligned = 1}" + text.substr(line);
  const FormPasses options{.stream_stores = true, .row_begins = RowBegins::behind_heads};
  const bool streams = lanes * 32 >= 128, halves = lanes * 32 == 512;
  EXPECT_EQ(count(print(optimised(text, options)), "StoreStreaming"), 0);
  const LinearKernel kernel = optimised(aligned, options);
  EXPECT_EQ(count(print(kernel), "StoreStreaming"), streams) << print(kernel);
  EXPECT_EQ(count(print(kernel), "LoadHalves"), halves) << print(kernel);
  const LinearKernel sum =
      optimised(row_kernel(lanes, load("f32") + weight("f32") + "    %20:f32 = Add %10, %11\n"), options);
  EXPECT_EQ(count(print(sum), "LoadHalves"), halves) << print(sum);
  const auto code = compiled(sum);
  ASSERT_NE(code, nullptr);
  check<float>(*code, [](float x, float w) { return x + w; });
}

// Rows that are long enough are traversed in four parallel stretches; the remainder is processed as without them.
TEST_P(Passes, StretchesOfARowGoSideBySide) {
  output_ = tenon::testing::GuardAt::lines;
  const int lanes = GetParam().lanes;
  const std::string text = row_kernel(lanes, load("f32") + weight("f32") + "    %20:f32 = Add %10, %11\n");
  const LinearKernel kernel = optimised(text, {.stream_stores = true,
                                               .streams = {.each = 4, .least_elements = 64},
                                               .prefetch_reads = {.lines = 16, .together = 32}});
  EXPECT_EQ(count(print(kernel), "StoreStreaming"), 9) << print(kernel);
  EXPECT_EQ(count(print(kernel), "+ 512]"), 4) << "each stretch 8 lines ahead: " << print(kernel);
  EXPECT_EQ(count(print(kernel), "AddParameter"), 2 * 3 + 1) << print(kernel);
  EXPECT_EQ(print(parsed(print(kernel))), print(kernel));
  const auto code = compiled(kernel);
  ASSERT_NE(code, nullptr);
  const auto expected = [](float x, float w) { return x + w; };
  for (const int64_t width : {63, 255, 256, 257, 512, 3 * 256 + 64 + 5}) {
    extra_params_ = {width / 256 * 64 - 2 * lanes, width / 256 * 256, width / 256 * 256, width / 256 * 192};
    std::vector<float> x(static_cast<size_t>(width));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    const std::vector<float> y = run(*code, x, 0.5f);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], expected(x[i], 0.5f)) << "element " << i << " of " << width;
  }
}

TEST_P(Passes, LoopsThatStoreIntoTheCachesAreOneStream) {
  const std::string text = row_kernel(GetParam().lanes, load("f32") + "    %20:f32 = Neg %10\n");
  EXPECT_EQ(count(print(optimised(text, {.streams = {.each = 4}})), "stream"), 0);
}

// The alignment of rows says nothing about vectors along another dim, nor about scratch memory, whose ports come after
// those of all tensors.
TEST_P(Passes, OutputsWithoutRowsStayInTheCaches) {
  LinearKernel kernel = parsed(row_kernel(GetParam().lanes, load("f32") + "    %20:f32 = Neg %10\n"));
  kernel.extents = {-1, -1};
  const bool streams = GetParam().lanes * 32 >= 128;
  const std::vector<uint32_t> rows{3, 0, 3}, others{3, 0, 1}, scratch{3, 0};  // the kernel's loops are over dim 0
  for (const auto& varies : {rows, others, scratch}) {
    kernel.varies = varies;
    EXPECT_EQ(has_streaming_stores(optimised(kernel, {.stream_stores = true})), streams && varies == rows);
  }
}

TEST_P(Passes, OutputsThatAreReadAgainStayInTheCaches) {
  const std::string text =
      row_kernel(GetParam().lanes, "    %10:f32 = Load@ f32 [%1 + %3]!\n    %20:f32 = Add %10, %10\n");
  EXPECT_FALSE(has_streaming_stores(optimised(text, {.stream_stores = true})));
}

TENON_ON_ALL_MACHINES(Passes);

}  // namespace
}  // namespace tenon::x86::testing
