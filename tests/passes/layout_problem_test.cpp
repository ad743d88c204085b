#include <tenon/passes/layout_problem.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <map>

#include <passes/layout_problem_testing.hpp>
#include <tenon/tensor/layout.hpp>

namespace tenon::testing {
namespace {

using ::testing::HasSubstr;

// The oracle's graphs: f32; a reorder costs the bytes of both sides, a scrub those of the padding.
class Propagate {
 public:
  explicit Propagate(const YAML::Node& graph) {
    for (const auto& entry : graph["tensors"]) {
      const auto name = entry.first.as<std::string>();
      tensors_[name] = problem_.tensors.size();
      problem_.costs.push_back(costs_of(entry.second.as<Dims>()));
      problem_.tensors.push_back({name, problem_.tensors.size(), {}, false});
    }
    for (const auto& input : graph["inputs"]) problem_.tensors[tensors_[input.as<std::string>()]].given = 0;
    for (const auto& node : graph["nodes"]) add(node);
    for (const auto& output : graph["outputs"]) {
      problem_.nodes.push_back({"output", {tensors_[output.as<std::string>()]}, {}, {{{{0, false}}, {}, 0, {}}}});
    }
  }
  const LayoutProblem& problem() const { return problem_; }

  std::multiset<std::string> steps(const LayoutAssignment& assignment) const {
    std::multiset<std::string> texts;
    for (const LayoutAssignment::Step& step : assignment.steps) {
      const std::string& name = problem_.tensors[step.tensor].name;
      texts.insert(step.from == step.to ? str("scrub ", name)
                                        : str("reorder ", name, " ", kLayouts[step.from], "->", kLayouts[step.to]));
    }
    return texts;
  }

 private:
  static constexpr const char* kLayouts[] = {"NCHW", "NHWC", "NCHW{16c}"};
  static size_t layout(const YAML::Node& text) {
    return static_cast<size_t>(std::find(kLayouts, kLayouts + 3, text.as<std::string>()) - kLayouts);
  }

  static LayoutCosts costs_of(const Dims& dims) {
    LayoutCosts costs;
    std::vector<int64_t> bytes;
    for (const char* text : kLayouts) {
      const Layout layout = Layout::parse(text, "NCHW", dims, 32).value();
      bytes.push_back(layout.bytes());
      costs.pads.push_back({layout.padding() > 0, static_cast<double>(layout.padding() * 4), true});
    }
    for (size_t i = 0; i < 9; ++i) {
      costs.reorders.push_back(i / 3 == i % 3 ? 0 : static_cast<double>(bytes[i / 3] + bytes[i % 3]));
    }
    return costs;
  }

  void add(const YAML::Node& row) {
    LayoutProblem::Node node{row["name"].as<std::string>(), {}, {tensors_[row["out"].as<std::string>()]}, {}};
    for (const auto& operand : row["in"]) node.operands.push_back(tensors_[operand.as<std::string>()]);
    for (const auto& impl : row["impls"]) {
      LayoutProblem::Implementation made;
      for (size_t i = 0; i < impl["in"].size(); ++i) {
        made.operands.push_back({layout(impl["in"][i]), impl["needs_zero_pad"][i].as<bool>()});
      }
      made.results = {layout(impl["out"])};
      made.cost = impl["cost"].as<double>();
      const auto pad = impl["out_pad"].as<std::string>();
      made.pad = pad == "zero" ? PadEffect::zero : pad == "same" ? PadEffect::same : PadEffect::dirty;
      node.implementations.push_back(made);
    }
    problem_.nodes.push_back(node);
  }

