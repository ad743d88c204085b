#include <tenon/program/exec/contract.hpp>

#include <gmock/gmock.h>

#include <tenon/program/exec/interpreter.hpp>

#include "program/kernels.hpp"

namespace tenon::program {
namespace {

using namespace program::testing;
using ::testing::HasSubstr;

// Runs `kernel` on the box [2, 6) x [1, 3) of both operands, in contract mode.
std::string complaint(std::function<void(const BufferView& in, const BufferView& out)> kernel,
                      bool keeps_gaps = false) {
  KernelTable table;
  Kernel made{.name = "k", .run = [kernel](CallContext& c) -> Result<void> {
                kernel(c.operands[0], c.operands[1]);
                return {};
              }};
  made.takes_dense_only = made.keeps_gaps = keeps_gaps;
  table["k"] = std::make_shared<const Kernel>(std::move(made));
  const auto program = parse_program(R"(program @contract() {
    input %in : i32 rank 2
    output %out : i32 rank 2
    call k(in %in[2 +: 4, 1 +: 2], out %out[2 +: 4, 1 +: 2]) as "stage"
  })",
                                     table);
  Data data;
  data.add("in", {10, 6});
  data.add("out", {10, 6});
  const auto result = interpret(*program, data.arguments(), {.contract = true});
  if (!result.ok()) return result.error().message();
  for (int64_t y = 1; y < 3; ++y)
    for (int64_t x = 2; x < 6; ++x) {
      const auto i = static_cast<size_t>(10 * y + x);
      EXPECT_EQ(data["out"][i], data["in"][i]) << "the result is not stored";
    }
  return "";
}

void copy_box(const BufferView& in, const BufferView& out) {
  for_each(out, [&](std::span<const int64_t> index) { at(out, index) = at(in, index); });
}
int32_t& at(const BufferView& view, int64_t x, int64_t y) {
  return program::testing::at(view, std::array<int64_t, 2>{x, y});
}

TEST(Contract, AKernelThatKeepsToItsBoxesPasses) { EXPECT_EQ(complaint(copy_box), ""); }

TEST(Contract, WritesOutsideAreNamed) {
  const auto writes = [](int64_t x, int64_t y) {
    return complaint([=](const BufferView& in, const BufferView& out) {
      copy_box(in, out);
      at(out, x, y) = 1;
    });
  };
  // Bytes that look as what they are written over, but for one.
  EXPECT_EQ(complaint([](const BufferView& in, const BufferView& out) {
              copy_box(in, out);
              at(out, 6, 1) = 0x00A7A7A7;
            }),
            "stage 'stage' writes above the box, in dim 0, of operand 1 (out 'out')");
  EXPECT_EQ(writes(6, 1), "stage 'stage' writes above the box, in dim 0, of operand 1 (out 'out')");
  EXPECT_EQ(writes(1, 2), "stage 'stage' writes below the box, in dim 0, of operand 1 (out 'out')");
  EXPECT_EQ(writes(3, 3), "stage 'stage' writes above the box, in dim 1, of operand 1 (out 'out')");
  EXPECT_EQ(writes(3, -4), "stage 'stage' writes below the box, in dim 1, of operand 1 (out 'out')");
}

// Rows of 4 with a distance of 10, as in the program; the gaps are watched.
TEST(Contract, GapsThatAKernelIsMadeForStay) {
  const auto rows_apart = [](const BufferView& view) { return view.dims[1].stride / view.dims[0].stride; };
  const auto copies = [&](const BufferView& in, const BufferView& out) {
    EXPECT_EQ(rows_apart(in), 10);
    EXPECT_EQ(rows_apart(out), 10);
    copy_box(in, out);
  };
  EXPECT_EQ(complaint(copies, /*keeps_gaps=*/true), "");
  EXPECT_EQ(complaint(
                [&](const BufferView& in, const BufferView& out) {
                  copies(in, out);
                  at(out, 7, 1) = 1;
                },
                /*keeps_gaps=*/true),
            "stage 'stage' writes above the box, in dim 0, of operand 1 (out 'out')");
}

