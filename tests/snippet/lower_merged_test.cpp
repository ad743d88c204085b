// Two sweeps merged into one.
#include <set>

#include <gtest/gtest.h>
#include <snippet/bodies.hpp>

namespace tenon::snippet::test {
namespace {

// Instructions whose result does not affect a store, one per line.
std::string unread(const LinearKernel& kernel) {
  std::set<RegisterId> read;
  const auto is_read = [&](const Instruction& one) {
    const bool walks = one.op == "LoopBegin" || one.op == "LoopEnd" || one.op == "TailBegin";
    return walks || one.out.empty() || std::ranges::any_of(one.out, [&](RegisterId id) { return read.contains(id); });
  };
  for (size_t before = 1; before != read.size();) {
    before = read.size();
    for (const Instruction& one : kernel.body) {
      if (!is_read(one)) continue;
      read.insert(one.in.begin(), one.in.end());
      if (one.memory) read.insert({one.memory->base, one.memory->index});
    }
  }
  for (const Loop& loop : kernel.loops)
    for (const Loop::Shift& shift : loop.shifts) read.insert(shift.pointer);
  std::string lines;
  for (const Instruction& one : kernel.body)
    if (!is_read(one)) lines += print(kernel, one) + "\n";
  return lines;
}

class LowerMerged : public ::testing::Test {
 protected:
  // Without register allocation, and with few and many registers.
  void check(const Body& body, const Dims& extents, bool joined = false) {
    for (const int count : {0, 4, 16}) {
      HarnessOptions options{.lower = options_, .parts = 1 + count / 8, .blocks = {{64}}, .tolerance = 1e-5};
      options.lower.whole_rows = !body.dims.back().reduced;
      options.lower.join_rows = joined;
      if (count > 0) options.machine = test_machine(count, count == 16, true);
      options.passes = [&](LinearKernel& kernel) -> Result<void> {
        EXPECT_TRUE(kernel.merged);
        EXPECT_EQ(unread(kernel), "");
        EXPECT_EQ(kernel.joined.rows >= 0, joined);
        return {};
      };
      check_body(body, extents, random_, options);
      if (HasFatalFailure()) return;
    }
  }

