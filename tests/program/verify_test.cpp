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
    {"waits_of_workers",
     "start %t copy %out(x, y) = %in(y, x) for i in [0, n) { start %t copy %out(x, y) = %in(y, x) wait %t } wait %t",
     "start %t copy %out(x, y) = %in(y, x) for i in [0, n) parallel 2 { wait %t } wait %t",
     "token 't' is waited for, and no transfer is under way"},
    {"stages", "for i in [0, n) pipelined 2 { await 0 signal 0 }", "for i in [0, n) { await 0 }",
     "await 0 stands in no pipelined loop"},
    {"stages_behind_a_pipeline", "for i in [0, n) pipelined 2 { for j in [0, n) { signal 0 } }",
     "for i in [0, n) pipelined 2 { signal 0 } signal 0", "signal 0 stands in no pipelined loop"},
    {"ranks_of_crops", "crop %c = %in[_, _] {}", "crop %c = %in[_] {}",
     "buffer 'in' has rank 2, the statement gives it 1 dims"},
    {"ranks_of_slices", "slice %c = %in[0, _] {}", "slice %c = %in[0] {}",
     "buffer 'in' has rank 2, the statement gives it 1 dims"},
    {"ranks_of_views_under_the_same_name", "transpose %in[1, 0] {}", "transpose %in[1] {}",
     "buffer 'in' has rank 2, the statement gives it 1 dims"},
    {"free_of_an_allocation", "allocate %a : i32[] { free %a }", "free %in",
     "'in' is no allocation around this statement"},
    {"free_of_a_view", "allocate %a : i32[] { free %a }",
     "allocate %a : i32[0 +: 4] { crop %c = %a[0 +: 1] { free %c } }", "'c' is no allocation around this statement"},
    {"allocated_again",
     "allocate %a : i32[0 +: 4] { call iota(out %a; 0) free %a } "
     "allocate %a : i32[0 +: 4] { call iota(out %a; 0) call add1(in %a, out %out) }",
     "allocate %a : i32[0 +: 4] { call iota(out %a; 0) free %a } "
     "allocate %a : i32[0 +: 4] { call add1(in %a, out %out) }",
     "'a' is read, and nothing has written it before"},
    {"a_window_is_written_through_views_by_an_earlier_iteration",
     "allocate %a : i32[0 +: 4] { for i in [0, 4) { call add1(in %a, out %out) "
     "crop %b = %a[0 +: 2] { crop %c = %b[0 +: 1] { call iota(out %c; 0) } } } }",
     "allocate %a : i32[0 +: 4] { for i in [0, 4) { call add1(in %a, out %out) "
     "crop %b = %a[0 +: 2] { crop %c = %b[0 +: 1] { call add1(in %c, out %out) } } } }",
     "'a' is read, and nothing has written it before"},
    {"sources_of_copies", "allocate %a : i32[0 +: 4] { copy %a(x) = %in(x, 0) copy %out(x, y) = %a(x) }",
     "allocate %a : i32[0 +: 4] { copy %out(x, y) = %a(x) }", "'a' is read, and nothing has written it before"},
    {"destinations_of_copies", "copy %out(x, y) = %in(y, x)", "copy %in(x, y) = %weights(y, x)",
     "'in' is written, an input"},
    {"indices_of_copies", "copy %out(x, y) = %in(y, x) copy %out(x, y) = %in(x, y)", "copy %out(x, n) = %in(x, x)",
     "the symbol n is bound again where it is visible"},
    {"indices_are_known_in_the_map", "copy %out(x, y) = %in(y, x)", "copy %out(x, y) = %in(y, x) check x < 1 : \"\"",
     "the symbol x is not known here"},
    {"names_in_maps", "copy %out(x, y) = %in(y, x + n)", "copy %out(x, y) = %in(y, z)",
     "the symbol z is not known here"},
    {"names_in_predicates_of_copies", "copy %out(x, y) = %in(y, x) if n", "copy %out(x, y) = %in(y, x) if z",
     "the symbol z is not known here"},
    {"padding_is_written", "copy %out(x, y) = %in(y, x) pad %weights",
     "allocate %p : i32[] { copy %out(x, y) = %in(y, x) pad %p }", "'p' is read, and nothing has written it before"},
    {"elements_of_padding", "allocate %p : i32[] { call iota(out %p; 0) copy %out(x, y) = %in(y, x) pad %p }",
     "allocate %p : u8[] { call iota(out %p; 0) copy %out(x, y) = %in(y, x) pad %p }",
     "the destination has elements of i32, 'p' of u8"},
    {"ranks_of_padding", "allocate %p : i32[] { call iota(out %p; 0) copy %out(x, y) = %in(y, x) pad %p }",
     "allocate %p : i32[0 +: 4] { call iota(out %p; 0) copy %out(x, y) = %in(y, x) pad %p }",
     "the padding 'p' has rank 1: 0 or 2 are possible"},
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
  program.body = Call{.kernel = std::make_shared<const Kernel>()};
  EXPECT_THAT(verify(program).error().message(), HasSubstr("a call has no kernel"));
  program.body = DmaWait{0};
  EXPECT_THAT(verify(program).error().message(), HasSubstr("token number 0 does not exist: there are 0"));
  program.body = DmaWait{3};
  EXPECT_THAT(verify(program).error().message(), HasSubstr("token number 3 does not exist: there are 0"));
  program.body = Let{"step", 0, {}};
  EXPECT_THAT(verify(program).error().message(), HasSubstr("'step' cannot be the name of a symbol"));
  for (const int stage : {-1, kMostStages + 1}) {
    program.body = Loop{.symbol = "i", .begin = 0, .end = 4, .kind = LoopKind::pipelined, .body = Signal{stage}};
    EXPECT_THAT(verify(program).error().message(), HasSubstr(str("signal ", stage, ": stages are 0 to ", kMostStages)));
  }
  program = {"p", {}, {}, {"1"}, {}};
  EXPECT_THAT(verify(program).error().message(), HasSubstr("'1' cannot be the name of a token"));
}

