// Operators and small graphs on tensors larger than the caches, compared with only moving the same arrays: medians of
// interleaved runs. The slowest compared with movement come last; an operator that was never timed may be a hundred
// times slower than necessary.
//
//   operators_bench [--target x86-avx512] [--threads 1] [--rounds 5] [--elements 16777216] [--filter RE] [--above
//   RATIO]
//   [--json]
//
// "elsewhere": the target runs not all of it.
#include <algorithm>
#include <cstdio>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <tenon/compile/compile.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/runtime/thread_pool.hpp>
#include <tenon/support/median.hpp>
#include <tenon/support/str.hpp>

#include "bench/hand_loops.hpp"
#include "bench/interleaved.hpp"
#include "bench/operators_bench_cases.hpp"
#include "bench/random_input.hpp"

namespace tenon::bench {
namespace {

struct Options {
  std::string target = "x86-avx512", filter = ".*";
  int threads = 1, rounds = 5;
  int64_t elements = int64_t{1} << 24;
  double above = 0;
  bool json = false;
};

struct Row {
  std::string name;
  double us = 0, move_us = 0;
  size_t bytes = 0;
  bool elsewhere = false;
  double ratio() const { return us / move_us; }
};

// Pieces of 1 KB of the largest array.
constexpr int64_t kPiece = 1024;

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), pool_(options.threads) {}

  Row run(const OperatorCase& c) {
    Row row{.name = c.name};
    const auto compiled = [&](bool whole) {
      return compile(must(parse_graph(c.graph, c.name), c.name), registry_,
                     {.targets = {options_.target}, .no_fallback = whole});
    };
    auto model = compiled(true);
    row.elsewhere = !model.ok();
    if (row.elsewhere) model = compiled(false);
    const auto runs = must(std::move(model), c.name);
    const RunOptions run{.parallel = &pool_};
    std::vector<Datum> inputs;
    std::vector<const void*> in;
    std::vector<void*> out;
    std::vector<int64_t> extents = {0};
    for (const ValueInfo& input : runs->inputs()) {
      Tensor tensor = random_input(input.type, random_);
      in.push_back(tensor.data());
      extents.push_back(static_cast<int64_t>(tensor.bytes()));
      inputs.emplace_back(std::move(tensor));
    }
    std::vector<Datum> outputs = must(runs->run(inputs, run), c.name);
    std::vector<Tensor> moved;
    for (const Datum& output : outputs) {
      const Tensor& tensor = output.tensor();
      moved.push_back(must(Tensor::allocate(tensor.element(), tensor.dims()), c.name));
      out.push_back(moved.back().mutable_data());
      extents.push_back(static_cast<int64_t>(tensor.bytes()));
    }
    for (const int64_t bytes : extents) row.bytes += static_cast<size_t>(bytes);
    extents[0] = std::max<int64_t>(1, *std::ranges::max_element(extents) / kPiece);
    const Arrays all{in, out, extents};

    const auto bound = must(runs->bind(inputs, outputs, run), c.name);
    std::vector<Runner> runners;
    runners.push_back({"tenon", [&] { must(bound->run(), c.name); }});
    for (const HandLoop loop : move_side_by_side()) {
      runners.push_back({"move", [&, loop] {
                           if (options_.threads == 1) return loop(all, 0, extents[0]);
                           pool_.run(extents[0], (extents[0] + options_.threads - 1) / options_.threads,
                                     [&](int64_t begin, int64_t end) { loop(all, begin, end); });
                         }});
    }
    measure(runners, options_.rounds, options_.threads == 1, random_);
    row.us = median(runners[0].us);
    row.move_us = median(runners[1].us);
    for (size_t i = 2; i < runners.size(); ++i) row.move_us = std::min(row.move_us, median(runners[i].us));
    return row;
  }

 private:
  const Options& options_;
  ThreadPool pool_;
  TargetRegistry registry_;
  std::mt19937 random_{7};
};

void print(const Row& row) {
  std::printf("%-64s %10.0f %8.1f %8.2f%s\n", row.name.c_str(), row.us, static_cast<double>(row.bytes) / row.us * 1e-3,
              row.ratio(), row.elsewhere ? " elsewhere" : "");
  std::fflush(stdout);
}

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Operators beyond the caches against the movement of their arrays"};
  app.add_option("--target", options.target);
  app.add_option("--threads", options.threads)->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds)->check(CLI::PositiveNumber);
  app.add_option("--elements", options.elements, "of each tensor, about")
      ->check(CLI::Range(int64_t{1} << 20, int64_t{1} << 30));
  app.add_option("--filter", options.filter, "regular expression");
  app.add_option("--above", options.above, "print ratios above this one");
  app.add_flag("--json", options.json);
  CLI11_PARSE(app, argc, argv);
  std::vector<OperatorCase> cases = elementwise_cases(options.elements);
  std::ranges::move(structured_cases(options.elements), std::back_inserter(cases));
  std::erase_if(cases, [&, filter = std::regex(options.filter)](const OperatorCase& c) {
    return !std::regex_search(c.name, filter);
  });
  Bench bench(options);
  std::vector<Row> rows;
  for (const OperatorCase& c : cases) {
    std::fprintf(stderr, "\r%zu of %zu: %-60.60s", rows.size() + 1, cases.size(), c.name.c_str());
    rows.push_back(bench.run(c));
  }
  std::fprintf(stderr, "\n");
  std::erase_if(rows, [&](const Row& row) { return row.ratio() < options.above; });
  std::ranges::sort(rows, {}, &Row::ratio);
  if (options.json) {
    nlohmann::json all = nlohmann::json::array();
    for (const Row& row : rows)
      all.push_back({{"case", row.name},
                     {"us", row.us},
                     {"move_us", row.move_us},
                     {"bytes", row.bytes},
                     {"elsewhere", row.elsewhere}});
    std::printf("%s\n", all.dump(2).c_str());
    return 0;
  }
  std::printf("%-64s %10s %8s %8s\n", str(options.target, ", ", options.threads, " threads").c_str(), "us", "GB/s",
              "us/move");
  std::ranges::for_each(rows, print);
  return 0;
}

}  // namespace
}  // namespace tenon::bench

int main(int argc, char** argv) { return tenon::bench::main(argc, argv); }
