#include <tenon/program/ir/simplify.hpp>

#include <gtest/gtest.h>

#include <tenon/program/exec/interpreter.hpp>
#include <tenon/program/ir/verify.hpp>

#include "program/random_program.hpp"

namespace tenon::program {
namespace {

using namespace program::testing;

std::string with_head(const std::string& body) {
  return "program @p(n) {\n  input %in : i32 rank 1\n  output %out : i32 rank 1\n  token %t\n" + body + "}\n";
}
std::string simplified(const std::string& body) { return print(simplify(parsed(with_head(body)))); }

struct Case {
  const char* name;
  const char* before;
  const char* after;
};

class SimplifyTest : public ::testing::TestWithParam<Case> {};

TEST_P(SimplifyTest, LeavesWhatIsNeeded) {
  EXPECT_EQ(simplified(GetParam().before), print(parsed(with_head(GetParam().after))));
}

constexpr Case kCases[] = {
    {"empty_loop", "for i in [4, 4) { call iota(out %out; i) }", ""},
    {"loop_of_nothing", "for i in [0, n) { for j in [0, n) {} }", ""},
    {"loop_that_may_be_empty", "for i in [0, n) { call iota(out %out; i) }",
     "for i in [0, n) { call iota(out %out; i) }"},
    {"loop_of_one", "for i in [n, n + 3) step 3 { call iota(out %out; i) }", "call iota(out %out; n)"},
    {"loop_of_one_index", "for i in [n, n + 1) { call iota(out %out; i) }", "call iota(out %out; n)"},
    {"loop_of_an_open_step", "for i in [n, n + 1) step n { call iota(out %out; i) }",
     "for i in [n, n + 1) step n { call iota(out %out; i) }"},
    {"pipeline_of_one", "for i in [0, 1) pipelined 2 { await 0 call iota(out %out; i) signal 1 }",
     "for i in [0, 1) pipelined 2 { await 0 call iota(out %out; 0) signal 1 }"},
    {"loop_of_two", "for i in [n, n + 4) step 3 { call iota(out %out; i) }",
     "for i in [n, n + 4) step 3 { call iota(out %out; i) }"},
    {"false_predicate", "call iota(out %out; 0) if 0", ""},
    {"predicate_of_a_loop", "for i in [0, 4) { call iota(out %out; 0) if i < 9 }",
     "for i in [0, 4) { call iota(out %out; 0) }"},
    {"false_copy", "copy %out(x) = %in(x) if n < n", ""},
    {"check_that_holds", "check 0 <= out.extent0 : \"a\" check 1 <= out.extent0 : \"b\"",
     "check 1 <= out.extent0 : \"b\""},
    {"check_that_never_holds", "check n < n : \"a\"", "check 0 : \"a\""},
    {"check_of_metadata", "allocate %a : i32[0 +: 3] { check a.extent0 <= 3 : \"a\" check a.extent0 <= n : \"b\" }",
     "allocate %a : i32[0 +: 3] { check a.extent0 <= n : \"b\" }"},
    {"dense_strides_of_an_open_extent",
     "allocate %a : i32[0 +: n, 0 +: 3] { check a.stride1 == 4 * max(n, 1) : \"a\" check a.stride1 == n : \"b\" }",
     "allocate %a : i32[0 +: n, 0 +: 3] { check a.stride1 == n : \"b\" }"},
    {"dense_strides_of_a_ring",
     "allocate %a : i32[0 +: 8 fold 3, 0 +: 3] { check a.stride1 == 12 : \"a\" check a.stride1 == n : \"b\" }",
     "allocate %a : i32[0 +: 8 fold 3, 0 +: 3] { check a.stride1 == n : \"b\" }"},
    {"unused_allocation", "allocate %a : i32[0 +: n] { free %a }", ""},
    {"unread_allocation", "allocate %a : i32[0 +: n] { call iota(out %a; 0) copy %a(x) = %in(x) free %a }", ""},
    // What a transfer reads is wanted, also where nobody reads what it writes; what lay there before is not.
    {"unread_transfer",
     "allocate %a : i32[0 +: n] { allocate %b : i32[0 +: n] { call iota(out %a; 0) call iota(out %b; 0) "
     "start %t copy %b(x) = %a(x) wait %t } }",
     "allocate %a : i32[0 +: n] { allocate %b : i32[0 +: n] { call iota(out %a; 0) "
     "start %t copy %b(x) = %a(x) wait %t } }"},
    {"read_by_a_call_that_writes_nothing", "allocate %a : i32[0 +: n] { call iota(out %a; 0) call add1(in %a) }",
     "allocate %a : i32[0 +: n] { call iota(out %a; 0) call add1(in %a) }"},
    {"read_through_a_view",
     "allocate %a : i32[0 +: n] { call iota(out %a; 0) crop %b = %a[0 +: 1] { call add1(in %b, out %out) } }",
     "allocate %a : i32[0 +: n] { call iota(out %a; 0) crop %b = %a[0 +: 1] { call add1(in %b, out %out) } }"},
    {"written_through_a_view",
     "allocate %a : i32[0 +: n] { crop %b = %a[0 +: 1] { call iota(out %b; 0) } call add1(in %a, out %out) }",
     "allocate %a : i32[0 +: n] { crop %b = %a[0 +: 1] { call iota(out %b; 0) } call add1(in %a, out %out) }"},
    {"metadata_are_uses", "allocate %a : i32[0 +: n] { call iota(out %out; a.extent0) }",
     "allocate %a : i32[0 +: n] { call iota(out %out; a.extent0) }"},
    {"unused_crop", "crop %out[3 +: n] { crop %b = %in[1 +: n] { call iota(out %out; 0) } }",
     "crop %out[3 +: n] { call iota(out %out; 0) }"},
    {"unused_views",
     "slice %b = %in[0] { transpose %c = %in[0] { view %d : i32 = %in at 0 [0 +: 1] { call iota(out %out; 0) } } }",
     "call iota(out %out; 0)"},
    {"unused_let", "let c = n * n { call iota(out %out; n) }", "call iota(out %out; n)"},
    {"let", "let a = n { let b = 3 { let c = n * n { call iota(out %out; a + b + c + c) } } }",
     "let c = n * n { call iota(out %out; n + 3 + c + c) }"},
    {"expressions", "for i in [0, 8) { call iota(out %out; i floordiv 8, min(i, 9)) }",
     "for i in [0, 8) { call iota(out %out; 0, i) }"},
};

INSTANTIATE_TEST_SUITE_P(Rules, SimplifyTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(Simplify, RandomProgramsComputeTheSame) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const Program program = parsed(RandomProgram(seed).text());
    const Program simpler = simplify(program);
    ASSERT_TRUE(verify(simpler).ok()) << "seed " << seed << ": " << verify(simpler).error().to_string();
    Data before, after;
    for (Data* data : {&before, &after}) {
      data->add("in", {12, 10});
      data->add("out", {12, 10});
      data->scalar("workers", 2);
    }
    ASSERT_TRUE(interpret(program, before.arguments()).ok());
    const auto result = interpret(simpler, after.arguments());
    ASSERT_TRUE(result.ok()) << "seed " << seed << ": " << result.error().to_string();
    EXPECT_EQ(after["out"], before["out"]) << "seed " << seed;
  }
}

TEST(Simplify, LocalsThatNothingUsesGo) {
  constexpr std::string_view kText = R"(program @locals() {
  input %in : i32 rank 1
  output %out : i32 rank 1
  local %used : i32[0 +: 4]
  local %dead : i32[0 +: 4]
  call add1(in %in, out %used)
  call add1(in %in, out %dead)
  free %dead
  call add1(in %used, out %out)
}
)";
  constexpr std::string_view kLeft = R"(program @locals() {
  input %in : i32 rank 1
  output %out : i32 rank 1
  local %used : i32[0 +: 4]
  call add1(in %in, out %used)
  call add1(in %used, out %out)
}
)";
  EXPECT_EQ(print(simplify(parsed(kText))), kLeft);
  EXPECT_EQ(print(without_dead_stores(parsed(kText))), kLeft);
  EXPECT_EQ(print(without_dead_stores(parsed(kLeft))), kLeft);
}

