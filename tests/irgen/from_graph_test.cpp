#include <tenon/irgen/from_graph.hpp>

#include <gmock/gmock.h>

#include "irgen/irgen_testing.hpp"

namespace tenon::irgen {
namespace {

using namespace irgen::testing;
using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of(std::string_view graph, const LowerOptions& options = {}) {
  const auto parsed_graph = parsed(graph);
  return program::print(lowered(*parsed_graph, options).program);
}

constexpr std::string_view kChain = R"(graph @net(%x: f32[2,3], %w: f32[3,4]) -> (%y) {
    %a = MatMul %x, %w "fc" : f32[2,4]
    %b = Softmax %a : f32[2,4]
    %y = Neg %b : f32[2,4]
  })";

TEST(FromGraph, OperatorsAreCallsAndElementwiseOnesRunInPlace) {
  EXPECT_EQ(text_of(kChain), R"(program @net() {
  input %x : f32 rank 2
  input %w : f32 rank 2
  output %y : f32 rank 2
  local %a : f32[0 +: 4, 0 +: 2]
  call MatMul(in %x, in %w, out %a) as "MatMul fc"
  call Softmax(in %a, out %y) as "Softmax"
  free %a
  call Neg(in %y, out %y) as "Neg"
}
)");
}

TEST(FromGraph, NotInPlaceWhenToldSo) {
  EXPECT_EQ(text_of(kChain, {.in_place = false}), R"(program @net() {
  input %x : f32 rank 2
  input %w : f32 rank 2
  output %y : f32 rank 2
  local %a : f32[0 +: 4, 0 +: 2]
  local %b : f32[0 +: 4, 0 +: 2]
  call MatMul(in %x, in %w, out %a) as "MatMul fc"
  call Softmax(in %a, out %b) as "Softmax"
  free %a
  call Neg(in %b, out %y) as "Neg"
  free %b
}
)");
}

TEST(FromGraph, NotInPlaceWhenTheOperandIsReadLater) {
  EXPECT_THAT(text_of(R"(graph @net(%x: f32[2]) -> (%y) {
    %a = Softmax %x : f32[2]
    %b = Neg %a : f32[2]
    %y = Sub %a, %b : f32[2]
  })"),
              HasSubstr("call Neg(in %y, out %b)"));
}

// x and y have the same shape, but the broadcast operand is read again for each row.
TEST(FromGraph, NotInPlaceOfAnOperandThatIsBroadcast) {
  EXPECT_THAT(text_of(R"(graph @net(%x: f32[1,2], %z: f32[2,2]) -> (%y) {
    %a = Softmax %x : f32[1,2]
    %y = Add %a, %z : f32[2,2]
  })"),
              HasSubstr("call Add(in %a, in %z, out %y)"));
}

TEST(FromGraph, ViewsAreNoStatements) {
  EXPECT_EQ(text_of(R"(graph @net(%x: f32[2,3], %w: f32[6]) -> (%y) {
    %a = Softmax %x : f32[2,3]
    %s = Constant {value = dense<i64[1]: 6>} : i64[1]
    %b = Reshape %a, %s : f32[6]
    %y = Softmax %b : f32[6]
  })"),
            R"(program @net() {
  input %x : f32 rank 2
  input %w : f32 rank 1
  output %y : f32 rank 1
  local %a : f32[0 +: 3, 0 +: 2]
  call Softmax(in %x, out %a) as "Softmax"
  view %b : f32 = %a at 0 [0 +: 6] {
    call Softmax(in %b, out %y) as "Softmax"
  }
  free %a
}
)");
}

TEST(FromGraph, OperandsOfAConcatAreMadeInTheResult) {
  EXPECT_EQ(text_of(R"(graph @net(%x: f32[2,3]) -> (%y) {
    %a = Softmax %x : f32[2,3]
    %y = Concat %a, %x {axis = 0} : f32[4,3]
  })"),
            R"(program @net() {
  input %x : f32 rank 2
  output %y : f32 rank 2
  view %a : f32 = %y at 0 [0 +: 3, 0 +: 2] {
    call Softmax(in %x, out %a) as "Softmax"
  }
  copy %y[0 +: 3, 2 +: 2](i0, i1) = %x(i0, i1 - 2) as "Concat"
}
)");
}

