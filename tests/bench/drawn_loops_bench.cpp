// Graphs on an x86 target compared with hand-written loops: medians of interleaved runs in one process, the worst
// first. Drawn graphs, or with --kinds those of kinds.hpp, also compared with only moving their arrays and with ONNX
// Runtime.
//
//   [ORT_SO=.../libonnxruntime.so.1] drawn_loops_bench [--target x86-avx512] [--seed 1] [--seeds 200] [--kinds]
//   [--rounds 15] [--filter RE] [--most-bits 20] [--flags "..."] [--show] [--json]
//
// The loops are compiled at run time, by $CXX or c++, all at once and with the flags of snippet_bench's (those in which
// sums cancel without -fassociative-math); for x86-avx2 without AVX-512. A graph can be drawn again by its seed, which
// begins its line: --seed S --seeds 1. --show prints the graph and its loop instead. In names, reduced extents have a
// ', and types have the dims over which inputs vary, bit by bit. Results of rows of at least 65,536 elements are
// checked with a loop that sums in f64. Exits with 1 if results differ by more than a thousandth of a percent of the
// largest value in more than one of a thousand elements (a comparison or a cast may go either way).
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <regex>
#include <sstream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <tenon/compile/compile.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/onnx/export.hpp>
#include <tenon/runtime/thread_pool.hpp>
#include <tenon/support/median.hpp>
#include <tenon/support/str.hpp>

#include "bench/drawn_graph.hpp"
#include "bench/hand_loops.hpp"
#include "bench/interleaved.hpp"
#include "bench/kinds.hpp"
#include "bench/ort_peer.hpp"
#include "bench/random_input.hpp"
#include "bench/run_time_compiler.hpp"