  std::map<std::string, size_t> tensors_;
  LayoutProblem problem_;
};

TEST(LayoutProblem, Propagate) {
  const YAML::Node file = YAML::LoadFile(TENON_SOURCE_DIR "/tests/fixtures/layout/propagate.yaml");
  ASSERT_EQ(file["graphs"].size(), 5u);
  for (const auto& graph : file["graphs"]) {
    SCOPED_TRACE(graph["name"].as<std::string>());
    const Propagate propagate(graph);
    const auto solved = solve_layouts(propagate.problem());
    ASSERT_TRUE(solved.ok()) << solved.error().to_string();
    EXPECT_EQ(solved->cost, graph["optimum"]["cost"].as<double>());
    EXPECT_TRUE(solved->proven);
    EXPECT_EQ(solved->lower_bound, solved->cost);
    const auto steps = graph["optimum"]["steps"].as<std::vector<std::string>>();
    EXPECT_EQ(propagate.steps(*solved), std::multiset<std::string>(steps.begin(), steps.end()));
    const auto greedy = apply_choice(propagate.problem(), greedy_choice(propagate.problem()));
    ASSERT_TRUE(greedy.ok());
    EXPECT_EQ(greedy->cost, graph["greedy_forward"]["cost"].as<double>());
  }
}

TEST(LayoutProblem, EqualsEnumeration) {
  int scrubs = 0, shared = 0, below_greedy = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    RandomProblemOptions options;
    options.nodes = 2 + seed % 4;
    options.layouts = 2 + seed % 3 / 2;
    const LayoutProblem problem = random_problem(seed, options);
    const auto solved = solve_layouts(problem);
    ASSERT_TRUE(solved.ok()) << solved.error().to_string();
    ASSERT_TRUE(solved->proven);
    ASSERT_EQ(solved->cost, Enumeration(problem).least());
    for (const LayoutAssignment::Step& step : solved->steps) {
      scrubs += step.from == step.to;
      shared += std::count_if(problem.nodes.begin(), problem.nodes.end(), [&](const auto& node) {
                  return std::count(node.operands.begin(), node.operands.end(), step.tensor) > 0;
                }) > 1;
    }
    below_greedy += solved->cost < apply_choice(problem, greedy_choice(problem))->cost;
  }
  EXPECT_GT(scrubs, 100);
  EXPECT_GT(shared, 1000);
  EXPECT_GT(below_greedy, 1000);
}

// With many layouts, what is kept of a tensor is one choice per layout, and the result is the same.
TEST(LayoutProblem, ManyLayouts) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    const LayoutProblem problem = random_problem(seed, {.nodes = 4, .layouts = 9, .reach = 2});
    const auto solved = solve_layouts(problem);
    ASSERT_TRUE(solved.ok()) << solved.error().to_string();
    ASSERT_TRUE(solved->proven);
    ASSERT_EQ(solved->cost, Enumeration(problem).least());
  }
}

TEST(LayoutProblem, LargerOnesAreBetweenBoundAndGreedy) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    const LayoutProblem problem = random_problem(seed, {.nodes = 40 + seed * 10, .layouts = 3, .reach = 1 + seed % 40});
    const auto solved = solve_layouts(problem);
    ASSERT_TRUE(solved.ok()) << solved.error().to_string();
    EXPECT_LE(solved->cost, apply_choice(problem, greedy_choice(problem))->cost);
    EXPECT_LE(solved->lower_bound, solved->cost);
    EXPECT_EQ(solved->proven, solved->lower_bound == solved->cost);
  }
}

// A chain and a ladder of residual blocks need no branching, whatever their length.
TEST(LayoutProblem, ChainsAreSolvedExactly) {
  LayoutProblem problem;
  problem.costs = {{{{}, {true, 5, true}}, {0, 100, 100, 0}}};
  problem.tensors = {{"x", 0, 0, false}};
  for (size_t n = 0; n < 1000; ++n) {
    problem.tensors.push_back({str("t", n), 0, {}, false});
    problem.nodes.push_back({str("n", n), {n}, {n + 1}, {}});
    problem.nodes.back().implementations = {{{{0, false}}, {0}, 3, PadEffect::zero},
                                            {{{1, true}}, {1}, 2, n % 2 == 0 ? PadEffect::zero : PadEffect::dirty}};
  }
  problem.nodes.push_back({"output", {1000}, {}, {{{{0, false}}, {}, 0, {}}}});
  const auto solved = solve_layouts(problem);
  ASSERT_TRUE(solved.ok()) << solved.error().to_string();
  EXPECT_TRUE(solved->proven);
  EXPECT_EQ(solved->cost, 3000);  // 2000 + 200 + 499 scrubs of 5
}

TEST(LayoutProblem, WrongProblemsAreErrors) {
  LayoutProblem problem;
  problem.costs = {{{{}, {}}, {0, 1, std::numeric_limits<double>::infinity(), 0}}};
  problem.tensors = {{"x", 0, 0, false}, {"y", 0, {}, false}};
  problem.nodes = {{"conv", {0}, {1}, {{{{0, false}}, {1}, 1, {}}}}, {"output", {1}, {}, {{{{0, false}}, {}, 0, {}}}}};
  EXPECT_THAT(solve_layouts(problem).error().to_string(), HasSubstr("infinity"));
  EXPECT_THAT(apply_choice(problem, greedy_choice(problem)).error().to_string(),
              HasSubstr("tensor 'y' is made in its layout 1 and wanted in its layout 0"));
  auto wrong = problem;
  wrong.nodes[0].implementations[0].results = {2};
  EXPECT_THAT(solve_layouts(wrong).error().to_string(),
              HasSubstr("node 'conv' has layout 2 of tensor 'y', which has 2"));
  wrong = problem;
  wrong.nodes[0].implementations.clear();
  EXPECT_THAT(solve_layouts(wrong).error().to_string(), HasSubstr("node 'conv' has no implementation"));
  wrong = problem;
  std::swap(wrong.nodes[0], wrong.nodes[1]);
  EXPECT_THAT(solve_layouts(wrong).error().to_string(), HasSubstr("node 'output' reads tensor 1"));
  wrong = problem;
  wrong.nodes[0].implementations[0].cost = -1;
  EXPECT_THAT(solve_layouts(wrong).error().to_string(), HasSubstr("negative"));
}

}  // namespace
}  // namespace tenon::testing