TEST(Verify, BuffersThatTextCannotSay) {
  const auto said = [](std::vector<Buffer> buffers, Statement body, std::vector<Allocation> locals = {}) {
    const auto result = verify({"p", {}, std::move(buffers), {}, std::move(body), std::move(locals)});
    return result.ok() ? std::string() : result.error().message();
  };
  const Buffer out{"out", kI32, 1, Role::output, "host"}, a{"a", kI32, 1, Role::local, "host"};
  for (const int rank : {0, kMaxRank}) EXPECT_EQ(said({{"b", kI32, rank, Role::input, "host"}}, {}), "");
  for (const int rank : {-1, kMaxRank + 1})
    EXPECT_EQ(said({{"b", kI32, rank, Role::input, "host"}}, {}),
              str("buffer 'b' has rank ", rank, ", 0 to ", kMaxRank, " are possible"));
  const Allocation of_a{.buffer = 1, .dims = {{0, 4, {}, {}}}}, of_out{.buffer = 0, .dims = {{0, 4, {}, {}}}};
  EXPECT_EQ(said({out, a}, Allocate{of_a, {}}), "");
  EXPECT_EQ(said({out, a}, Allocate{of_out, {}}), "'out' is declared, and cannot be made by a statement");
  EXPECT_EQ(said({out, a}, Allocate{{.buffer = 1}, {}}), "buffer 'a' has rank 1, the statement gives it 0 dims");
  EXPECT_EQ(said({out, a}, {}, {of_a}), "");
  EXPECT_EQ(said({out, a}, {}, {of_a, of_a}), "'a' is a local twice");
  EXPECT_EQ(said({out, a}, {}, {of_out}), "'out' is declared, and cannot be made by a statement");
  Allocation aligned = of_a;
  aligned.align_bytes = -64;
  EXPECT_EQ(said({out, a}, Allocate{aligned, {}}), "'a' is aligned to -64 bytes, which is no power of two");
  const Buffer bytes{"a", kU8, 1, Role::local, "host"};
  const Crop crop{1, 0, {std::nullopt}, {}};
  EXPECT_EQ(said({out, a}, crop), "");
  EXPECT_EQ(said({out, bytes}, crop), "'a' has elements of u8, its source 'out' of i32");
}

// As many as text may have; one more could end the stack of what walks them.
TEST(Verify, Depth) {
  const auto said = [](int depth) {
    Statement body;
    for (int i = 0; i < depth; ++i) body = Let{str("a", i), 0, body};
    const auto result = verify({"p", {}, {}, {}, body});
    return result.ok() ? std::string() : result.error().message();
  };
  EXPECT_EQ(said(kMaxDepth), "");
  EXPECT_EQ(said(kMaxDepth + 1), str("more than ", kMaxDepth, " statements within one another"));
}

}  // namespace
}  // namespace tenon::program
