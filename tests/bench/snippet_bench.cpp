// Memory-bound graphs on an x86 target, against ONNX Runtime, a hand-written fused loop, the mere movement of the same
// arrays (the best of several ways), and the same target with snippets switched off: medians of interleaved runs in one
// process.
//
//   ORT_SO=.../libonnxruntime.so.1 snippet_bench [--target x86-avx512] [--threads 1] [--rounds 31] [--filter RE]
//   [--json]
//
// Tenon's runs are bound to their inputs and outputs, as the hand loop is; "into" in JSON: CompiledModel::run_into.
// Outputs are held against the hand loop's (largest difference over the largest value).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <regex>
#include <string>
#include <tuple>
#include <vector>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <tenon/compile/compile.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/onnx/export.hpp>
#include <tenon/runtime/thread_pool.hpp>
#include <tenon/support/str.hpp>

#include "bench/hand_loops.hpp"
#include "bench/ort_peer.hpp"

namespace tenon::bench {
namespace {

struct Case {
  std::string name, graph;
  HandLoop hand;
  std::span<const HandLoop> moves;  // ways to move the same arrays
  std::vector<int64_t> extents;     // of the hand loop; units are extents[0]
  int64_t grain = 1;                // least units that a thread takes
};

Case flat(std::string name, int64_t n, const std::string& signature, const std::string& body, HandLoop hand,
          std::span<const HandLoop> moves = move_one_to_one()) {
  const std::string type = str("f32[", n, "]");
  return {str(name, " ", n),
          "graph @g(" + std::regex_replace(signature, std::regex("T"), type) + " {\n" + body + "\n}",
          hand,
          moves,
          {n},
          4096};
}

// y = q (tanh((q + 0.044715 q^3) sqrt(2 / pi)) + 1) / 2
std::string tanh_gelu_of(const std::string& q) {
  return std::regex_replace(R"(%h = Constant {value = dense<f32[]: 0.5>}
%one = Constant {value = dense<f32[]: 1.0>}
%k = Constant {value = dense<f32[]: 0.044715>}
%s = Constant {value = dense<f32[]: 0.7978846>}
%three = Constant {value = dense<f32[]: 3.0>}
%p = Pow %Q, %three
%a = Mul %p, %k
%b = Add %Q, %a
%c = Mul %b, %s
%d = Tanh %c
%e = Add %d, %one
%f = Mul %Q, %e
%y = Mul %f, %h)",
                            std::regex("%Q"), "%" + q);
}

// Bytes to floats: (x / 255 - mean) / deviation for each channel.
std::string normalise_text(std::string_view image, std::string_view channels) {
  return str("graph @g(%x: u8[", image, "], %m: f32[", channels, "], %d: f32[", channels, R"(]) -> %y {
%c = Constant {value = dense<f32[]: 255.0>}
%f = Cast %x {to = type<f32[*]>}
%t0 = Div %f, %c
%t1 = Sub %t0, %m
%y = Div %t1, %d
})");
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const std::string unary = "%x: T) -> %y", binary = "%x: T, %z: T) -> %y";
  const std::string half = "%h = Constant {value = dense<f32[]: 0.5>}\n%one = Constant {value = dense<f32[]: 1.0>}\n";
  // The largest are tensors of 420 MB: four times the largest last-level cache that was measured on.
  for (const int64_t n : {1000LL, 16384LL, 401408LL, 4194304LL, 16777216LL, 110100480LL}) {
    all.push_back(flat("chain of 12", n, unary, R"(%c0 = Constant {value = dense<f32[]: 1.1>}
%c1 = Constant {value = dense<f32[]: 0.2>}
%c2 = Constant {value = dense<f32[]: 0.7>}
%c3 = Constant {value = dense<f32[]: 1.7>}
%c4 = Constant {value = dense<f32[]: -0.5>}
%c5 = Constant {value = dense<f32[]: 2.0>}
%c6 = Constant {value = dense<f32[]: 0.25>}
%t0 = Mul %x, %c0
%t1 = Add %t0, %c1
%t2 = Abs %t1
%t3 = Sqrt %t2
%t4 = Sub %t3, %c2
%t5 = Mul %t4, %c3
%t6 = Max %t5, %c4
%t7 = Min %t6, %c5
%t8 = Neg %t7
%t9 = Add %t8, %x
%t10 = Mul %t9, %c6
%y = Relu %t10)",
                       chain12));
    all.push_back(flat("hardswish", n, unary, "%y = HardSwish %x", hardswish));
    all.push_back(flat("diamond", n, binary, R"(%c = Constant {value = dense<f32[]: 3.0>}
%lo = Constant {value = dense<f32[]: 0.0>}
%hi = Constant {value = dense<f32[]: 6.0>}
%t = Add %x, %z
%u = Add %t, %c
%v = Clip %u, %lo, %hi
%y = Mul %t, %v)",
                       diamond, move_two_to_one()));
    all.push_back(flat("several outputs", n, "%x: T, %z: T) -> (%s, %d, %p)", R"(%s = Add %x, %z
%e = Sub %x, %z
%d = Abs %e
%q = Mul %x, %z
%p = Relu %q)",
                       several_outputs, move_two_to_three()));
    all.push_back(flat("erf GELU", n, unary, half + R"(%r = Constant {value = dense<f32[]: 1.4142135>}
%a = Div %x, %r
%b = Erf %a
%c = Add %b, %one
%d = Mul %x, %c
%y = Mul %d, %h)",
                       gelu_erf));
    all.push_back(flat("tanh GELU", n, unary, tanh_gelu_of("x"), gelu_tanh));
    all.push_back(flat("swish", n, unary, "%s = Sigmoid %x\n%y = Mul %x, %s", swish));
    all.push_back(flat("add relu", n, binary, "%s = Add %x, %z\n%y = Relu %s", add_relu, move_two_to_one()));
  }
  const auto rows = [&](std::string name, std::string graph, HandLoop hand, std::span<const HandLoop> moves,
                        std::vector<int64_t> extents) {
    all.push_back({std::move(name), std::move(graph), hand, moves, std::move(extents), 1});
  };
  rows("BN mul add relu 256x56x56",
       R"(graph @g(%x: f32[256,3136], %a: f32[256,1], %b: f32[256,1], %c: f32[256,1], %d: f32[256,1]) -> %y {
%t0 = Mul %x, %a
%t1 = Add %t0, %b
%t2 = Mul %t1, %c
%t3 = Add %t2, %d
%y = Relu %t3
})",
       scale_shift_relu, move_one_to_one(), {256, 3136});
  rows("u8 normalise planar 3x1080x1920", normalise_text("1,3,1080,1920", "3,1,1"), normalise_planar,
       move_bytes_to_floats(), {3, 1080 * 1920});
  rows("u8 normalise interleaved 1080x1920x3", normalise_text("1080,1920,3", "3"), normalise_interleaved,
       move_bytes_to_floats(), {1080 * 1920});
  rows("broadcast 42x17x31", R"(graph @g(%x: f32[1,42,17,31], %s: f32[1,42,17,1], %b: f32[1,42,1,31]) -> %y {
%t = Mul %x, %s
%u = Add %t, %b
%y = Relu %u
})",
       broadcast, move_one_to_one(), {42, 17, 31});
  rows("bias tanh GELU 128x3072",
       "graph @g(%x: f32[128,3072], %bias: f32[3072]) -> %y {\n%q = Add %x, %bias\n" + tanh_gelu_of("q") + "\n}",
       bias_gelu_tanh, move_one_to_one(), {128, 3072});
  for (const auto& [r, n] : {std::pair{128, 768}, {512, 1024}, {16, 65536}, {4096, 33}}) {
    rows(str("layer norm ", r, "x", n),
         str("graph @g(%x: f32[", r, ",", n, "], %s: f32[", n, "], %b: f32[", n, R"(]) -> %y {
%y = LayerNormalization %x, %s, %b {axis = -1, epsilon = 1e-5}
})"),
         layer_norm, move_one_to_one(), {r, n});
    rows(str("skip layer norm ", r, "x", n),
         str("graph @g(%x: f32[", r, ",", n, "], %z: f32[", r, ",", n, "], %s: f32[", n, "], %b: f32[", n,
             R"(]) -> %y {
%t = Add %x, %z
%y = LayerNormalization %t, %s, %b {axis = -1, epsilon = 1e-5}
})"),
         skip_layer_norm, move_two_to_one(), {r, n});
    rows(str("softmax ", r, "x", n), str("graph @g(%x: f32[", r, ",", n, "]) -> %y {\n%y = Softmax %x {axis = -1}\n}"),
         softmax, move_one_to_one(), {r, n});
    rows(str("sum of rows ", r, "x", n), str("graph @g(%x: f32[", r, ",", n, R"(]) -> %y {
%a = Constant {value = dense<i64[1]: 1>}
%y = ReduceSum %x, %a
})"),
         sum_rows, move_in(), {r, n});
  }
  rows("softmax 1536x128", "graph @g(%x: f32[12,128,128]) -> %y {\n%y = Softmax %x {axis = -1}\n}", softmax,
       move_one_to_one(), {1536, 128});
  for (const auto& [p, r, n] : {std::tuple{16, 64, 784},
                                {1, 16, 2097152},
                                {1, 150, 262144},
                                {1, 4096, 8192},
                                {1, 4194304, 8},
                                {1, 1048576, 31},
                                {3, 1000, 24},
                                {64, 197, 12},
                                {16, 3000, 31},
                                {1, 77, 100003}}) {
    const std::string extents = str(p, "x", r, "x", n), type = str("f32[", p, ",", r, ",", n, "]");
    rows("softmax over axis 1 of " + extents, str("graph @g(%x: ", type, ") -> %y {\n%y = Softmax %x {axis = 1}\n}"),
         softmax_columns, move_one_to_one(), {p, r, n});
    rows("sum over axis 1 of " + extents, str("graph @g(%x: ", type, R"() -> %y {
%a = Constant {value = dense<i64[1]: 1>}
%y = ReduceSum %x, %a
})"),
         sum_columns, move_in(), {p, r, n});
  }
  return all;
}

