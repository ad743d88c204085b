// Every ONNX backend case found on this machine, run by the reference evaluators.
#include "conformance.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tenon::conformance {

// For GoogleTest's messages.
void PrintTo(const Case& one, std::ostream* out) { *out << one.model; }

namespace {

std::vector<Case> all_cases() {
  const auto folder = default_folder(TENON_BESIDE);
  if (!folder.ok()) return {};
  auto cases = find_cases(*folder);
  return cases.ok() ? *std::move(cases) : std::vector<Case>();
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.suite + "_" + info.param.name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

// Operators that the reference does not support yet. Cases of all others must run.
constexpr std::string_view kLeftForLater[] = {
    "ImageDecoder",  // needs decoders for JPEG, PNG, WebP and other formats
};

bool may_be_unsupported(const Case& one) {
  return !one.fault.empty() ||
         std::find(std::begin(kLeftForLater), std::end(kLeftForLater), one.primary_op) != std::end(kLeftForLater);
}

class Conformance : public testing::TestWithParam<Case> {};

TEST_P(Conformance, Case) {
  const Case& one = GetParam();
  const Outcome outcome = run_case(one, interpreter());
  if (outcome.status == Status::unsupported && may_be_unsupported(one)) GTEST_SKIP() << outcome.reason;
  EXPECT_EQ(outcome.status, Status::passed) << outcome.reason;
}

INSTANTIATE_TEST_SUITE_P(Onnx, Conformance, testing::ValuesIn(all_cases()), test_name);

TEST(ConformanceCases, AreFound) {
  const auto folder = default_folder(TENON_BESIDE);
  ASSERT_TRUE(folder.ok()) << folder.error().to_string();
  EXPECT_GT(all_cases().size(), 1000u) << *folder;
}

TEST(ConformanceCases, MissingFolderIsAnError) {
  const auto cases = find_cases("/nowhere/at/all");
  ASSERT_FALSE(cases.ok());
  EXPECT_EQ(cases.error().code(), Code::not_found);
}

// A comparison that detects nothing would let everything pass.
TEST(CompareOutputs, SeesDifferences) {
  const auto vector = [](const std::vector<float>& values) { return Datum(Tensor::of<float>({2}, values)); };
  const std::vector<Datum> one = {vector({1, 2})}, near = {vector({1.0005f, 2})}, far = {vector({1.01f, 2})};
  EXPECT_EQ(compare_outputs(one, near, {}, false), "");
  EXPECT_NE(compare_outputs(one, far, {}, false), "");
  EXPECT_EQ(compare_outputs(one, far, {}, true), "");  // random: types and shapes only
  EXPECT_NE(compare_outputs({}, one, {}, true), "");
  const std::vector<Datum> shorter = {Datum(Tensor::of<float>({1}, {1}))};
  EXPECT_NE(compare_outputs(one, shorter, {}, true), "");
}

}  // namespace
}  // namespace tenon::conformance
