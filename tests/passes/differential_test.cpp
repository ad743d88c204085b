// Random graphs compute the same before and after each pass.
#include <gtest/gtest.h>

#include <cmath>

#include <support_lib/random_ops.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/passes/standard.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon::testing {
namespace {

// Equal bits; a NaN equals any NaN.
bool alike(const Tensor& a, const Tensor& b) {
  if (a.element() != b.element() || a.dims() != b.dims()) return false;
  if (!a.element().is_float()) return a.identical(b);
  for (int64_t i = 0; i < a.size(); ++i) {
    const double x = a.double_at(i), y = b.double_at(i);
    if (std::isnan(x) ? !std::isnan(y) : x != y || std::signbit(x) != std::signbit(y)) return false;
  }
  return true;
}

Result<PassManager> manager_of(const std::string& pass) {
  if (pass == "standard") return standard_passes();
  PassManager manager(pass);
  TENON_OK(manager.add(std::string_view(pass)));
  return manager;
}

struct Tally {
  int changed = 0, run = 0;
};

void compare(const Graph& before, const std::string& pass, uint64_t seed, Tally& tally) {
  const auto manager = manager_of(pass);
  ASSERT_TRUE(manager.ok()) << manager.error().to_string();
  const auto after = before.clone();
  const auto report = manager->run(*after, {.verify_each = true});
  ASSERT_TRUE(report.ok()) << report.error().to_string() << "\n" << print(before);

  tally.changed += !same_graph(before, *after);
  ASSERT_EQ(before.body().output_count(), after->body().output_count());
  for (size_t i = 0; i < before.body().output_count(); ++i) {
    EXPECT_EQ(before.body().output_name(i), after->body().output_name(i));
    const auto merged = merge(before.body().output(i)->type(), after->body().output(i)->type());
    EXPECT_TRUE(merged.ok()) << merged.error().to_string();
  }
  const auto inputs = random_inputs(before, seed);
  const auto first = Interpreter::prepare(before), second = Interpreter::prepare(*after);
  ASSERT_TRUE(first.ok()) << first.error().to_string();
  ASSERT_TRUE(second.ok()) << second.error().to_string();
  const auto wanted = (*first)->run(inputs), got = (*second)->run(inputs);
  if (!wanted.ok()) return;  // extents that turn out not to go together
  ++tally.run;
  ASSERT_TRUE(got.ok()) << got.error().to_string() << print(before) << print(*after);
  for (size_t i = 0; i < wanted->size(); ++i) {
    EXPECT_TRUE(alike((*wanted)[i].tensor(), (*got)[i].tensor()))
        << "output " << i << " ('" << before.body().output_name(i) << "') before:\n"
        << print(before) << "after:\n"
        << print(*after);
  }
}

std::unique_ptr<Graph> usual_graph(uint64_t seed) {
  RandomGraphOptions options;
  options.seed = seed;
  options.use = usual_operators();
  if (find_op("If")) options.branch = "If";
  return random_graph(options);
}

class Differential : public ::testing::TestWithParam<std::string> {};

TEST_P(Differential, MeansTheSame) {
  constexpr uint64_t kGraphs = 100;
  Tally tally;
  for (uint64_t seed = 0; seed < kGraphs && !HasFailure(); ++seed) {
    SCOPED_TRACE(str("pass ", GetParam(), ", seed ", seed));
    const auto graph = usual_graph(seed);
    const auto verified = verify(*graph);
    ASSERT_TRUE(verified.ok()) << verified.error().to_string();
    compare(*graph, GetParam(), seed, tally);
  }
  EXPECT_GE(tally.changed, 10) << "the graphs hardly ever hold what the pass looks for";
  EXPECT_GE(tally.run, 50) << "most graphs cannot run";
}

TEST(StandardPasses, LeaveNothingThatTheirTurnsWouldChange) {
  const auto passes = standard_passes();
  ASSERT_TRUE(passes.ok()) << passes.error().to_string();
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const auto graph = usual_graph(seed);
    ASSERT_TRUE(passes->run(*graph).ok());
    for (const char* pass :
         {"narrow-constants", "share-common", "simplify-algebra", "fold-constants", "inline-branch", "remove-identity",
          "remove-dead"}) {
      const auto change = find_pass(pass)->run(*graph);
      ASSERT_TRUE(change.ok()) << change.error().to_string();
      ASSERT_EQ(*change, Change::no) << pass << ", seed " << seed << "\n" << print(*graph);
    }
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Passes, Differential,
                         ::testing::Values("standard", "remove-identity", "simplify-algebra", "fold-constants",
                                           "fold-transpose", "fold-reshape", "inline-branch", "share-common"),
                         test_name);

}  // namespace
}  // namespace tenon::testing
