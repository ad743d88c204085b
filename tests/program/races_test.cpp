#include <tenon/program/exec/races.hpp>

#include <gmock/gmock.h>

#include "program/random_program.hpp"

namespace tenon::program {
namespace {

using namespace program::testing;
using ::testing::HasSubstr;

std::string race_in(const std::string& text) {
  Data data;
  data.add("in", {12, 10});
  data.add("out", {12, 10});
  if (text.find("(workers)") != std::string::npos) data.scalar("workers", 3);
  const auto result = check_races(parsed(text), data.arguments());
  return result.ok() ? std::string() : result.error().to_string();
}

// Tiles of two rows, with look-ahead of one, loaded and stored by transfers.
constexpr std::string_view kTiles = R"(program @tiles() {
  input %in : i32 rank 2
  output %out : i32 rank 2
  token %load
  token %store
  allocate %a : i32[0 +: 12, 0 +: 10 fold 4] in scratch {
    allocate %b : i32[0 +: 12, 0 +: 10 fold 4] in scratch {
      start %load copy %a[0 +: 12, 0 +: 2](x, y) = %in(x, y)
      for i in [0, 8) step 2 {
        start %load copy %a[0 +: 12, i + 2 +: 2](x, y) = %in(x, y)
        wait %load
        call add1(in %a[0 +: 12, i +: 2], out %b[0 +: 12, i +: 2])
        start %store copy %out[0 +: 12, i +: 2](x, y) = %b[0 +: 12, i +: 2](x, y)
        wait %store
      }
      wait %load
      call add1(in %a[0 +: 12, 8 +: 2], out %b[0 +: 12, 8 +: 2])
      start %store copy %out[0 +: 12, 8 +: 2](x, y) = %b[0 +: 12, 8 +: 2](x, y)
      wait %store
    }
  }
})";

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n')) lines.emplace_back(line);
  return lines;
}
std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}
bool is_wait(const std::string& line) { return trim(line).starts_with("wait"); }

TEST(Races, TransfersWithTheirWaitsAreInOrder) { EXPECT_EQ(race_in(std::string(kTiles)), ""); }

TEST(Races, EachWaitThatIsMissingIsFound) {
  const auto lines = lines_of(kTiles);
  int removed = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!is_wait(lines[i])) continue;
    auto without = lines;
    without.erase(without.begin() + static_cast<ptrdiff_t>(i));
    EXPECT_NE(race_in(joined(without)), "") << "without line " << i;
    ++removed;
  }
  EXPECT_EQ(removed, 4);
}

// Moved after what it orders, or before the start of the transfer that it ends.
TEST(Races, EachWaitThatIsMovedAcrossWhatItOrdersIsFound) {
  const auto lines = lines_of(kTiles);
  int moved = 0;
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    if (!is_wait(lines[i])) continue;
    // A wait at the end of a body has its neighbour before it.
    const bool at_end = trim(lines[i + 1]) == "}";
    auto changed = lines;
    std::swap(changed[i], changed[at_end ? i - 1 : i + 1]);
    EXPECT_NE(race_in(joined(changed)), "") << "line " << i << " moved";
    ++moved;
  }
  EXPECT_EQ(moved, 4);
}

TEST(Races, BothSidesAreNamed) {
  std::string text(kTiles);
  text.replace(text.find("wait %load\n        call"), 10, "");
  text.replace(text.rfind("wait %load"), 10, "wait %load\n wait %load\n wait %load\n wait %load\n wait %load");
  EXPECT_EQ(
      race_in(text),
      "stage 'add1' reads bytes of 'a' that a transfer of token 'load' writes, and nothing orders the two: wait for "
      "'load' between them\n"
      "  in operand 0 (in 'a')\n"
      "  in call 'add1'\n"
      "  in loop i = 0\n"
      "  in program 'tiles'");
}

TEST(Races, ATransferIntoARowStillInUseIsFound) {
  std::string text(kTiles);
  text.replace(text.find("fold 4"), 6, "fold 3");
  EXPECT_THAT(race_in(text), HasSubstr("'a'"));
}

// Of two transfers under way at once, neither may write what the other touches.
TEST(Races, TransfersUnderWayTogether) {
  const auto with = [](const char* between, const char* behind = "") {
    return race_in(str(R"(program @together() {
      input %in : i32 rank 2
      output %out : i32 rank 2
      token %load
      token %store
      allocate %a : i32[0 +: 12, 0 +: 4] in scratch {
        start %load copy %a[0 +: 12, 0 +: 2](x, y) = %in(x, y)
        wait %load
        start %load copy %a[0 +: 12, 2 +: 2](x, y) = %in(x, y)
        )",
                       between, R"(
        start %store copy %out[0 +: 12, 0 +: 2](x, y) = %a[0 +: 12, 0 +: 2](x, y)
        )",
                       behind, R"(
        wait %store
        wait %load
      }
    })"));
  };
  EXPECT_EQ(with(""), "");
  EXPECT_EQ(with("start %store copy %out[0 +: 12, 2 +: 2](x, y) = %a[0 +: 12, 0 +: 2](x, y) wait %store"), "");
  EXPECT_THAT(with("start %store copy %out[0 +: 12, 2 +: 2](x, y) = %a[0 +: 12, 2 +: 2](x, y) wait %store"),
              HasSubstr("a transfer of token 'store' reads bytes of 'a' that a transfer of token 'load' writes"));
  EXPECT_EQ(with("", "call add1(in %a[0 +: 12, 0 +: 1], out %out[0 +: 12, 2 +: 1])"), "");
  EXPECT_THAT(with("", "call iota(out %a[0 +: 12, 1 +: 1]; 0)"),
              HasSubstr("stage 'iota' writes bytes of 'a' that a transfer of token 'store' reads"));
  EXPECT_THAT(with("start %store copy %a[0 +: 12, 3 +: 1](x, y) = %in(x, y) wait %store"),
              HasSubstr("a transfer of token 'store' writes bytes of 'a' that a transfer of token 'load' writes"));
}