TEST(FromGraph, PartsWithGapsAreCopied) {
  EXPECT_EQ(text_of(R"(graph @net(%x: f32[2,3]) -> (%y) {
    %a = Softmax %x : f32[2,3]
    %y = Concat %a, %x {axis = 1} : f32[2,6]
  })"),
            R"(program @net() {
  input %x : f32 rank 2
  output %y : f32 rank 2
  local %a : f32[0 +: 3, 0 +: 2]
  call Softmax(in %x, out %a) as "Softmax"
  copy %y[0 +: 3, 0 +: 2](i0, i1) = %a(i0, i1) as "Concat"
  copy %y[3 +: 3, 0 +: 2](i0, i1) = %x(i0 - 3, i1) as "Concat"
  free %a
}
)");
}

// All nested parts are in the same storage, whichever operators join or cut them, also in long chains.
TEST(FromGraph, ChainsOfPartsLieInOneStorage) {
  std::string text = "graph @net(%x: f32[4]) -> (%y) {\n%a0 = Softmax %x : f32[4]\n";
  const int kParts = 200;
  for (int i = 0; i < kParts; ++i)
    text += str("%b", i, " = Softmax %x : f32[4]\n%a", i + 1, " = Concat %a", i, ", %b", i, " {axis = 0} : f32[",
                4 * (i + 2), "]\n");
  text += str("%y = Neg %a", kParts, " : f32[", 4 * (kParts + 1), "]\n}");
  const auto graph = parsed(text);
  const GraphProgram program = lowered(*graph);
  EXPECT_TRUE(program.program.locals.empty()) << program::print(program.program);
  EXPECT_THAT(program::print(program.program), HasSubstr(str("view %b", kParts - 1, " : f32 = %y at ", 16 * kParts)));
}

// %a would stay live with %h, which is a quarter of it.
TEST(FromGraph, APartIsCopiedWhereSharingWouldCostMemory) {
  EXPECT_THAT(text_of(R"(graph @net(%x: f32[8]) -> (%y) {
    %s = Constant {value = dense<i64[1]: 0>} : i64[1]
    %e = Constant {value = dense<i64[1]: 2>} : i64[1]
    %a = Softmax %x : f32[8]
    %h = Slice %a, %s, %e : f32[2]
    %b = Softmax %x : f32[8]
    %c = Softmax %b : f32[8]
    %d = Softmax %c : f32[8]
    %g = Concat %d, %h {axis = 0} : f32[10]
    %y = Softmax %g : f32[10]
  })",
                      {.order_for_memory = false}),
              HasSubstr("copy"));
}

TEST(FromGraph, TransposeIsOneCopy) {
  EXPECT_THAT(text_of(R"(graph @net(%x: f32[2,3,4]) -> (%y) {
    %y = Transpose %x {perm = [2, 0, 1]} : f32[4,2,3]
  })"),
              HasSubstr("copy %y(i0, i1, i2) = %x(i2, i0, i1) as \"Transpose\""));
}

TEST(FromGraph, TransposesOfDimsOfOneIndexAndExpandsToTheSameShapeAreViews) {
  EXPECT_EQ(text_of(R"(graph @net(%x: f32[2,3,1,1]) -> (%y) {
    %s = Constant {value = dense<i64[4]: 2, 1, 1, 3>} : i64[4]
    %t = Transpose %x {perm = [0, 2, 3, 1]} : f32[2,1,1,3]
    %e = Expand %t, %s : f32[2,1,1,3]
    %y = Softmax %e : f32[2,1,1,3]
  })"),
            R"(program @net() {
  input %x : f32 rank 4
  output %y : f32 rank 4
  view %e : f32 = %x at 0 [0 +: 3, 0 +: 1, 0 +: 1, 0 +: 2] {
    call Softmax(in %e, out %y) as "Softmax"
  }
}
)");
  // An extent that is 1 in some runs only.
  EXPECT_THAT(text_of(R"(graph @net(%x: f32[2,N]) -> (%y) {
    %y = Transpose %x {perm = [1, 0]} : f32[N,2]
  })"),
              HasSubstr("copy %y(i0, i1) = %x(i1, i0)"));
}

// ---- Optimisations of the program ----

constexpr std::string_view kDead = R"(graph @net(%x: f32[2,3]) -> (%y) {
    %a = Softmax %x "dead" : f32[2,3]
    %b = Exp %a "dead_too" : f32[2,3]
    %y = Neg %x : f32[2,3]
  })";

