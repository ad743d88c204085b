// Copy forwarding, text in and text out, and the bytes of programs before and after it.
#include <tenon/program/pipeline/forward_copies.hpp>

#include <program/pipeline_support.hpp>

#include <tenon/program/ir/verify.hpp>

#include "program/kernels.hpp"

namespace tenon::program {
namespace {

using testing::parsed;

std::string with_head(const std::string& body) {
  return "program @p() {\n  input %x : i32 rank 2\n  output %y : i32 rank 2\n  state %s : i32 rank 2\n" + body + "}\n";
}

struct Case {
  const char* name;
  const char* before;
  const char* after;  // null: the same
};

constexpr Case kCases[] = {
    {"transposed_and_cropped",
     "local %t : i32[0 +: 4, 0 +: 3] copy %t(i, j) = %x(j, i) copy %y(i, j) = %t(j, i + 1) free %t",
     "local %t : i32[0 +: 4, 0 +: 3] copy %t(i, j) = %x(j, i) copy %y(i, j) = %x(i + 1, j) free %t"},
    {"read_by_two",
     "local %t : i32[0 +: 4, 0 +: 3] copy %t(i, j) = %x(j, i) copy %y(i, j) = %t(i, j) copy %s(i, j) = %t(i, 2) free "
     "%t",
     "local %t : i32[0 +: 4, 0 +: 3] copy %t(i, j) = %x(j, i) copy %y(i, j) = %x(j, i) copy %s(i, j) = %x(2, i) free "
     "%t"},
    {"a_chain",
     "local %t : i32[0 +: 3, 0 +: 3] local %u : i32[0 +: 3, 0 +: 3] copy %t(i, j) = %x(j, i) copy %u(i, j) = %t(2 - i, "
     "j) copy %y(i, j) = %u(j, i) free %t free %u",
     "local %t : i32[0 +: 3, 0 +: 3] local %u : i32[0 +: 3, 0 +: 3] copy %t(i, j) = %x(j, i) copy %u(i, j) = %x(j, 2 - "
     "i) copy %y(i, j) = %x(i, 2 - j) free %t free %u"},
    // The source is written before the last reader, or by it.
    {"changed_source",
     "local %t : i32[0 +: 4, 0 +: 3] copy %t(i, j) = %s(j, i) copy %s(i, j) = %x(i, j) copy %y(i, j) = %t(j, i) free "
     "%t",
     nullptr},
    {"changed_later",
     "local %t : i32[0 +: 4, 0 +: 3] copy %t(i, j) = %s(j, i) copy %y(i, j) = %t(j, i) copy %s(i, j) = %x(i, j) free "
     "%t",
     "local %t : i32[0 +: 4, 0 +: 3] copy %t(i, j) = %s(j, i) copy %y(i, j) = %s(i, j) copy %s(i, j) = %x(i, j) free "
     "%t"},
    {"copied_back", "local %t : i32[0 +: 4, 0 +: 3] copy %t(i, j) = %s(j, i) copy %s(i, j) = %t(j, i) free %t",
     nullptr},
    // Others read or write the local.
    {"read_by_a_call",
     "local %t : i32[0 +: 4, 0 +: 3] copy %t(i, j) = %x(j, i) copy %y(i, j) = %t(j, i) call add1(in %t, out %s) free "
     "%t",
     nullptr},
    {"read_through_a_view",
     "local %t : i32[0 +: 4, 0 +: 3] copy %t(i, j) = %x(j, i) crop %c = %t[0 +: 2, _] { copy %y(i, j) = %c(j, i) } "
     "free "
     "%t",
     nullptr},
    {"written_twice",
     "local %t : i32[0 +: 4, 0 +: 3] copy %t(i, j) = %x(j, i) copy %t(i, j) = %s(j, i) copy %y(i, j) = %t(j, i) free "
     "%t",
     nullptr},
    // Not all of the local is what the source has there, or not always.
    {"padded",
     "local %t : i32[0 +: 4, 0 +: 3] copy %t(i, j) = %x(j, i) pad 0x00000000 copy %y(i, j) = %t(j, i) free %t",
     nullptr},
    {"reader_is_padded",
     "local %t : i32[0 +: 4, 0 +: 3] copy %t(i, j) = %x(j, i) copy %y(i, j) = %t(j, i) pad 0x00000000 free %t",
     nullptr},
    {"in_a_loop",
     "local %t : i32[0 +: 4, 0 +: 3] for k in [0, 2) { copy %t(i, j) = %x(j, i + k) copy %y(i, j) = %t(j, i) } free %t",
     nullptr},
    // A local that was freed lives on where it is no larger than the one that is read no more.
    {"freed_and_not_larger",
     "local %a : i32[0 +: 3, 0 +: 4] local %t : i32[0 +: 4, 0 +: 3] call add1(in %x, out %a) copy %t(i, j) = %a(j, i) "
     "free %a copy %y(i, j) = %t(j, i) free %t",
     "local %a : i32[0 +: 3, 0 +: 4] local %t : i32[0 +: 4, 0 +: 3] call add1(in %x, out %a) copy %t(i, j) = %a(j, i) "
     "copy %y(i, j) = %a(i, j) free %a free %t"},
    {"freed_and_larger",
     "local %a : i32[0 +: 3, 0 +: 5] local %t : i32[0 +: 4, 0 +: 3] call add1(in %x, out %a) copy %t(i, j) = %a(j, i) "
     "free %a copy %y(i, j) = %t(j, i) free %t",
     nullptr},
};

class ForwardCopies : public ::testing::TestWithParam<Case> {};

TEST_P(ForwardCopies, ReadsTheFirstSource) {
  const Program before = parsed(with_head(GetParam().before));
  ASSERT_TRUE(verify(before).ok()) << verify(before).error().to_string();
  const Program made = forward_copies(before);
  EXPECT_EQ(print(made), print(parsed(with_head(GetParam().after ? GetParam().after : GetParam().before))));
  ASSERT_TRUE(verify(made).ok()) << verify(made).error().to_string();
}

INSTANTIATE_TEST_SUITE_P(All, ForwardCopies, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// What the copies give stays.
TEST(ForwardCopies, KeepsTheBytes) {
  for (const Case& one : kCases) {
    if (!one.after || std::string_view(one.before).find("call") != std::string_view::npos) continue;
    const Program before = parsed(with_head(one.before));
    std::vector<std::vector<int32_t>> made;
    for (const Program& program : {before, forward_copies(before)}) {
      Array<int32_t> x({4, 4}), y({2, 3}), s({3, 4});
      x.fill_pattern(1), s.fill_pattern(2);
      const auto ran = interpret(program, {{{"x", x.argument()}, {"y", y.argument()}, {"s", s.argument()}}, {}});
      ASSERT_TRUE(ran.ok()) << one.name << ": " << ran.error().to_string();
      std::vector<int32_t>& bytes = made.emplace_back();
      for_each_index({0, 0}, {2, 3}, [&](const Index& i) { bytes.push_back(y.at(i)); });
      for_each_index({0, 0}, {3, 4}, [&](const Index& i) { bytes.push_back(s.at(i)); });
    }
    EXPECT_EQ(made[0], made[1]) << one.name;
  }
}

}  // namespace
}  // namespace tenon::program