TEST(Contract, WritesToWhatIsReadAreNamed) {
  EXPECT_EQ(complaint([](const BufferView& in, const BufferView& out) {
              copy_box(in, out);
              at(in, 3, 1) += 1;
            }),
            "stage 'stage' writes index [3, 1] of operand 0 (in 'in'), which it may only read");
}

TEST(Contract, ReadsOutsideAreNamed) {
  const auto reads = [](int64_t x, int64_t y) {
    return complaint([=](const BufferView& in, const BufferView& out) {
      copy_box(in, out);
      at(out, 2, 1) += at(in, x, y) & 1;
    });
  };
  EXPECT_THAT(reads(6, 1), HasSubstr("stage 'stage' reads above the box, in dim 0, of operand 0 (in 'in')"));
  EXPECT_THAT(reads(-3, 1), HasSubstr("stage 'stage' reads below the box, in dim 0, of operand 0 (in 'in')"));
  EXPECT_THAT(reads(5, 3), HasSubstr("stage 'stage' reads above the box, in dim 1, of operand 0 (in 'in')"));
}

TEST(Contract, UnwrittenElementsAreNamed) {
  EXPECT_EQ(complaint([](const BufferView& in, const BufferView& out) {
              for_each(out, [&](std::span<const int64_t> i) {
                if (i[0] != 5) program::testing::at(out, i) = program::testing::at(in, i);
              });
            }),
            "stage 'stage' does not write index [5, 1] of operand 1 (out 'out'), or reads an operand declared `out` "
            "before it "
            "writes it");
}

TEST(Contract, KernelsThatDependOnChanceAreNamed) {
  int32_t calls = 0;
  EXPECT_THAT(complaint([&](const BufferView& in, const BufferView& out) {
                copy_box(in, out);
                at(out, 2, 1) = ++calls;
              }),
              HasSubstr("gives different results for the same operands"));
}

// What a kernel leaves in its workspace is no result, and may be anything; its results may not.
TEST(Contract, WorkspacesHoldNoResults) {
  const auto said = [](size_t by_chance) {
    KernelTable table = kernels();
    int32_t calls = 0;
    Kernel made{.name = "k", .run = [&](CallContext& c) -> Result<void> {
                  copy_box(c.operands[0], c.operands[1]);
                  copy_box(c.operands[0], c.operands[2]);
                  at(c.operands[by_chance], 0, 0) = ++calls;
                  return {};
                }};
    made.workspaces = 1;
    table["k"] = std::make_shared<const Kernel>(std::move(made));
    const auto program = parse_program(R"(program @workspace() {
      input %in : i32 rank 2
      output %out : i32 rank 2
      allocate %work : i32[0 +: 3, 0 +: 2] { call k(in %in, out %out, out %work) }
    })",
                                       table);
    Data data;
    data.add("in", {3, 2});
    data.add("out", {3, 2});
    const auto result = interpret(*program, data.arguments(), {.contract = true});
    return result.ok() ? std::string() : result.error().message();
  };
  EXPECT_EQ(said(2), "");
  EXPECT_THAT(said(1), HasSubstr("gives different results for the same operands"));
}

TEST(Contract, PlacesOfARingOutsideOfTheBoxAreGuarded) {
  const auto run = [](int64_t row) {
    KernelTable table = kernels();
    table["k"] = make_kernel(
        "k",
        [row](CallContext& c) -> Result<void> {
          copy_box(c.operands[0], c.operands[1]);
          at(c.operands[1], 0, row) = 1;
          return {};
        },
        true);
    const auto program = parse_program(R"(program @ring() {
      output %out : i32 rank 2
      allocate %in : i32[0 +: 2, 0 +: 9] {
        call iota(out %in; 0)
        allocate %ring : i32[0 +: 2, 0 +: 9 fold 4] { call k(in %in, out %ring[0 +: 2, 3 +: 2]) }
      }
    })",
                                       table);
    Data data;
    data.add("out", {1, 1});
    const auto result = interpret(*program, data.arguments(), {.contract = true});
    return result.ok() ? std::string() : result.error().message();
  };
  EXPECT_EQ(run(4), "");
  EXPECT_EQ(run(5), "stage 'k' writes above the box, in dim 1, of operand 1 (out 'ring')");
}

}  // namespace
}  // namespace tenon::program
