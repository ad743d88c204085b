#include <tenon/program/ir/text.hpp>

#include <gmock/gmock.h>

#include <support_lib/spoilt.hpp>

#include <tenon/program/ir/verify.hpp>

#include "program/kernels.hpp"
#include "program/random_program.hpp"

namespace tenon::program {
namespace {

using namespace program::testing;
using ::testing::HasSubstr;

// Every statement, with each of its options.
constexpr std::string_view kEverything = R"(program @every.statement(n, limit) {
  input %in : i32 rank 2
  constant %weights : f16 rank 4 in dram
  output %out : i32 rank 2
  state %cache : u8 rank 0
  token %load
  local %early : i32[0 +: n, 0 +: in.extent1 fold 4] in scratch align 128 slots limit
  check n <= in.extent0 : "in is \"too\" small"
  let half = n floordiv 2 {
    allocate %tmp : i32[out.min0 - 1 +: half + 2 stride 8, out.min1 +: out.extent1 fold min(4, n)] in scratch align 128 stack slots limit {
      for y in [out.min1, out.extent1 + out.min1) step half parallel run.threads {
        crop %out[_, y +: half] {
          prefetch in %in[0 +: n, half + y +: half] part 2 of 8
          call add1(in %in, out %out)
          prefetch out %out
        }
        crop %strip = %tmp[0 +: half, _] {
          slice %row = %strip[_, y] {}
          transpose %turned = %strip[1, 0] {
            view %line : i32 = %turned at 4*n [0 +: n stride -4] {
              call iota(out %line; half, y) if n as "fill"
            }
          }
        }
      }
      for i in [0, n) pipelined 2 {
        await 0
        start %load copy %tmp[0 +: n, i +: 1](x, y) = %in[0 +: n, 0 +: n](x, -y + 3) pad 0xff00a010
        wait %load
        signal 0
      }
      copy %out(x, y) = %tmp((x + 5*y) mod 8, (x + 5*y) floordiv 8) pad %in[0 +: 4, 1 +: 4] if n as "reshape"
      free %tmp
    }
    call fails()
    call iota(; 3)
  }
}
)";

TEST(Text, PrintsWhatItHasRead) { EXPECT_EQ(print(parsed(kEverything)), kEverything); }

TEST(Text, ReadsWhatItHasPrinted) {
  const KernelTable table = kernels();
  const auto first = parse_program(kEverything, table);
  ASSERT_TRUE(first.ok()) << first.error().to_string();
  const auto second = parse_program(print(*first), table);
  ASSERT_TRUE(second.ok()) << second.error().to_string();
  EXPECT_TRUE(*first == *second);
  EXPECT_TRUE(renumbered(*first) == *first);
}

TEST(Text, BuffersPrintInTheOrderOfTheirUse) {
  Program program{"p", {}, {{"unused", kI32, 1}, {"b", kI32, 0}, {"a", kI32, 0}}, {}, {}};
  program.body = Allocate{{.buffer = 2}, Allocate{{.buffer = 1}, {}}};
  const auto read = parse_program(print(program), {});
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_FALSE(*read == program);
  EXPECT_TRUE(*read == renumbered(program));
}

TEST(Text, CommentsAndLineEndsAreBlanks) {
  const Program program = parsed("program @p(n){ # nothing\n let a =\n n + 1 # more\n {\n } }");
  EXPECT_EQ(print(program), "program @p(n) {\n  let a = n + 1 {}\n}\n");
}

TEST(Text, AStatementPrintsAlone) {
  const Program program = parsed("program @p() { token %t wait %t }");
  EXPECT_EQ(print(program, program.body), "wait %t\n");
}

// Whatever is still accepted prints as a text of the same program.
TEST(Text, SpoiltOnesAreReadOrRefused) {
  tenon::testing::Spoilt texts{
      {std::string(kEverything)},
      tenon::testing::words_of(
          "%in % [ ] { } ( ) +: _ , if as \" \\ # let for free copy floordiv min( run.threads -1 0x "
          "99999999999999999999 9223372036854775807 \n \xff")};
  for (uint64_t seed = 1; seed <= 40; ++seed) texts.good.push_back(RandomProgram(seed).text());
  const KernelTable table = kernels();
  tenon::testing::read_spoilt(texts, 5000, [&](const std::string& text) {
    const auto program = parse_program(text, table, "spoilt");
    if (!program.ok()) {
      EXPECT_TRUE(program.error().message().starts_with("spoilt:")) << program.error().to_string();
      return false;
    }
    (void)verify(*program);
    const std::string printed = print(*program);
    const auto again = parse_program(printed, table);
    EXPECT_TRUE(again.ok()) << again.error().to_string() << "\n" << text << "\nas\n" << printed;
    if (again.ok()) {
      EXPECT_EQ(print(*again), printed) << text;
    }
    return true;
  });
}

struct Wrong {
  const char* text;
  const char* message;
};

class WrongText : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongText, IsNamedWithItsPlace) {
  const auto program = parse_program(GetParam().text, kernels(), "f.tprog");
  ASSERT_FALSE(program.ok());
  EXPECT_THAT(program.error().message(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongText,
    ::testing::Values(
        Wrong{"", "f.tprog:1:1: 'program' is expected"}, Wrong{"program @p() {\n  jump\n}", "f.tprog:2:3: a statement"},
        Wrong{"program @p() { free %a }", "f.tprog:1:21: no buffer is called 'a' up to here"},
        Wrong{"program @p() { call twise() }", "no kernel is called 'twise'; did you mean 'twice'?"},
        Wrong{"program @p() { let min = 1 {} }", "the name of a symbol is expected, not 'min'"},
        Wrong{"program @p() { let a = 1 + {} }", "in the expression here"},
        Wrong{"program @p() { input %a : i33x rank 1 }", "f.tprog:1:27: an element type is expected, not 'i33x'"},
        Wrong{"program @p() { input %a : i32 rank 17 }", "17 is outside of 0 .. 16"},
        Wrong{"program @p() { input %a : i32 rank 1 output %a : i32 rank 1 }", "buffer 'a' is declared before"},
        Wrong{"program @p() { input %a : i32 rank 1 allocate %a : i32[0 +: 1] {} }",
              "'a' is the name of another buffer"},
        Wrong{"program @p() { wait %t }", "no token 't' is declared"},
        Wrong{"program @p() { input %a : i32 rank 1 copy %a(x) = %a(x) pad 0x0 }", "two hexadecimal digits"},
        Wrong{"program @p() { check 1 }", "':' is expected"}, Wrong{"program @p() {", "a statement or '}' is expected"},
        Wrong{"program @p() {} }", "the end of the text is expected"}));

TEST(WrongText, StatementsNestToALimit) {
  std::string text = "program @p() { ";
  for (int i = 0; i < 2000; ++i) text += "for i in [0, 1) { ";
  const auto program = parse_program(text, {});
  ASSERT_FALSE(program.ok());
  EXPECT_THAT(program.error().message(), HasSubstr("more than 400 statements within one another"));
}

}  // namespace
}  // namespace tenon::program
