// How near the memory planner comes to the lower bound, on generated operator graphs, and how long it takes.
//
//   memory_plan_bench [--graphs N] [--most BLOCKS] [--seed S] [--effort E] [--json]
//
// Graph g has the family g mod 8 and the seed S + g; sizes are log-uniform from 10 to BLOCKS. Every plan is verified.
// Times are processor time.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <numeric>

#include <bench/operator_graphs.hpp>
#include <tenon/runtime/memory_plan.hpp>

namespace tenon::bench {
namespace {

struct Options {
  size_t graphs = 1000, most = 5000, effort = PlanOptions().effort;
  uint64_t seed = 1;
  bool json = false;
};

struct Statistics {
  size_t graphs = 0, at_bound = 0;
  double efficiency = 0, worst = 1, seconds = 0, longest = 0;

  void add(const SpacePlan& plan, double time) {
    ++graphs;
    at_bound += plan.bytes == plan.lower_bound_bytes;
    efficiency += plan.efficiency();
    worst = std::min(worst, plan.efficiency());
    seconds += time;
    longest = std::max(longest, time);
  }
  void print(std::string_view name, bool json, bool last) const {
    const double count = static_cast<double>(std::max<size_t>(graphs, 1));
    const char* format = json ? "  {\"family\": \"%.*s\", \"graphs\": %zu, \"at_bound_percent\": %.2f, \"mean_efficiency\": %.5f, "
                                "\"worst_efficiency\": %.4f, \"seconds\": %.2f, \"longest_s\": %.3f}%s\n"
                              : "%-16.*s %5zu graphs, %6.2f%% at the bound, efficiency %.5f (worst %.4f), %.2f s, longest %.3f s%s\n";
    std::printf(format, static_cast<int>(name.size()), name.data(), graphs, 100 * static_cast<double>(at_bound) / count,
                efficiency / count, worst, seconds, longest, json && !last ? "," : "");
  }
};

SpacePlan plan_one(GraphFamily family, size_t blocks, uint64_t seed, const Options& options, double& seconds) {
  const std::vector<OrderNode> nodes = OperatorGraphMaker(family, blocks, seed).make();
  std::vector<size_t> order(nodes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<MemoryBlock> lives;
  for (const Lifetime& life : lifetimes_of_order(nodes, order)) {
    lives.push_back({.bytes = life.bytes, .first = life.first, .last = life.last});
  }
  const std::vector<MemorySpace> spaces = {{.align_bytes = 64}};
  const std::clock_t start = std::clock();
  const auto plan = plan_memory(lives, spaces, {.effort = options.effort});
  seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  TENON_CHECK(plan.ok(), plan.error().to_string());
  const auto sound = verify_plan(lives, spaces, *plan);
  TENON_CHECK(sound.ok(), "seed ", seed, ": ", sound.error().to_string());
  return plan->spaces[0];
}

void run(const Options& options) {
  std::array<Statistics, kGraphFamilies.size()> families;
  Statistics all;
  for (size_t g = 0; g < options.graphs; ++g) {
    const uint64_t seed = options.seed + g;
    const double share = static_cast<double>(std::mt19937_64(seed)() % 10001) / 10000;
    const auto blocks = static_cast<size_t>(10 * std::pow(static_cast<double>(options.most) / 10, share));
    const size_t family = g % families.size();
    double seconds = 0;
    const SpacePlan plan = plan_one(static_cast<GraphFamily>(family), blocks, seed, options, seconds);
    families[family].add(plan, seconds);
    all.add(plan, seconds);
  }
  if (options.json) std::printf("[\n");
  else std::printf("seeds %zu to %zu, 10 to %zu blocks\n", size_t{options.seed}, options.seed + options.graphs - 1, options.most);
  for (size_t i = 0; i < families.size(); ++i) families[i].print(kGraphFamilies[i], options.json, false);
  all.print("all", options.json, true);
  if (options.json) std::printf("]\n");
}

int usage() {
  std::fprintf(stderr, "memory_plan_bench [--graphs N] [--most BLOCKS >= 10] [--seed S] [--effort E] [--json]\n");
  return 2;
}

}  // namespace
}  // namespace tenon::bench

int main(int count, char** words) {
  tenon::bench::Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--json") {
      options.json = true;
      continue;
    }
    if (i + 1 == count) return tenon::bench::usage();
    const size_t value = std::strtoull(words[++i], nullptr, 10);
    if (word == "--graphs") options.graphs = value;
    else if (word == "--most" && value >= 10) options.most = value;
    else if (word == "--seed") options.seed = value;
    else if (word == "--effort") options.effort = value;
    else return tenon::bench::usage();
  }
  tenon::bench::run(options);
  return 0;
}