TEST(FromGraph, StatementsWhoseResultsNothingReadsAreDropped) {
  EXPECT_EQ(text_of(kDead), R"(program @net() {
  input %x : f32 rank 2
  output %y : f32 rank 2
  call Neg(in %x, out %y) as "Neg"
}
)");
  EXPECT_THAT(text_of(kDead, {.simplify = false}), HasSubstr("Softmax dead"));
}

constexpr std::string_view kCopies = R"(graph @net(%x: f32[2,3], %z: f32[3,1]) -> (%y, %u) {
    %t = Transpose %x "swap" {perm = [1, 0]} : f32[3,2]
    %y = Concat %t, %z "join" {axis = 1} : f32[3,3]
    %u = Transpose %t "back" {perm = [1, 0]} : f32[2,3]
  })";

TEST(FromGraph, CopiesOfCopiesReadWhereTheFirstOneHasRead) {
  EXPECT_EQ(text_of(kCopies), R"(program @net() {
  input %x : f32 rank 2
  input %z : f32 rank 2
  output %y : f32 rank 2
  output %u : f32 rank 2
  copy %y[0 +: 2, 0 +: 3](i0, i1) = %x(i1, i0) as "Concat join"
  copy %y[2 +: 1, 0 +: 3](i0, i1) = %z(i0 - 2, i1) as "Concat join"
  copy %u(i0, i1) = %x(i0, i1) as "Transpose back"
}
)");
  EXPECT_THAT(text_of(kCopies, {.simplify = false}), HasSubstr("local %t"));
}

// The source of the first copy stays live instead of the copy.
TEST(FromGraph, WhatIsReadInPlaceOfACopyLivesAsLong) {
  EXPECT_THAT(text_of(R"(graph @net(%x: f32[2,3], %z: f32[3,1]) -> (%y) {
    %a = Softmax %x : f32[2,3]
    %t = Transpose %a {perm = [1, 0]} : f32[3,2]
    %b = Softmax %z : f32[3,1]
    %y = Concat %t, %b {axis = 1} : f32[3,3]
  })",
                      {.order_for_memory = false}),
              ::testing::AllOf(HasSubstr("copy %y[0 +: 2, 0 +: 3](i0, i1) = %a(i1, i0)"), Not(HasSubstr("local %t"))));
}

// A Transpose of a value that an operator then overwrites in place must remain a copy.
TEST(FromGraph, CopiesOfWhatChangesAfterwardsStay) {
  const std::string text = text_of(R"(graph @net(%x: f32[2,3], %z: f32[3,1]) -> (%y, %u) {
    %a = Softmax %x : f32[2,3]
    %t = Transpose %a {perm = [1, 0]} : f32[3,2]
    %u = Neg %a : f32[2,3]
    %y = Concat %t, %z {axis = 1} : f32[3,3]
  })",
                                   {.order_for_memory = false});
  EXPECT_THAT(text, HasSubstr("call Neg(in %u, out %u)"));
  EXPECT_THAT(text, HasSubstr("copy %t(i0, i1) = %u(i1, i0)"));
}

TEST(FromGraph, SymbolsAreScalars) {
  EXPECT_EQ(text_of(R"(graph @net(%x: f32[N,3]) -> (%y) {
    %a = Softmax %x : f32[N,3]
    %y = Concat %a, %a {axis = 1} : f32[N,6]
  })"),
            R"(program @net(N) {
  input %x : f32 rank 2
  output %y : f32 rank 2
  local %a : f32[0 +: 3, 0 +: N]
  call Softmax(in %x, out %a) as "Softmax"
  copy %y[0 +: 3, 0 +: N](i0, i1) = %a(i0, i1) as "Concat"
  copy %y[3 +: 3, 0 +: N](i0, i1) = %a(i0 - 3, i1) as "Concat"
  free %a
}
)");
}

TEST(FromGraph, WhatNoProgramSaysIsNamed) {
  const auto graph = parsed(R"(graph @net(%x: f32[2,3]) -> (%y) {
    %y = NonZero %x : i64[2,M]
  })");
  const auto made = from_graph(*graph, reference_kernels());
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().to_string(), HasSubstr("NonZero"));
  EXPECT_THAT(made.error().to_string(), HasSubstr("depends on data"));
}

TEST(FromGraph, StagesNameOperators) {
  EXPECT_EQ(label_of_stage("Conv a b").op, "Conv");
  EXPECT_EQ(label_of_stage("Conv a b").label, "a b");
  EXPECT_EQ(label_of_stage("Relu").op, "Relu");
  EXPECT_EQ(label_of_stage("Relu").label, "");
}

}  // namespace
}  // namespace tenon::irgen
