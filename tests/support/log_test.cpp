#include <tenon/support/log.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::CaptureStdout;
using ::testing::internal::GetCapturedStderr;
using ::testing::internal::GetCapturedStdout;

class LogTest : public ::testing::Test {
 protected:
  void TearDown() override { set_log_level(LogLevel::warning); }
  static std::string logged(LogLevel level, std::string_view message) {
    CaptureStderr();
    log(level, message);
    return GetCapturedStderr();
  }
};

TEST_F(LogTest, ShowsWarningsAndErrorsAtStart) {
  EXPECT_EQ(log_level(), LogLevel::warning);
  EXPECT_THAT(logged(LogLevel::error, "one"), HasSubstr("error"));
  EXPECT_THAT(logged(LogLevel::warning, "two"), HasSubstr("two\n"));
  EXPECT_EQ(logged(LogLevel::info, "three"), "");
}

TEST_F(LogTest, FollowsTheLevel) {
  set_log_level(LogLevel::debug);
  EXPECT_THAT(logged(LogLevel::debug, "fine"), HasSubstr("fine"));
  set_log_level(LogLevel::error);
  EXPECT_EQ(logged(LogLevel::warning, "quiet"), "");
  EXPECT_THAT(logged(LogLevel::error, "loud"), HasSubstr("loud"));
}

TEST_F(LogTest, JoinsItsPartsAndTakesBracesForText) {
  CaptureStderr();
  log(LogLevel::warning, "{} {0} ", 42, " {", std::vector<int>{1, 2}, "%s");
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("{} {0} 42 {[1, 2]%s\n"));
}

TEST_F(LogTest, LeavesStandardOutputToResults) {
  CaptureStdout();
  logged(LogLevel::error, "diagnosis");
  EXPECT_EQ(GetCapturedStdout(), "");
}

}  // namespace
}  // namespace tenon