TEST(Races, IterationsThatShareWhatTheyWriteAreFound) {
  const auto with = [](const char* make) {
    return race_in(str(R"(program @workers(workers) {
      input %in : i32 rank 2
      output %out : i32 rank 2
      allocate %a : i32[0 +: 12, 0 +: 10 fold 1])",
                       make, R"( {
        for y in [0, 10) parallel workers {
          call add1(in %in, out %a[0 +: 12, y +: 1])
          call add1(in %a[0 +: 12, y +: 1], out %out[0 +: 12, y +: 1])
        }
      }
    })"));
  };
  EXPECT_EQ(with(" slots workers"), "");
  EXPECT_THAT(
      with(""),
      HasSubstr("stage 'add1' in iteration y = 1 writes bytes of 'a' that stage 'add1' in iteration y = 0 writes"));
}

TEST(Races, IterationsThatShareWhatTheirTransfersWriteAreFound) {
  const auto with = [](const char* make) {
    return race_in(str(R"(program @workers(workers) {
      input %in : i32 rank 2
      output %out : i32 rank 2
      token %load
      allocate %a : i32[0 +: 12, 0 +: 10 fold 1])",
                       make, R"( {
        for y in [0, 10) parallel workers {
          start %load copy %a[0 +: 12, y +: 1](x, z) = %in(x, z)
          wait %load
          call add1(in %a[0 +: 12, y +: 1], out %out[0 +: 12, y +: 1])
        }
      }
    })"));
  };
  EXPECT_EQ(with(" slots workers"), "");
  EXPECT_THAT(with(""),
              HasSubstr("a transfer of token 'load' in iteration y = 1 writes bytes of 'a' that a transfer of "
                        "token 'load' in iteration y = 0 writes"));
}

TEST(Races, StagesOfAPipelineNeedTheirAwait) {
  const auto with = [](const char* before, const char* after) {
    return race_in(str(R"(program @pipeline(workers) {
      input %in : i32 rank 2
      output %out : i32 rank 2
      call add1(in %in[0 +: 12, 0 +: 1], out %out[0 +: 12, 0 +: 1])
      for y in [1, 10) pipelined workers {
        )",
                       before, R"(
        view %last : i32 = %out at (y - 1) * out.stride1 [0 +: 12, y +: 1] {
          call add(in %in, in %last, out %out[0 +: 12, y +: 1])
        }
        )",
                       after, "\n}\n}"));
  };
  EXPECT_EQ(with("await 0", "signal 0"), "");
  EXPECT_EQ(with("await 0", ""), "");  // the end of an iteration is the end of its stages
  EXPECT_THAT(with("", "signal 0"),
              HasSubstr("signal a stage behind the earlier one, and await it before the later one"));
  EXPECT_THAT(with("await 0\nsignal 0", ""), HasSubstr("reads bytes of 'out'"));
  EXPECT_EQ(with("await 1", "signal 0"), "");  // a stage nobody signals ends with its iteration
}

// Both loops are pipelined; the inner one is run by the worker of an iteration of the outer one. Signals and Awaits of
// one do not apply to the other.
TEST(Races, SignalsOfANestedPipelineSpeakOfItAlone) {
  const auto with = [](const char* outer_await, const char* inner_await, const char* inner_signal) {
    return race_in(str(R"(program @nest(workers) {
      input %in : i32 rank 2
      output %out : i32 rank 2
      call add1(in %in[0 +: 12, 0 +: 1], out %out[0 +: 12, 0 +: 1])
      for y in [1, 10) pipelined workers {
        )",
                       outer_await, R"(
        for x in [0, 12) step 4 pipelined workers {
          )",
                       inner_await, R"(
          view %last : i32 = %out at (y - 1) * out.stride1 + x * out.stride0 [x +: 4, y +: 1] {
            call add(in %in[x +: 4, y +: 1], in %last, out %out[x +: 4, y +: 1])
          }
          )",
                       inner_signal, R"(
        }
        signal 0
      }
    })"));
  };
  EXPECT_EQ(with("await 0", "", ""), "");
  EXPECT_EQ(with("await 0", "await 0", "signal 0"), "");
  EXPECT_THAT(with("", "await 0", ""), HasSubstr("nothing orders the two"));
  EXPECT_THAT(with("", "await 0", "signal 0"), HasSubstr("nothing orders the two"));
}

TEST(Races, RandomProgramsHaveNone) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::string text = RandomProgram(seed).text();
    EXPECT_EQ(race_in(text), "") << "seed " << seed << "\n" << text;
  }
}

TEST(Races, RandomProgramsWithoutOneOfTheirWaitsHaveSome) {
  int removed = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto lines = lines_of(RandomProgram(seed).text());
    for (size_t i = 0; i < lines.size(); ++i) {
      if (!is_wait(lines[i])) continue;
      auto without = lines;
      without.erase(without.begin() + static_cast<ptrdiff_t>(i));
      EXPECT_NE(race_in(joined(without)), "") << "seed " << seed << ", line " << i;
      ++removed;
    }
  }
  EXPECT_GT(removed, 50);
}

}  // namespace
}  // namespace tenon::program
