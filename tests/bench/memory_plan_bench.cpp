// How close the memory planner comes to the lower bound, on generated operator graphs and on models, and how long it
// takes.
//
//   memory_plan_bench [--graphs N] [--most BLOCKS] [--seed S] [--effort E] [--zoo 1] [--models FOLDER]... [--html FILE]
//   [--json]
//
// Graph g has the family g mod 8 and the seed S + g; sizes are log-uniform from 10 to BLOCKS. --zoo: all networks of
// the zoo; --models: every .onnx file below the folder. Models are planned in the order of the file and in the one
// chosen for memory. --html: a picture of the plan with the worst efficiency. Every plan is verified. Times are
// processor time.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>

#include <bench/model_graphs.hpp>
#include <bench/operator_graphs.hpp>
#include <tenon/onnx/import.hpp>
#include <tenon/runtime/memory_picture.hpp>
#include <tenon/runtime/memory_plan.hpp>
#include <zoo/zoo.hpp>

namespace tenon::bench {
namespace {

struct Options {
  size_t graphs = 1000, most = 5000, effort = PlanOptions::kThorough;
  uint64_t seed = 1;
  bool json = false, zoo = false;
  std::vector<std::string> folders;
  std::string html;
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
  Statistics& operator+=(const Statistics& other) {
    graphs += other.graphs;
    at_bound += other.at_bound;
    efficiency += other.efficiency;
    worst = std::min(worst, other.worst);
    seconds += other.seconds;
    longest = std::max(longest, other.longest);
    return *this;
  }
  void print(std::string_view name, bool json, bool last) const {
    const double count = static_cast<double>(std::max<size_t>(graphs, 1));
    const char* format =
        json ? "  {\"family\": \"%.*s\", \"graphs\": %zu, \"at_bound_percent\": %.2f, \"mean_efficiency\": %.5f, "
               "\"worst_efficiency\": %.4f, \"seconds\": %.2f, \"longest_s\": %.3f}%s\n"
             : "%-16.*s %5zu graphs, %6.2f%% at the bound, efficiency %.5f (worst %.4f), %.2f s, longest %.3f s%s\n";
    std::printf(format, static_cast<int>(name.size()), name.data(), graphs, 100 * static_cast<double>(at_bound) / count,
                efficiency / count, worst, seconds, longest, json && !last ? "," : "");
  }
};

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {}

  void graphs() {
    for (size_t g = 0; g < options_.graphs; ++g) {
      const uint64_t seed = options_.seed + g;
      const double share = static_cast<double>(std::mt19937_64(seed)() % 10001) / 10000;
      const auto blocks = static_cast<size_t>(10 * std::pow(static_cast<double>(options_.most) / 10, share));
      const size_t family = g % kGraphFamilies.size();
      const auto nodes = OperatorGraphMaker(static_cast<GraphFamily>(family), blocks, seed).make();
      plan(std::string(kGraphFamilies[family]), str("seed ", seed), nodes, as_given(nodes));
      if ((g + 1) % 100 == 0) std::fprintf(stderr, "%zu of %zu graphs\n", g + 1, options_.graphs);
    }
  }

  void zoo() {
    for (const auto& [name, summary] : zoo::models()) model("zoo", name, zoo::build(name));
  }

  void models(const std::string& folder) {
    std::vector<std::string> files;
    std::error_code problem;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, problem)) {
      if (entry.path().extension() == ".onnx") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    if (files.empty()) std::fprintf(stderr, "%s: skipped: no .onnx file there\n", folder.c_str());
    for (const std::string& file : files) model(folder, file, import_model(file));
  }

  void report() const {
    if (options_.json) std::printf("[\n");
    Statistics all;
    for (const auto& [name, family] : families_) {
      family.print(name, options_.json, false);
      all += family;
    }
    all.print("all", options_.json, true);
    if (options_.json) std::printf("]\n");
    if (!options_.html.empty()) std::ofstream(options_.html) << page_;
  }

 private:
  static std::vector<size_t> as_given(const std::vector<OrderNode>& nodes) {
    std::vector<size_t> order(nodes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    return order;
  }

  void model(const std::string& family, const std::string& name, const Result<std::unique_ptr<Graph>>& graph) {
    if (!graph.ok()) {
      std::fprintf(stderr, "%s: skipped: %s\n", name.c_str(), graph.error().to_string().c_str());
      return;
    }
    const ModelGraph model(**graph);
    if (model.unknown > 0)
      std::fprintf(stderr, "%s: %zu values without a static shape are left out\n", name.c_str(), model.unknown);
    plan(family, name, model.nodes, as_given(model.nodes));
    const auto order = order_for_memory(model.nodes);
    TENON_CHECK(order.ok(), order.error().to_string());
    plan(family, name, model.nodes, order->order);
  }

  void plan(const std::string& family, const std::string& name, const std::vector<OrderNode>& nodes,
            const std::vector<size_t>& order) {
    std::vector<MemoryBlock> lives;
    for (const Lifetime& life : lifetimes_of_order(nodes, order)) {
      lives.push_back({.bytes = life.bytes, .first = life.first, .last = life.last});
    }
    const std::vector<ArenaSpace> spaces = {{.align_bytes = 64}};
    const std::clock_t start = std::clock();
    const auto plan = plan_memory(lives, spaces, {.effort = options_.effort});
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    TENON_CHECK(plan.ok(), plan.error().to_string());
    const auto sound = verify_plan(lives, spaces, *plan);
    TENON_CHECK(sound.ok(), name, ": ", sound.error().to_string());
    families_[family].add(plan->spaces[0], seconds);
    if (!options_.html.empty() && plan->spaces[0].efficiency() <= worst_) {
      worst_ = plan->spaces[0].efficiency();
      page_ = plan_to_html(lives, spaces, *plan, str(family, ": ", name));
    }
  }

  const Options& options_;
  std::map<std::string, Statistics> families_;
  double worst_ = 1;
  std::string page_;
};

void run(const Options& options) {
  if (!options.json)
    std::printf("seeds %zu to %zu, 10 to %zu blocks, effort %zu\n", size_t{options.seed},
                options.seed + options.graphs - 1, options.most, options.effort);
  Bench bench(options);
  bench.graphs();
  if (options.zoo) bench.zoo();
  for (const std::string& folder : options.folders) bench.models(folder);
  bench.report();
}

int usage() {
  std::fprintf(stderr, "memory_plan_bench [--graphs N] [--most BLOCKS >= 10] [--seed S] [--effort E]\n"
                       "  [--zoo 1] [--models FOLDER]... [--html FILE] [--json]\n");
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
    const char* text = words[++i];
    const size_t value = std::strtoull(text, nullptr, 10);
    if (word == "--html") options.html = text;
    else if (word == "--models") options.folders.emplace_back(text);
    else if (word == "--zoo") options.zoo = value != 0;
    else if (word == "--graphs") options.graphs = value;
    else if (word == "--most" && value >= 10) options.most = value;
    else if (word == "--seed") options.seed = value;
    else if (word == "--effort") options.effort = value;
    else return tenon::bench::usage();
  }
  tenon::bench::run(options);
  return 0;
}
