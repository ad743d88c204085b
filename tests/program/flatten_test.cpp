// What a device would enqueue: the calls and copies of a program as numbers.
#include <tenon/program/exec/flatten.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/program/ir/text.hpp>
#include <tenon/program/ir/verify.hpp>

namespace tenon::program {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

KernelTable kernels() {
  KernelTable all;
  for (const char* name : {"f", "g"})
    all.emplace(name, make_kernel(name, [](CallContext&) -> Result<void> { return {}; }));
  return all;
}

Result<FlatProgram> flat(std::string_view text, const std::vector<std::vector<int64_t>>& extents,
                         SymbolValues scalars = {}) {
  TENON_TRY(program, parse_program(text, kernels()));
  TENON_OK(verify(program));
  Arguments arguments;
  size_t next = 0;
  for (const Buffer& buffer : program.buffers)
    if (buffer.role != Role::local)
      arguments.buffers[buffer.name] = BufferArgument::dense(nullptr, buffer.element, extents[next++]);
  arguments.scalars = std::move(scalars);
  return flatten(program, arguments);
}

std::vector<int64_t> strides(const FlatOperand& operand) {
  std::vector<int64_t> all;
  for (const DimView& dim : operand.dims) all.push_back(dim.stride);
  return all;
}

TEST(Flatten, CallsHaveTheirBoxes) {
  const auto made = flat(R"(program @p(n) {
    input %x : f32 rank 2
    output %y : f32 rank 2
    local %t : f32[0 +: n, 0 +: 3]
    call f(in %x, out %t) as "first"
    for i in [0, 3) {
      call g(in %t[0 +: n, i +: 1], out %y[0 +: n, i +: 1])
    }
    free %t
  })",
                         {{4, 3}, {4, 3}}, {{"n", 4}});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  ASSERT_EQ(made->steps.size(), 4u);
  EXPECT_EQ(made->steps[0].stage, "first");
  EXPECT_EQ(made->steps[0].operands[1].root, 2);
  EXPECT_EQ(made->local_bytes, (std::vector<int64_t>{0, 0, 48}));
  EXPECT_EQ(made->steps[3].operands[0].offset_bytes, 32);
  EXPECT_EQ(made->steps[3].operands[1].root, 1);
  EXPECT_THAT(strides(made->steps[3].operands[1]), ElementsAre(4, 16));
}

TEST(Flatten, CopiesSayHowTheSourceMoves) {
  const auto made = flat(R"(program @p() {
    input %x : i16 rank 2
    output %y : i16 rank 2
    copy %y(a, b) = %x(4 - b, a + 1)
  })",
                         {{5, 4}, {3, 5}});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  ASSERT_EQ(made->steps.size(), 1u);
  EXPECT_EQ(made->steps[0].kernel, nullptr);
  const FlatOperand& from = made->steps[0].operands[1];
  EXPECT_EQ(from.offset_bytes, 4 * 2 + 10);
  EXPECT_THAT(strides(from), ElementsAre(10, -2));
  EXPECT_EQ(from.dims[1].extent, 5);
}

TEST(Flatten, RefusesWhatNoDeviceIsTold) {
  const auto message = [](const char* copy) {
    const auto made =
        flat(str("program @p() {\n input %x : i16 rank 1\n output %y : i16 rank 1\n", copy, "\n}"), {{4}, {4}});
    return made.ok() ? std::string("none") : made.error().to_string();
  };
  EXPECT_EQ(message("copy %y(a) = %x(a)"), "none");
  EXPECT_THAT(message("copy %y(a) = %x(a floordiv 2)"), HasSubstr("not linear in a"));
  EXPECT_THAT(message("copy %y(a) = %x(a + 1) pad 0x0000"), HasSubstr("pads"));
  EXPECT_THAT(message("copy %y(a) = %x(a + 1)"), HasSubstr("indices 1 .. 4"));
  EXPECT_THAT(message("call f(in %x, out %y; 3)"), HasSubstr("scalars"));
}

}  // namespace
}  // namespace tenon::program
