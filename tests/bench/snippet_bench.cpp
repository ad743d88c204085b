// Memory-bound graphs on an x86 target, compared with ONNX Runtime, a hand-written fused loop, only moving the same
// arrays (the best of several ways), and the same target without snippets: medians of interleaved runs in one process.
//
//   ORT_SO=.../libonnxruntime.so.1 snippet_bench [--target x86-avx512] [--threads 1] [--rounds 31] [--filter RE]
//   [--short] [--json]
//
// --short: short rows and few elements, instead of the others.
//
// Tenon's runs are bound to their inputs and outputs, like the hand-written loop; "into" in JSON:
// CompiledModel::run_into. Outputs are compared with those of the hand-written loop (largest difference over the
// largest value).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <tenon/compile/compile.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/onnx/export.hpp>
#include <tenon/runtime/thread_pool.hpp>
#include <tenon/support/median.hpp>
#include <tenon/support/str.hpp>
#include <tenon/tensor/numeric.hpp>

#include "bench/interleaved.hpp"
#include "bench/ort_peer.hpp"
#include "bench/random_input.hpp"
#include "bench/snippet_bench_cases.hpp"

namespace tenon::bench {
namespace {

struct Options {
  std::string target = "x86-avx512", filter = ".*";
  int threads = 1, rounds = 31;
  bool short_ones = false, json = false;
};

double difference(const Tensor& got, const Tensor& wanted) {
  double most = 0, largest = 1e-30;
  const Tensor a = must(convert(got, kF32), "an output"), b = must(convert(wanted, kF32), "an output");
  const auto left = a.as<float>(), right = b.as<float>();
  for (size_t i = 0; i < left.size(); ++i) {
    most = std::max(most, std::abs(double{left[i]} - right[i]));
    largest = std::max(largest, std::abs(double{right[i]}));
  }
  return most / largest;
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), pool_(options.threads) {
    TargetDescription target = must(registry_.open(options.target), options.target)->description();
    if (target.plugin != "x86") return;
    target.name += "-unfused";
    target.rank = 0;
    target.options.add("fuse", Setting::word("false"));
    unfused_ = str("/tmp/tenon_", getpid(), "_unfused.yaml");
    std::ofstream(unfused_) << to_yaml(target);
  }
  ~Bench() {
    if (unfused_ != options_.target) std::remove(unfused_.c_str());
  }