namespace tenon::bench {
namespace {

constexpr int64_t kPiece = 1024;  // bytes read or written of one tensor before the next

struct Options {
  std::string target = "x86-avx512", filter = ".*", flags;
  uint32_t seed = 1, seeds = 200;
  int rounds = 15, most_bits = 20;
  bool kinds = false, show = false, json = false;
};

std::vector<std::string> flags_of(const Options& options) {
  std::istringstream words(
      !options.flags.empty() ? options.flags
      : options.target == "x86-avx2"
          ? "-O3 -march=native -mno-avx512f -mavx2 -mfma -ffast-math -mrecip=!sqrt,!vec-sqrt,!div,!vec-div"
          : "-O3 -march=native -mprefer-vector-width=512 -ffast-math "
            "-mrecip=!sqrt,!vec-sqrt,!div,!vec-div");
  return {std::istream_iterator<std::string>(words), {}};
}

// The share of elements that differ.
double differing(const Tensor& got, const Tensor& wanted) {
  const Tensor a = must(convert(got, kF32), "an output"), b = must(convert(wanted, kF32), "an output");
  const auto left = a.as<float>(), right = b.as<float>();
  double largest = 1e-30;
  for (const float x : right) largest = std::max(largest, std::abs(double{x}));
  size_t apart = 0;
  // Not a number is apart from all.
  for (size_t i = 0; i < left.size(); ++i) apart += !(std::abs(double{left[i]} - right[i]) <= 1e-4 * largest);
  return static_cast<double>(apart) / static_cast<double>(left.size());
}

struct Row {
  std::string name;
  double us = 0, hand_us = 0, differing = 0;
  std::optional<double> move_us, ort_us;
  size_t kernels = 1;
  double coverage = 1;
  double ratio() const { return hand_us / us; }
};

// Moves inputs and outputs in parallel, a piece of each in turn, in each of several ways.
void add_movement(std::vector<Runner>& runners, std::span<const void* const> in, std::span<void* const> out,
                  std::span<const int64_t> extents) {
  for (const HandLoop move : move_side_by_side())
    runners.push_back({"move", [=] { move({in, out, extents}, 0, extents[0]); }});
}

// Null: not available, or it refuses the graph.
std::unique_ptr<OrtPeer> peer_of(const DrawnGraph& drawn, std::span<const Datum> inputs, std::span<const Datum> outputs,
                                 const CompiledModel& model) {
  if (!OrtPeer::available()) return nullptr;
  std::vector<std::pair<std::string, Tensor>> in, out;
  for (size_t i = 0; i < inputs.size(); ++i) in.emplace_back(model.inputs()[i].name, inputs[i].tensor());
  for (size_t i = 0; i < outputs.size(); ++i) out.emplace_back(model.outputs()[i].name, outputs[i].tensor());
  try {
    const auto graph = must(parse_graph(drawn.text(), drawn.name()), drawn.name());
    const std::string bytes = with_opset(must(export_model_bytes(*graph), drawn.name()), 20, 9);
    auto peer = std::make_unique<OrtPeer>(bytes, in, out, 1);
    peer->run();
    return peer;
  } catch (const std::exception& refusal) {
    std::fprintf(stderr, "%s: no peer: %s\n", drawn.name().c_str(), refusal.what());
    return nullptr;
  }
}

// `loop` is timed; the results of `checked` are compared.
Row run(const DrawnGraph& drawn, CompiledLoop loop, CompiledLoop checked, TargetRegistry& registry, ThreadPool& pool,
        const Options& options) {
  std::mt19937 random(drawn.seed);
  const RunOptions alone{.parallel = &pool};
  Row row{.name = drawn.name()};
  const std::string text = drawn.text();
  auto model = must(compile(must(parse_graph(text, row.name), text), registry, {.targets = {options.target}}), text);
  std::vector<Datum> data, results, made;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const ValueInfo& input : model->inputs()) data.emplace_back(random_input(input.type, random));
  for (const ValueInfo& output : model->outputs()) {
    const auto zeros = [&] {
      return must(Tensor::zeros(output.type.element(), *output.type.shape().static_dims()), row.name);
    };
    results.emplace_back(zeros());
    made.emplace_back(zeros());
  }
  for (Datum& datum : data) in.push_back(datum.tensor().data());
  for (Datum& datum : results) out.push_back(const_cast<std::byte*>(datum.tensor().data()));
  must(model->run_into(data, made, alone), row.name);
  const std::vector<int64_t> extents = drawn.loop_extents();
  checked(in.data(), out.data(), extents.data());
  for (size_t i = 0; i < made.size(); ++i)
    row.differing = std::max(row.differing, differing(made[i].tensor(), results[i].tensor()));
  std::vector<OpProfile> kernels;
  must(model->run_into(data, made, {.parallel = &pool, .profile = &kernels}), row.name);
  row.kernels = kernels.size();
  row.coverage = model->placement().coverage(options.target);
  made.clear();
  // Both write to the same memory: which pages a tensor has is worth a tenth in L2.
  const auto bound = must(model->bind(data, results, alone), row.name);
  std::vector<Runner> runners;
  runners.push_back({"tenon", [&] { must(bound->run(), row.name); }});
  runners.push_back({"hand", [&] { loop(in.data(), out.data(), extents.data()); }});
  std::vector<int64_t> bytes = {0};
  std::unique_ptr<OrtPeer> peer;
  if (options.kinds) {
    for (const auto& tensors : {data, results})
      for (const Datum& datum : tensors) bytes.push_back(static_cast<int64_t>(datum.tensor().bytes()));
    bytes[0] = std::max<int64_t>(1, *std::ranges::max_element(bytes) / kPiece);
    add_movement(runners, in, out, bytes);
    peer = peer_of(drawn, data, results, *model);
    if (peer) runners.push_back({"ort", [&] { peer->run(); }});
  }
  measure(runners, options.rounds, true, random);
  row.us = median(runners[0].us);
  row.hand_us = median(runners[1].us);
  for (const Runner& runner : std::span(runners).subspan(2)) {
    std::optional<double>& least = runner.name == "ort" ? row.ort_us : row.move_us;
    least = std::min(least.value_or(INFINITY), median(runner.us));
  }
  return row;
}

// The name of the loop that sums in f64.
std::string checked_name(const DrawnGraph& drawn) { return str("checked_", drawn.seed); }

int report(std::vector<Row> rows, const Options& options) {
  std::ranges::sort(rows, {}, &Row::ratio);
  nlohmann::json all = nlohmann::json::array();
  size_t below = 0, wrong = 0;
  double logs = 0;
  if (!options.json)
    std::printf("%10s %10s %8s%s  %s\n", "us", "hand us", "hand/us", options.kinds ? "  us/move   ort/us" : "",
                options.kinds ? "what it is" : "seed, what it is");
  for (const Row& row : rows) {
    const bool differs = row.differing > 1e-2;
    below += row.ratio() < 0.97;
    wrong += differs;
    logs += std::log(row.ratio());
    all.push_back({{"case", row.name}, {"tenon_us", row.us}, {"hand_us", row.hand_us}, {"differing", row.differing}});
    if (row.move_us) all.back()["move_us"] = *row.move_us;
    if (row.ort_us) all.back()["ort_us"] = *row.ort_us;
    if (options.json) continue;
    std::printf("%10.4f %10.4f %8.2f", row.us, row.hand_us, row.ratio());
    if (options.kinds) {
      std::printf(" %8.2f", row.us / *row.move_us);
      row.ort_us ? std::printf(" %8.2f", *row.ort_us / row.us) : std::printf("%9s", "-");
    }
    std::printf("  %s%s%s%s\n", row.name.c_str(), row.kernels > 1 ? str(" in ", row.kernels, " kernels").c_str() : "",
                row.coverage < 1 ? " ELSEWHERE" : "",
                differs ? str(" DIFFERS in ", row.differing, " of all elements").c_str() : "");
  }
  if (options.json) {
    std::printf("%s\n", all.dump(2).c_str());
  } else if (!rows.empty()) {
    std::printf("%zu graphs on %s: %zu below .97, geometric mean %.2f, %zu with other results\n", rows.size(),
                options.target.c_str(), below, std::exp(logs / static_cast<double>(rows.size())), wrong);
  }
  return wrong ? 1 : 0;
}

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Drawn graphs against loops by hand"};
  app.add_option("--target", options.target);
  app.add_option("--seed", options.seed, "the first");
  app.add_option("--seeds", options.seeds, "how many");
  app.add_flag("--kinds", options.kinds, "graphs as networks have them, instead");
  app.add_option("--rounds", options.rounds);
  app.add_option("--filter", options.filter, "of a graph's name");
  app.add_option("--most-bits", options.most_bits, "at most about 2 to this many elements a tensor");
  app.add_option("--flags", options.flags, "of the compiler, instead of the target's");
  app.add_flag("--show", options.show, "print graphs and loops, run nothing");
  app.add_flag("--json", options.json);
  CLI11_PARSE(app, argc, argv);
  std::vector<DrawnGraph> all = options.kinds ? graph_kinds() : std::vector<DrawnGraph>{}, drawn;
  if (!options.kinds)
    for (uint32_t i = 0; i < options.seeds; ++i) all.push_back(draw_graph(options.seed + i, options.most_bits));
  std::string text = loop_prelude(), in_order = loop_prelude();
  for (DrawnGraph& one : all) {
    if (!std::regex_search(one.name(), std::regex(options.filter))) continue;
    const std::string loop = one.loop(str("loop_", one.seed)) + "\n";
    std::string& with = one.cancels() ? in_order : text;
    with += loop;
    if (one.folds_long_rows()) with += one.loop(checked_name(one), "double") + "\n";
    if (options.show) std::printf("%s\n%s\n%s", one.name().c_str(), one.text().c_str(), loop.c_str());
    drawn.push_back(std::move(one));
  }
  if (options.show) return 0;
  std::vector<std::string> flags = flags_of(options);
  const CompiledLoops loops = must(CompiledLoops::compile(text, flags), "the loops by hand");
  flags.push_back("-fno-associative-math");
  const CompiledLoops ordered = must(CompiledLoops::compile(in_order, flags), "the loops by hand, sums in order");
  TargetRegistry registry;
  ThreadPool pool(1);
  std::vector<Row> rows;
  for (const DrawnGraph& one : drawn) {
    const CompiledLoops& with = one.cancels() ? ordered : loops;
    const CompiledLoop loop = with.find(str("loop_", one.seed));
    rows.push_back(
        run(one, loop, one.folds_long_rows() ? with.find(checked_name(one)) : loop, registry, pool, options));
  }
  return report(std::move(rows), options);
}

}  // namespace
}  // namespace tenon::bench

int main(int argc, char** argv) { return tenon::bench::main(argc, argv); }
