#include <tenon/program/ir/verify.hpp>

#include <gmock/gmock.h>

#include "program/kernels.hpp"

namespace tenon::program {
namespace {

using namespace program::testing;
using ::testing::HasSubstr;

std::string complaint(const std::string& body) {
  const auto program = parse_program(str(R"(program @p(n) {
    input %in : i32 rank 2
    constant %weights : i32 rank 2
    output %out : i32 rank 2
    token %t
    )",
                                         body, "\n}"),
                                     kernels());
  if (!program.ok()) return program.error().to_string();
  const auto result = verify(*program);
  return result.ok() ? std::string() : result.error().to_string();
}

struct Case {
  const char* name;
  const char* right;  // passes
  const char* wrong;
  const char* message;  // of the latter
};

class VerifyTest : public ::testing::TestWithParam<Case> {};

TEST_P(VerifyTest, AcceptsTheRightOne) { EXPECT_EQ(complaint(GetParam().right), ""); }
TEST_P(VerifyTest, NamesWhatIsWrong) { EXPECT_THAT(complaint(GetParam().wrong), HasSubstr(GetParam().message)); }

constexpr Case kCases[] = {
    {"use_before_write", "allocate %a : i32[0 +: 4] { call iota(out %a; 0) call add1(in %a, inout %a) }",
     "allocate %a : i32[0 +: 4] { call add1(in %a, out %a) }", "'a' is read, and nothing has written it before"},
    {"a_window_is_written_by_an_earlier_iteration",
     "allocate %a : i32[0 +: 4, 0 +: 4] { for i in [0, 4) { call add1(in %a, out %out) call iota(out %a; 0) } }",
     "allocate %a : i32[0 +: 4, 0 +: 4] { for i in [0, 4) { call add1(in %a, out %out) } call iota(out %a; 0) }",
     "'a' is read, and nothing has written it before"},
    {"outputs_are_written_first", "call iota(out %out; 0) call add1(in %out, inout %out)",
     "call add1(in %out, out %out)", "'out' is read, and nothing"},
    {"use_after_free", "allocate %a : i32[0 +: 4] { call iota(out %a; 0) call add1(in %a, inout %a) free %a }",
     "allocate %a : i32[0 +: 4] { call iota(out %a; 0) free %a crop %b = %a[0 +: 1] {} }",
     "buffer 'a' is used after the free of 'a'"},
    {"use_after_end", "allocate %a : i32[0 +: 4] { call iota(out %a; 0) }",
     "allocate %a : i32[0 +: 4] {} call iota(out %a; 0)", "buffer 'a' is not visible here: it is used after its end"},
    {"free_in_a_loop", "for i in [0, n) { allocate %a : i32[0 +: 4] { free %a } }",
     "allocate %a : i32[0 +: 4] { for i in [0, n) { free %a } }",
     "freed inside of a loop that does not hold its allocation"},
    {"write_to_a_constant", "call add1(in %weights, out %out)", "call add1(in %in, out %weights)",
     "'weights' is written, a constant"},
    {"write_to_an_input_through_a_view", "crop %c = %in[0 +: 1, _] { call add1(in %c, out %out) }",
     "crop %c = %in[0 +: 1, _] { call iota(out %c; 0) }", "'c' is written, which is 'in', an input"},
    {"hints_may_leave_the_buffer", "for i in [0, n) { prefetch in %in[i + 9 +: 4, 0 - n +: n] part 1 of 2 }",
     "prefetch in %in[0 +: 4]", "the box of 'in' has 1 ranges, the buffer has rank 2"},
    {"hints_say_what_for", "prefetch out %out", "prefetch inout %out", "a prefetch says in or out"},
    {"hints_are_no_uses", "allocate %a : i32[0 +: 4] { prefetch in %a prefetch out %a }",
     "allocate %a : i32[0 +: 4] { prefetch out %a call add1(in %a, out %out) }",
     "'a' is read, and nothing has written it"},
    {"portions_of_hints", "prefetch in %in part 254 of 255", "prefetch in %in part 2 of 2", "part 2 of 2"},
    {"hints_before_the_end", "allocate %a : i32[0 +: 4] { prefetch in %a }",
     "allocate %a : i32[0 +: 4] {} prefetch in %a", "buffer 'a' is not visible here: it is used after its end"},
    {"boxes_within", "allocate %a : i32[-1 +: n + 2] { for i in [0, n) { call iota(out %a[i - 1 +: 3]; 0) } }",
     "allocate %a : i32[0 +: n] { for i in [0, n) { call iota(out %a[i + n +: 3]; 0) } }",
     "dim 0 of the box leaves 'a'"},
    {"empty_boxes_may_lie_anywhere", "allocate %a : i32[0 +: 4] { call iota(out %a[7 +: 0]; 0) }",
     "allocate %a : i32[0 +: 4] { call iota(out %a[7 +: 1]; 0) }", "dim 0 of the box leaves 'a'"},
    {"boxes_of_crops", "crop %out[3 +: 2, _] { call iota(out %out[max(out.min0, 4) +: 1, out.min1 +: 1]; 0) }",
     "allocate %a : i32[0 +: n] { crop %c = %a[0 +: 5] { call iota(out %c[7 +: 1]; 0) } }",
     "dim 0 of the box leaves 'c'"},
    {"names", "let a = n { check a == n : \"\" }", "check a == n : \"\"", "the symbol a is not known here"},
    {"metadata", "check out.extent1 == n : \"\"", "check out.extent2 == n : \"\"",
     "the symbol out.extent2 is not known here"},
    {"metadata_of_nothing", "check in.min0 == n : \"\"", "check ini.min0 == n : \"\"", "no buffer is called 'ini'"},
    {"symbols_are_bound_once", "for i in [0, n) {} for i in [0, n) {}", "for i in [0, n) { let i = 3 {} }",
     "the symbol i is bound again where it is visible"},
    {"buffers_are_made_once", "allocate %a : i32[] {} allocate %a : i32[] {}",
     "allocate %a : i32[] { allocate %a : i32[] {} }", "buffer 'a' is made again where it is visible"},
    {"rank_of_boxes", "call iota(out %out[0 +: 1, 0 +: 1]; 0)", "call iota(out %out[0 +: 1]; 0)",
     "has 1 ranges, the buffer has rank 2"},
    {"rank_of_maps", "copy %out(x, y) = %in(y, x)", "copy %out(x, y) = %in(x)",
     "the source has rank 2, the map has 1 expressions"},
    {"rank_of_indices", "copy %out(x, y) = %in(y, x)", "copy %out(x) = %in(x, x)",
     "the destination has rank 2, 1 indices"},
    {"padding_bytes", "copy %out(x, y) = %in(y, x) pad 0x00000000", "copy %out(x, y) = %in(y, x) pad 0x0000",
     "the padding has 2 bytes, an element of i32 has 4"},
    {"elements_of_copies", "allocate %a : i32[] { copy %a() = %in(0, 0) }",
     "allocate %a : u8[] { copy %a() = %in(0, 0) }", "the destination has elements of u8, 'in' of i32"},
    {"transposed_dims", "transpose %a = %in[1, 0] {}", "transpose %a = %in[1, 2] {}", "dim 2 of 'in' does not exist"},
    {"extents", "allocate %a : i32[0 +: n * n] {}", "allocate %a : i32[0 +: 0 - 1] {}",
     "has the extent -1, which is negative"},
    {"alignment", "allocate %a : i32[] align 256 {}", "allocate %a : i32[] align 24 {}", "which is no power of two"},
    {"slots", "allocate %a : i32[] slots n {}", "allocate %a : i32[] slots 0 {}", "has 0 slots, at least 1 is needed"},
    {"steps", "for i in [0, 4) step n {}", "for i in [0, 4) step min(n, 0) {}",
     "has the step min(0, n), at least 1 is needed"},
    {"elements_fill_bytes", "allocate %a : i64[] {}", "allocate %a : i4[] {}", "do not fill 1, 2, 4, 8 or 16 bytes"},
    {"tokens_are_waited_for", "start %t copy %out(x, y) = %in(y, x) wait %t", "start %t copy %out(x, y) = %in(y, x)",
     "at the end of the program, 1 transfers of token 't' have not been waited for"},
    {"tokens_are_waited_for_once", "start %t copy %out(x, y) = %in(y, x) wait %t",
     "start %t copy %out(x, y) = %in(y, x) wait %t wait %t", "token 't' is waited for, and no transfer is under way"},
    {"tokens_of_loops", "for i in [0, n) { start %t copy %out(x, y) = %in(y, x) } for i in [0, n) { wait %t }",
     "for i in [0, 5) { start %t copy %out(x, y) = %in(y, x) } for i in [0, 4) { wait %t }",
     "at the end of the program, 1 transfers"},
    {"tokens_of_workers", "for i in [0, n) parallel 2 { start %t copy %out(x, y) = %in(y, x) wait %t }",
     "for i in [0, n) parallel 2 { start %t copy %out(x, y) = %in(y, x) }", "at the end of an iteration of loop i"},
    {"stages", "for i in [0, n) pipelined 2 { await 0 signal 0 }", "for i in [0, n) { await 0 }",
     "await 0 stands in no pipelined loop"},
};

INSTANTIATE_TEST_SUITE_P(Rules, VerifyTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(Verify, SaysWhere) {
  EXPECT_EQ(complaint("for i in [0, n) { crop %c = %in[i +: 1, _] { call iota(out %c; 0) } }"),
            "'c' is written, which is 'in', an input\n"
            "  in operand 0\n"
            "  in 'call iota(out %c; 0)'\n"
            "  in 'crop %c = %in[i +: 1, _] {}'\n"
            "  in 'for i in [0, n) {}'\n"
            "  in program 'p'");
}

TEST(Verify, ProgramsThatTextCannotSay) {
  Program program{"p", {"a", "a"}, {}, {}, {}};
  EXPECT_THAT(verify(program).error().message(), HasSubstr("the name 'a' is taken twice"));
  program = {"p", {"step"}, {}, {}, {}};
  EXPECT_THAT(verify(program).error().message(), HasSubstr("'step' cannot be the name of a scalar"));
  program = {"p", {}, {}, {}, Free{3}};
  EXPECT_THAT(verify(program).error().message(), HasSubstr("buffer number 3 does not exist"));
  program = {"p", {}, {}, {}, Call{}};
  EXPECT_THAT(verify(program).error().message(), HasSubstr("a call has no kernel"));
}

}  // namespace
}  // namespace tenon::program