  LowerOptions options_{.lanes = 4, .unroll = 4, .resweep_cycles = 24, .merge_sweeps = true};
  std::mt19937 random_{1};
};

DimSet all_of(std::string_view dims) { return (DimSet{1} << dims.size()) - 1; }

Body softmax_body(std::string_view dims) {
  BodyBuilder build("softmax", dims);
  const ValueId x = build.input(all_of(dims), kF16);
  const ValueId e = build.op("Exp", {build.op("Sub", {x, build.reduce("ReduceMax", x)})});
  build.output(build.op("Mul", {e, build.op("Div", {build.scalar(1), build.reduce("ReduceSum", e)})}));
  return build.take();
}

// Normalisation of x + residual. The deviation is also a result if there is one per row.
Body norm_body(std::string_view dims) {
  BodyBuilder build("norm", dims);
  const ValueId x = build.op("Add", {build.input(all_of(dims)), build.input(all_of(dims))}), count = build.count();
  const ValueId mean = build.op("Div", {build.reduce("ReduceSum", x), count}), centred = build.op("Sub", {x, mean});
  const ValueId square = build.reduce("ReduceSum", build.op("Mul", {centred, centred}));
  const ValueId deviation = build.op("Sqrt", {build.op("Add", {build.op("Div", {square, count}), build.scalar(1)})});
  build.output(build.op("Div", {centred, deviation}));
  if (dims.back() == 'r') build.output(deviation);
  return build.take();
}

TEST_F(LowerMerged, RowsOfAllWidths) {
  for (const int vectors : {16, 32}) {
    options_.vectors = vectors;
    for (const int64_t row : {0, 1, 3, 4, 5, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 101, 197}) {
      for (const auto& [dims, extents] : {std::pair("kr", Dims{3, row}), {"krr", {2, 3, row}}, {"rkr", {3, 2, row}}}) {
        check(softmax_body(dims), extents);
        check(norm_body(dims), extents);
      }
    }
  }
}

// The logarithm of a sum of powers of a product. The product that the first sweep would keep for the second is not
// read, unless the result uses it again.
TEST_F(LowerMerged, NothingIsKeptForTheSecondAlone) {
  options_.cycles = [](const Body&, const BodyNode& node) { return node.op == "Mul" ? 30.0 : 1.0; };
  options_.keep_near = true;
  for (const bool is_read : {false, true}) {
    BodyBuilder build("powers", "kr");
    const ValueId x = build.op("Mul", {build.input(3), build.input(3)}), greatest = build.reduce("ReduceMax", x);
    const ValueId sum = build.reduce("ReduceSum", build.op("Exp", {build.op("Sub", {x, greatest})}));
    const ValueId logarithm = build.op("Add", {greatest, build.op("Log", {sum})});
    build.output(is_read ? build.op("Sub", {x, logarithm}) : logarithm);
    const Body body = build.take();
    const auto kernel = lower(body, options_);
    ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
    const auto to_scratch = [&](const Instruction& one) {
      if (one.op != "Store") return false;
      const auto base = std::ranges::find_if(kernel->body, [&](const Instruction& made) {
        return made.op == "Parameter" && made.out[0] == one.memory->base;
      });
      return base != kernel->body.end() && kernel->params[static_cast<size_t>(base->number)].port > 2;
    };
    EXPECT_EQ(std::ranges::any_of(kernel->body, to_scratch), is_read) << print(*kernel);
    EXPECT_EQ(kernel->scratch.size(), is_read ? 1u : 0u);
    for (const int64_t row : {0, 1, 3, 4, 5, 33}) check(body, {3, row});
  }
}

// As above, with another product that the last sweep reads again; only this one is kept in a scratch row.
TEST_F(LowerMerged, WhatIsKeptForTheLastMovesUp) {
  options_.cycles = [](const Body&, const BodyNode& node) { return node.op == "Mul" ? 30.0 : 1.0; };
  options_.keep_near = true;
  BodyBuilder build("powers", "kr");
  const ValueId a = build.input(3), x = build.op("Mul", {a, build.input(3)}), y = build.op("Mul", {a, a});
  const ValueId greatest = build.reduce("ReduceMax", x), squares = build.reduce("ReduceSum", y);
  const ValueId sum = build.reduce("ReduceSum", build.op("Exp", {build.op("Sub", {x, greatest})}));
  build.output(build.op("Sub", {y, build.op("Add", {squares, build.op("Log", {sum})})}));
  const Body body = build.take();
  const auto kernel = lower(body, options_);
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  EXPECT_EQ(kernel->scratch.size(), 1u) << print(*kernel);
  for (const int64_t row : {0, 1, 3, 4, 5, 33}) check(body, {3, row});
}

TEST_F(LowerMerged, ColumnsOfAllHeights) {
  for (const int vectors : {16, 32}) {
    options_.vectors = vectors;
    for (const int64_t rows : {0, 1, 3, 4, 5, 7, 8, 9, 29}) {
      for (const int64_t columns : {1, 3, 4, 5, 64, 67}) {
        check(softmax_body("rk"), {rows, columns});
        check(norm_body("krk"), {2, rows, columns});
        check(softmax_body("rkrk"), {2, 3, rows, columns});
      }
    }
  }
}

TEST_F(LowerMerged, RowsThatAreJoined) {
  for (const int64_t rows : {1, 7, 100, 613, 1031}) {
    for (const int64_t columns : {1, 3, 8, 31}) {
      check(softmax_body("rk"), {rows, columns}, true);
      check(norm_body("krk"), {2, rows, columns}, true);
    }
  }
}

// The loop of single vectors has one load of x, and rescales the running sum.
TEST_F(LowerMerged, OneVectorReadsAsThis) {
  options_.lanes = 4, options_.vectors = 16, options_.unroll = 1;
  const auto kernel = lower(softmax_body("r"), options_);
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  const std::string text = print(*kernel);
  const size_t begin = text.find("loop 1 "), end = text.find("tail 2 ");
  ASSERT_NE(end, std::string::npos) << text;
  EXPECT_EQ(text.substr(begin, end - begin), R"(loop 1 d0 dim 0 %3 vector step 4 limit #2 {
    %35:f32 = Load f16 [%5 + %3]
    %36:f32 = Max %1, %35 ; ReduceMax n1
    %37:f32 = Sub %1, %36 ; ReduceMax n1
    %38:f32 = Exp %37 ; ReduceMax n1
    %39:bool = Equal %38, %13 ; ReduceMax n1
    %40:f32 = Mul %2, %38 ; ReduceMax n1
    %41:f32 = Where %39, %13, %40 ; ReduceMax n1
    %42:bool = Equal %1, %36 ; ReduceMax n1
    %43:bool = Equal %2, %13 ; ReduceMax n1
    %44:bool = Or %42, %43 ; ReduceMax n1
    %45:f32 = Where %44, %2, %41 ; ReduceMax n1
    %46:f32 = Sub %35, %36 ; Sub n2
    %47:f32 = Exp %46 ; Exp n3
    %48:f32 = Add %45, %47 ; ReduceMax n1
    %1:f32 = Copy %36
    %2:f32 = Copy %48
  }
  )") << text;
}

}  // namespace
}  // namespace tenon::snippet::test