template <class T>
T must(Result<T> result, const std::string& what) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "%s: %s\n", what.c_str(), result.error().to_string().c_str());
  std::exit(1);
}

void must(const Result<void>& result, const std::string& what) {
  if (result.ok()) return;
  std::fprintf(stderr, "%s: %s\n", what.c_str(), result.error().to_string().c_str());
  std::exit(1);
}

struct Options {
  std::string target = "x86-avx512", filter = ".*";
  int threads = 1, rounds = 31;
  bool json = false;
};

Tensor random_input(const Type& type, std::mt19937& random) {
  Tensor tensor = must(Tensor::allocate(type.element(), *type.shape().static_dims()), "an input");
  if (type.element() == kU8) {
    for (uint8_t& x : tensor.mutable_as<uint8_t>()) x = static_cast<uint8_t>(random());
  } else {
    // Away from 0 for what is divided by.
    std::normal_distribution<float> normal(1.0f, 2.0f);
    for (float& x : tensor.mutable_as<float>()) x = normal(random);
  }
  return tensor;
}

double difference(const Tensor& a, const Tensor& b) {
  double most = 0, largest = 1e-30;
  const auto left = a.as<float>(), right = b.as<float>();
  for (size_t i = 0; i < left.size(); ++i) {
    most = std::max(most, std::abs(double{left[i]} - right[i]));
    largest = std::max(largest, std::abs(double{right[i]}));
  }
  return most / largest;
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// One competitor: called often enough in a row for the clock to tell.
struct Runner {
  std::string name;
  std::function<void()> run;
  std::vector<double> us = {};
  int repeats = 1;
};

// Of one thread what counts is its processor time: others may hold the machine meanwhile.
double now_us(bool processor_time) {
  timespec now{};
  clock_gettime(processor_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

// Once before it counts: competitors leave each other different caches.
double time_us(const Runner& runner, bool processor_time) {
  runner.run();
  const double begin = now_us(processor_time);
  for (int i = 0; i < runner.repeats; ++i) runner.run();
  return (now_us(processor_time) - begin) / runner.repeats;
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
    // Where the hand loop writes, too: which pages a tensor has is worth a tenth of a call in the second-level cache.
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
      peer.emplace(bytes, ins, outs, options_.threads);
      runners.push_back({"ort", [&] { peer->run(); }});
    }
    for (Runner& runner : runners) {
      const double once = std::max(0.05, time_us(runner, options_.threads == 1));
      runner.repeats = static_cast<int>(std::clamp(500.0 / once, 1.0, 10000.0));
    }
    // In another order each round: who runs behind one that writes elsewhere finds less in the caches, by a third at 3
    // MB.
    std::vector<Runner*> order;
    for (Runner& runner : runners) order.push_back(&runner);
    for (int round = 0; round < options_.rounds; ++round) {
      std::ranges::shuffle(order, random);
      for (Runner* runner : order) runner->us.push_back(time_us(*runner, options_.threads == 1));
    }
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
  app.add_flag("--json", options.json);
  CLI11_PARSE(app, argc, argv);
  Bench bench(options);
  nlohmann::json rows = nlohmann::json::array();
  if (!options.json)
    std::printf("%-38s %10s %8s %8s %8s %8s\n", str(options.target, ", ", options.threads, " threads").c_str(), "us",
                "hand/us", "us/move", "off/us", "ort/us");
  for (const Case& c : cases()) {
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