  nlohmann::json run(const Case& c) {
    std::mt19937 random(7);
    auto graph = must(parse_graph(c.graph, c.name), c.name);
    const std::string bytes = OrtPeer::available() ? with_opset(must(export_model_bytes(*graph), c.name), 20, 9) : "";
    auto model = must(compile(std::move(graph), registry_, {.targets = {options_.target}}), c.name);
    std::vector<Datum> data;
    std::vector<std::pair<std::string, Tensor>> ins, outs;
    for (const ValueInfo& input : model->inputs()) {
      ins.emplace_back(input.name, random_input(input.type, random));
      data.emplace_back(ins.back().second);
    }
    for (const ValueInfo& output : model->outputs())
      outs.emplace_back(output.name,
                        must(Tensor::allocate(output.type.element(), *output.type.shape().static_dims()), c.name));
    const RunOptions run{.parallel = &pool_};
    std::vector<Datum> made = must(model->run(data, run), c.name);
    auto single = must(compile(must(parse_graph(c.graph, c.name), c.name), registry_, {.targets = {unfused_}}), c.name);
    std::vector<Datum> singly = must(single->run(data, run), c.name);

    std::vector<const void*> in;
    std::vector<void*> out;
    for (auto& [name, tensor] : ins) in.push_back(tensor.data());
    for (auto& [name, tensor] : outs) out.push_back(tensor.mutable_data());
    const Arrays arrays{in, out, c.extents};
    const auto parallel = [&](HandLoop loop, int64_t units, int64_t grain) {
      if (options_.threads == 1) return loop(arrays, 0, units);
      pool_.run(units, std::max(grain, (units + options_.threads - 1) / options_.threads),
                [&](int64_t b, int64_t e) { loop(arrays, b, e); });
    };
    parallel(c.hand, c.extents[0], c.grain);
    double worst = 0;
    for (size_t i = 0; i < outs.size(); ++i) worst = std::max(worst, difference(made[i].tensor(), outs[i].second));

    const size_t widest = std::max(ins[0].second.bytes(), outs[0].second.bytes());
    const auto lines = static_cast<int64_t>(widest / 64);
    std::vector<Runner> runners;
    // Where the hand loop writes, too: which pages a tensor has is worth a tenth of a call in L2.
    std::vector<Datum> results;
    for (auto& [name, tensor] : outs) results.emplace_back(tensor);
    const auto bound = must(model->bind(data, results, run), c.name);
    must(bound->run(), c.name);
    runners.push_back({"tenon", [&] { must(bound->run(), c.name); }});
    runners.push_back({"into", [&] { must(model->run_into(data, results, run), c.name); }});
    runners.push_back({"hand", [&] { parallel(c.hand, c.extents[0], c.grain); }});
    for (size_t i = 0; i < c.moves.size(); ++i)
      runners.push_back({str("move", i), [&, loop = c.moves[i]] { parallel(loop, lines, 64); }});
    runners.push_back({"unfused", [&] { must(single->run_into(data, singly, run), c.name); }});
    std::optional<OrtPeer> peer;
    if (OrtPeer::available()) {
      try {
        peer.emplace(bytes, ins, outs, options_.threads);
        peer->run();
        runners.push_back({"ort", [&] { peer->run(); }});
      } catch (const std::exception& refusal) {  // it has no group norm of a factor for each channel in this opset
        std::fprintf(stderr, "%s: no peer: %s\n", c.name.c_str(), refusal.what());
      }
    }
    measure(runners, options_.rounds, options_.threads == 1, random);
    nlohmann::json row{{"case", c.name}, {"difference", worst}};
    for (const Runner& runner : runners) {
      row[runner.name + "_us"] = median(runner.us);
      row[runner.name + "_least_us"] = *std::min_element(runner.us.begin(), runner.us.end());
    }
    size_t best = 0;
    for (size_t i = 1; i < c.moves.size(); ++i)
      if (row[str("move", i, "_us")] < row[str("move", best, "_us")]) best = i;
    row["move_us"] = row[str("move", best, "_us")];
    row["move_least_us"] = row[str("move", best, "_least_us")];
    return row;
  }

 private:
  const Options& options_;
  ThreadPool pool_;
  TargetRegistry registry_;
  std::string unfused_ = options_.target;  // the target with snippets switched off
};

void print(const nlohmann::json& row) {
  const double tenon = row["tenon_us"], hand = row["hand_us"], move = row["move_us"];
  std::printf("%-38s %10.2f %8.2f %8.2f %8.2f ", row["case"].get<std::string>().c_str(), tenon, hand / tenon,
              tenon / move, row["unfused_us"].get<double>() / tenon);
  if (row.contains("ort_us")) std::printf("%8.2f ", row["ort_us"].get<double>() / tenon);
  std::printf("  %.1e\n", row["difference"].get<double>());
  std::fflush(stdout);
}

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Memory-bound graphs against their peers"};
  app.add_option("--target", options.target);
  app.add_option("--threads", options.threads);
  app.add_option("--rounds", options.rounds);
  app.add_option("--filter", options.filter);
  app.add_flag("--short", options.short_ones, "short rows and few elements, instead of the others");
  app.add_flag("--json", options.json);
  CLI11_PARSE(app, argc, argv);
  Bench bench(options);
  nlohmann::json rows = nlohmann::json::array();
  if (!options.json)
    std::printf("%-38s %10s %8s %8s %8s %8s\n", str(options.target, ", ", options.threads, " threads").c_str(), "us",
                "hand/us", "us/move", "off/us", "ort/us");
  for (const Case& c : options.short_ones ? short_cases() : snippet_cases()) {
    if (!std::regex_search(c.name, std::regex(options.filter))) continue;
    rows.push_back(bench.run(c));
    if (!options.json) print(rows.back());
  }
  if (options.json) std::printf("%s\n", rows.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace tenon::bench

int main(int argc, char** argv) { return tenon::bench::main(argc, argv); }
