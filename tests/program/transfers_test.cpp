// Concurrent transfers in compiled programs: a missing or late wait is detected.
#include <gtest/gtest.h>

#include <tenon/program/exec/bound_program.hpp>
#include <tenon/runtime/thread_pool.hpp>

#include "program/kernels.hpp"

namespace tenon::program {
namespace {

using namespace program::testing;

constexpr int64_t kRows = 10, kSlowSide = 1024;

// Row y + 1 is loaded while row y is used. The first transfer keeps the transfer thread busy, so that those of rows
// happen as late as their waits allow.
std::string double_buffered(const std::string& before_call, const std::string& after_call,
                            const std::string& after_loop, const std::string& after_last, const std::string& at_end) {
  return R"(program @rows() {
    input %in : i32 rank 2
    input %big : i32 rank 2
    output %out : i32 rank 2
    output %sink : i32 rank 2
    token %slow
    token %t
    start %slow copy %sink(x, y) = %big(1023 - x, y)
    allocate %a : i32[0 +: 12, 0 +: 10 fold 2] {
      start %t copy %a[0 +: 12, 0 +: 1](x, y) = %in(x, y)
      for y in [0, 9) {
        start %t copy %a[0 +: 12, y + 1 +: 1](x, y) = %in(x, y)
        )" + before_call + R"(
        call add1(in %a[0 +: 12, y +: 1], out %out[0 +: 12, y +: 1])
        )" + after_call + R"(
      }
      )" + after_loop + R"(
      call add1(in %a[0 +: 12, 9 +: 1], out %out[0 +: 12, 9 +: 1])
      )" + after_last + R"(
    }
    )" + at_end + R"(
  })";
}

class Rows {
 public:
  explicit Rows(const std::string& text) : program_(parsed(text)), pool_(2) {
    data_.add("in", {12, kRows});
    data_.add("out", {12, kRows});
    data_.add("big", {kSlowSide, kSlowSide});
    data_.add("sink", {kSlowSide, kSlowSide});
    auto bound = BoundProgram::bind(program_, data_.arguments(), {.pool = &pool_, .beside_bytes = 0});
    EXPECT_TRUE(bound.ok()) << bound.error().to_string();
    bound_.emplace(*std::move(bound));
  }

  // With different numbers in each run.
  bool runs_right() {
    for (int32_t& v : data_["in"]) v = ++last_;
    if (!bound_->run(data_.arguments()).ok()) return false;
    for (size_t i = 0; i < data_["in"].size(); ++i)
      if (data_["out"][i] != data_["in"][i] + 1) return false;
    return true;
  }

 private:
  Program program_;
  ThreadPool pool_;
  Data data_;
  std::optional<BoundProgram> bound_;
  int32_t last_ = 1000;
};

TEST(Transfers, DoubleBufferingHasTheRightRows) {
  Rows rows(double_buffered("wait %t", "", "wait %t", "", "wait %slow"));
  for (int run = 0; run < 10; ++run) EXPECT_TRUE(rows.runs_right()) << "run " << run;
}

#ifndef __SANITIZE_THREAD__  // what is wrong with these is a race
// Whether a late transfer is late enough depends on the threads: at least one of several runs must show it.
TEST(Transfers, AWaitThatIsMissingOrTooLateIsSeen) {
  const std::vector<std::pair<const char*, std::string>> wrong = {
      {"no wait in the loop", double_buffered("", "", "wait %t", "", "wait %slow")},
      {"no wait for the last row", double_buffered("wait %t", "", "", "", "wait %slow")},
      {"no wait for what nobody reads", double_buffered("wait %t", "", "wait %t", "", "")},
      {"the loop waits behind its call", double_buffered("", "wait %t", "wait %t", "", "wait %slow")},
      {"all waits behind the loop", double_buffered("", "", "for y in [0, 10) { wait %t }", "", "wait %slow")},
      {"the wait for the last row is behind its call", double_buffered("", "wait %t", "", "wait %t", "wait %slow")},
      {"a wait of the other token", double_buffered("wait %slow", "", "wait %t", "", "")},
  };
  for (const auto& [what, text] : wrong) {
    Rows rows(text);
    bool seen = false;
    for (int run = 0; run < 50 && !seen; ++run) seen = !rows.runs_right();
    EXPECT_TRUE(seen) << what;
  }
}
#endif

}  // namespace
}  // namespace tenon::program
