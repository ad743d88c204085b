#include <tenon/support/result.hpp>

#include <memory>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Result<int> parse_digit(char c) {
  if (c < '0' || c > '9') return error(Code::parse, "'", c, "' is not a digit");
  return c - '0';
}
Result<void> check_even(int n) {
  if (n % 2 != 0) return error(Code::invalid_argument, n, " is odd");
  return {};
}
Result<int> sum_of_even_digits(std::string_view text) {
  int sum = 0;
  for (const char c : text) {
    TENON_TRY(digit, parse_digit(c), "in '", text, "'");
    TENON_OK(check_even(digit), "digit ", digit);
    sum += digit;
  }
  return sum;
}
Result<std::string> describe(std::string_view text) {
  TENON_TRY(sum, sum_of_even_digits(text), "summing");
  return str("sum ", sum);
}
Result<void> without_frames(char c) {
  TENON_TRY(digit, parse_digit(c));
  TENON_OK(check_even(digit));
  return {};
}

TEST(CodeName, IsUniqueForEveryCode) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(Code::cancelled); ++code)
    names.insert(code_name(static_cast<Code>(code)));
  EXPECT_EQ(names.size(), static_cast<size_t>(Code::cancelled) + 1);
  EXPECT_EQ(names.count("unknown"), 0u);
  EXPECT_EQ(code_name(Code::resource_exhausted), "resource_exhausted");
  EXPECT_EQ(code_name(static_cast<Code>(250)), "unknown");
}

TEST(Error, PrintsItsFramesInnermostFirst) {
  const Error plain(Code::io, "disk full");
  EXPECT_EQ(plain.code(), Code::io);
  EXPECT_EQ(plain.to_string(), "disk full");
  const Error framed = Error(Code::io, "disk full").with_frame("writing a").with_frame("saving b");
  EXPECT_THAT(framed.frames(), ElementsAre("writing a", "saving b"));
  EXPECT_EQ(framed.to_string(), "disk full\n  in writing a\n  in saving b");
}

TEST(Error, TakesAFrameInPlace) {
  Error error(Code::io, "disk full");
  error = std::move(error).with_frame("writing a");
  error = std::move(error).with_frame("saving b");
  EXPECT_EQ(error.to_string(), "disk full\n  in writing a\n  in saving b");
  const Error& same = error;
  error = same;
  EXPECT_EQ(error.message(), "disk full");
}

TEST(Error, CopiesAreApartAndAMovedOneSaysSo) {
  Error error(Code::io, "disk full");
  Error copy = error;
  copy = std::move(copy).with_frame("writing a");
  EXPECT_THAT(error.frames(), IsEmpty());
  const Error taken = std::move(error);
  EXPECT_EQ(taken.code(), Code::io);
  EXPECT_EQ(error.code(), Code::internal);  // NOLINT: this is what is tested
  EXPECT_EQ(error.to_string(), "an error that was moved away");
  EXPECT_EQ(std::move(error).with_frame("here").to_string(), "an error that was moved away\n  in here");
}

TEST(Result, IsOnePointerWiderThanItsValueAtMost) {
  EXPECT_LE(sizeof(Result<void>), 2 * sizeof(void*));
  EXPECT_LE(sizeof(Result<void*>), 2 * sizeof(void*));
}

TEST(Result, MacrosPassTheValueOn) {
  const auto good = describe("246");
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(*good, "sum 12");
  EXPECT_TRUE(without_frames('4').ok());
}

TEST(Result, MacrosAddOneFrameALevel) {
  const auto not_digit = describe("2x");
  ASSERT_FALSE(not_digit.ok());
  EXPECT_EQ(not_digit.error().code(), Code::parse);
  EXPECT_EQ(not_digit.error().message(), "'x' is not a digit");
  EXPECT_THAT(not_digit.error().frames(), ElementsAre("in '2x'", "summing"));
  EXPECT_EQ(describe("23").error().to_string(), "3 is odd\n  in digit 3\n  in summing");
}

TEST(Result, MacrosWithoutPartsAddNoFrame) {
  EXPECT_THAT(without_frames('x').error().frames(), IsEmpty());
  EXPECT_EQ(without_frames('3').error().to_string(), "3 is odd");
}

TEST(Result, MovesValuesThatCannotBeCopied) {
  const auto make = [](bool good) -> Result<std::unique_ptr<int>> {
    if (!good) return error(Code::not_found, "none");
    return std::make_unique<int>(7);
  };
  const auto use = [&](bool good) -> Result<int> {
    TENON_TRY(pointer, make(good));
    return *pointer;
  };
  EXPECT_EQ(use(true).value(), 7);
  EXPECT_FALSE(use(false).ok());
  std::unique_ptr<int> moved = *make(true);
  EXPECT_EQ(*moved, 7);
}

TEST(Result, ConvertsFromWhatItsValueConvertsFrom) {
  const auto text = []() -> Result<std::string> { return "literal"; }();
  EXPECT_EQ(text->size(), 7u);
  struct Base {
    virtual ~Base() = default;
  };
  struct Derived : Base {};
  const Result<std::unique_ptr<Base>> base = std::make_unique<Derived>();
  EXPECT_NE(dynamic_cast<Derived*>(base.value().get()), nullptr);
  const Result<bool> refused = Error(Code::io, "an error is never a bool");
  EXPECT_FALSE(refused.ok());
  EXPECT_FALSE(static_cast<bool>(refused));
}

TEST(Result, IsChangedThroughItsReference) {
  Result<std::vector<int>> list = std::vector<int>{1};
  list->push_back(2);
  (*list).push_back(3);
  list.value().push_back(4);
  EXPECT_THAT(list.value(), ElementsAre(1, 2, 3, 4));
}

TEST(ResultDeathTest, AskingForWhatIsNotThereAbortsWithTheReason) {
  const Result<int> failed = error(Code::io, "disk full");
  EXPECT_DEATH((void)failed.value(), "value of a failed Result: disk full");
  const Result<int> good = 1;
  EXPECT_DEATH((void)good.error(), "error of a Result that holds a value");
  const Result<void> done;
  EXPECT_DEATH((void)done.error(), "error of a Result that holds a value");
}

TEST(CheckDeathTest, SaysTheSentenceTheConditionAndThePlace) {
  const int n = 3;
  TENON_CHECK(n == 3, "never printed");
  EXPECT_DEATH(TENON_CHECK(n == 4, "n is ", n), "tenon: n is 3 \\(n == 4\\) at .*result_test.cpp:[0-9]+");
}

}  // namespace
}  // namespace tenon