// What the next run reads is wanted; and a local whose metadata somebody reads stays.
TEST(Simplify, StatesAndLocalsInMetadataStay) {
  constexpr std::string_view kText = R"(program @state() {
  state %kept : i32 rank 1
  output %out : i32 rank 1
  local %first : i32[0 +: 4]
  local %sized : i32[0 +: out.extent0]
  call iota(out %kept; 0)
  call iota(out %out; sized.extent0*sized.stride0)
  call iota(out %first; 0)
}
)";
  std::string left(kText);
  left.erase(left.find("  local %first"), std::string_view("  local %first : i32[0 +: 4]\n").size());
  left.erase(left.find("  call iota(out %first"), std::string_view("  call iota(out %first; 0)\n").size());
  EXPECT_EQ(print(without_dead_stores(parsed(kText))), left);
}

// A chain whose end nobody reads is removed as a whole, together with the views around it.
TEST(Simplify, DeadStoresGoThroughViews) {
  constexpr std::string_view kText = R"(program @chain() {
  input %in : i32 rank 1
  output %out : i32 rank 1
  local %a : i32[0 +: 4]
  local %b : i32[0 +: 4]
  crop %part = %in[0 +: 4] {
    call add1(in %part, out %a)
  }
  crop %whole = %a[0 +: 4] {
    copy %b(x) = %whole(x)
  }
  free %a
  free %b
  call add1(in %in, out %out)
}
)";
  EXPECT_EQ(print(without_dead_stores(parsed(kText))), R"(program @chain() {
  input %in : i32 rank 1
  output %out : i32 rank 1
  call add1(in %in, out %out)
}
)");
}

}  // namespace
}  // namespace tenon::program
