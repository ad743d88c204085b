// Chains of operators in strips compared with whole operators, with the kernels of the reference and one thread:
// medians of alternating runs, and the model's predictions. Results are compared bit by bit.
//
//   strips_bench [runs] [--always | --memory]
//   TENON_THREADS=2 strips_bench runs model.onnx ...      models instead, on so many threads
//   strips_bench runs --always model.onnx ...             the same with strips wherever they can be: what the model
//                                                         says of graphs that its figures are not from
//   strips_bench runs --memory model.onnx ...             with strips where values take less memory
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <support_lib/random_tensor.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/irgen/from_graph.hpp>
#include <tenon/irgen/graph_runner.hpp>
#include <tenon/irgen/reference_kernels.hpp>
#include <tenon/irgen/reference_strips.hpp>
#include <tenon/onnx/import.hpp>
#include <tenon/passes/standard.hpp>
#include <tenon/program/exec/bound_program.hpp>
#include <tenon/runtime/thread_pool.hpp>
#include <tenon/support/median.hpp>

#include "zoo/zoo.hpp"

namespace tenon::irgen {
namespace {


struct Case {
  const char* name;
  const char* text;
};

// Images with 16 channels of 1024 x 512 floats: 32 MiB per value.
constexpr Case kCases[] = {{"attention of 12 heads, 1024 x 64", R"(
graph @attention(%q: f32[12,1024,64], %k: f32[12,64,1024], %v: f32[12,1024,64], %scale: f32[]) -> %y {
  %s = MatMul %q, %k
  %d = Mul %s, %scale
  %p = Softmax %d {axis = -1}
  %y = MatMul %p, %v
})"},
                           {"feed forward, 2048 x 768 x 3072", R"(
graph @mlp(%x: f32[2048,768], %w1: f32[768,3072], %b1: f32[3072], %w2: f32[3072,768], %b2: f32[768], %g: f32[768]) -> %y {
  %h = MatMul %x, %w1
  %hb = Add %h, %b1
  %a = Gelu %hb
  %o = MatMul %a, %w2
  %ob = Add %o, %b2
  %r = Add %ob, %x
  %y = LayerNormalization %r, %g {axis = -1}
})"},
                           {"eight elementwise operators", R"(
graph @elementwise(%x: f32[1,16,1024,512], %s: f32[16,1,1], %b: f32[16,1,1]) -> %y {
  %v0 = Relu %x
  %v1 = Mul %v0, %s
  %v2 = Add %v1, %b
  %v3 = Neg %v2
  %v4 = Max %v3, %b
  %v5 = Sub %v4, %s
  %v6 = Abs %v5
  %y = Add %v6, %b
})"},
                           {"depthwise 3x3 and pools among elementwise operators", R"(
graph @depthwise(%x: f32[1,16,1024,512], %w: f32[16,1,3,3], %s: f32[16,1,1], %b: f32[16,1,1]) -> %y {
  %v0 = Mul %x, %s
  %v1 = Add %v0, %b
  %v2 = Conv %v1, %w {group = 16, pads = [1, 1, 1, 1]}
  %v3 = Relu %v2
  %v4 = MaxPool %v3 {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}
  %v5 = Add %v4, %v1
  %y = Relu %v5
})"},
                           {"six 3x3 convolutions of 16 channels", R"(
graph @convolutions(%x: f32[1,16,512,256], %w: f32[16,16,3,3]) -> %y {
  %v0 = Conv %x, %w {pads = [1, 1, 1, 1]}
  %v1 = Conv %v0, %w {pads = [1, 1, 1, 1]}
  %v2 = Conv %v1, %w {pads = [1, 1, 1, 1]}
  %v3 = Conv %v2, %w {pads = [1, 1, 1, 1]}
  %v4 = Conv %v3, %w {pads = [1, 1, 1, 1]}
  %y = Conv %v4, %w {pads = [1, 1, 1, 1]}
})"}};

template <class T>
T must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.error().to_string().c_str());
    std::exit(1);
  }
  return std::move(result).value();
}
void must(const Result<void>& result) {
  if (result.ok()) return;
  std::fprintf(stderr, "%s\n", result.error().to_string().c_str());
  std::exit(1);
}

// A bound program with memory for its buffers.
class Runnable {
 public:
  Runnable(const Graph& graph, const std::vector<Tensor>& inputs, const Grouping& grouping)
      : lowered_(must(from_graph(graph, reference_kernels(), {.grouping = grouping}))), bound_(bind(graph, inputs)) {}

  double seconds() {
    const auto begin = std::chrono::steady_clock::now();
    must(bound_.run(arguments_));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  const Tensor& output() const { return output_; }
  int64_t arena_bytes() const {
    int64_t bytes = 0;
    for (const auto& [space, size] : bound_.arena_bytes()) bytes += size;
    return bytes;
  }

 private:
  program::BoundProgram bind(const Graph& graph, const std::vector<Tensor>& inputs) {
    const auto add = [&](program::BufferId id, Tensor tensor) {
      arguments_.buffers[lowered_.program.buffer(id).name] = program::BufferArgument::of(tensor, true);
    };
    for (size_t i = 0; i < inputs.size(); ++i) add(lowered_.inputs[i], inputs[i]);
    for (const ProgramConstant& constant : lowered_.constants) add(constant.buffer, constant.tensor);
    output_ = must(Tensor::zeros(kF32, *graph.body().output(0)->type().shape().static_dims()));
    add(lowered_.outputs[0], output_);
    return must(program::BoundProgram::bind(lowered_.program, arguments_));
  }

  GraphProgram lowered_;
  Tensor output_;
  program::Arguments arguments_;
  program::BoundProgram bound_;
};

void measure(const Case& c, int runs, StripMode mode) {
  const std::unique_ptr<Graph> graph = must(parse_graph(c.text));
  for (Op& op : graph->body()) must(infer_result_types(op));
  std::mt19937 random(1);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < graph->body().input_count(); ++i)
    inputs.push_back(testing::random_tensor(random, kF32, *graph->body().input(i)->type().shape().static_dims()));
  StripReport report;
  StripOptions options = reference_strips({});
  options.mode = mode;
  Runnable whole(*graph, inputs, {}), strips(*graph, inputs, strip_grouping(options, &report));
  std::vector<double> whole_times, strip_times, ratios;
  for (int i = 0; i < runs; ++i) {
    whole_times.push_back(whole.seconds());
    strip_times.push_back(strips.seconds());
    ratios.push_back(whole_times.back() / strip_times.back());
  }
  double predicted_whole = 0, predicted_strips = 0;
  for (const StripReport::Row& row : report.rows)
    predicted_whole += row.whole.seconds, predicted_strips += row.in_strips.seconds;
  std::printf("%s\n  whole %.1f ms, strips %.1f ms, ratio %.2f; predicted %.1f and %.1f ms, ratio %.2f\n", c.name,
              median(whole_times) * 1e3, median(strip_times) * 1e3, median(ratios), predicted_whole * 1e3,
              predicted_strips * 1e3, predicted_strips > 0 ? predicted_whole / predicted_strips : 1.0);
  std::printf("  arena: whole %.1f MB, strips %.2f MB; bits %s\n%s\n", static_cast<double>(whole.arena_bytes()) / 1e6,
              static_cast<double>(strips.arena_bytes()) / 1e6,
              whole.output().identical(strips.output()) ? "equal" : "DIFFER", report.to_string().c_str());
}

struct Prediction {
  double whole = 0, in_strips = 0;
  size_t ops = 0;
  explicit Prediction(const StripReport& report) {
    for (const StripReport::Row& row : report.rows)
      whole += row.whole.seconds, in_strips += row.in_strips.seconds, ops += row.ops.size();
  }
  double ratio() const { return in_strips > 0 ? whole / in_strips : 1; }
};

bool same_bits(const std::vector<Datum>& a, const std::vector<Datum>& b) {
  return std::ranges::equal(a, b, [](const Datum& x, const Datum& y) {
    return !x.is_tensor() || !y.is_tensor() || x.tensor().identical(y.tensor());
  });
}

// A model with static shapes, as the reference target runs it: whole, and with the strips of reference_strips().
void measure_model(const char* path, int runs, StripMode mode) {
  const std::unique_ptr<Graph> graph = must(import_model(path));
  must(must(standard_passes()).run(*graph));
  const std::vector<Datum> inputs = must(zoo::inputs(*graph, 1));
  RunnerOptions in_strips;
  StripReport report;
  StripOptions strip_options = reference_strips({}, default_pool().threads());
  strip_options.mode = mode;
  in_strips.lower.grouping = strip_grouping(strip_options, &report);
  const auto whole = must(GraphRunner::prepare(*graph, reference_kernels())),
             strips = must(GraphRunner::prepare(*graph, reference_kernels(), in_strips));
  std::vector<Datum> outputs[2];
  const auto seconds = [&](const GraphRunner& runner) {
    const auto begin = std::chrono::steady_clock::now();
    outputs[&runner == strips.get()] = must(runner.run(inputs, {.parallel = default_pool()}));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::vector<double> whole_times, strip_times, ratios;
  for (int i = 0; i < runs; ++i) {
    whole_times.push_back(seconds(*whole));
    strip_times.push_back(seconds(*strips));
    ratios.push_back(whole_times.back() / strip_times.back());
  }
  const Prediction predicted(report);
  std::printf(
      "%s\n  %zu chains of %zu operators; whole %.1f ms, strips %.1f ms, ratio %.2f; of the chains predicted %.1f and "
      "%.1f ms, ratio %.2f, of all %.2f; arena: whole %.2f MB, strips %.2f MB; bits %s\n",
      path, report.rows.size(), predicted.ops, median(whole_times) * 1e3, median(strip_times) * 1e3, median(ratios),
      predicted.whole * 1e3, predicted.in_strips * 1e3, predicted.ratio(),
      median(whole_times) / (median(whole_times) - predicted.whole + predicted.in_strips),
      static_cast<double>(whole->arena_bytes()) / 1e6, static_cast<double>(strips->arena_bytes()) / 1e6,
      same_bits(outputs[0], outputs[1]) ? "equal" : "DIFFER");
  for (const StripReport::Row& row : report.rows)
    std::printf("  %zu operators, strips of %s: predicted %.2f and %.2f ms\n", row.ops.size(), row.strips.c_str(),
                row.whole.seconds * 1e3, row.in_strips.seconds * 1e3);
}

}  // namespace
}  // namespace tenon::irgen

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::max(1, std::atoi(argv[1])) : 9;
  auto mode = tenon::irgen::StripMode::automatic;
  bool has_models = false;
  for (int i = 2; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--always")
      mode = tenon::irgen::StripMode::always;
    else if (std::string_view(argv[i]) == "--memory")
      mode = tenon::irgen::StripMode::memory;
    else
      has_models = true, tenon::irgen::measure_model(argv[i], runs, mode);
  }
  for (size_t i = 0; !has_models && i < std::size(tenon::irgen::kCases); ++i)
    tenon::irgen::measure(tenon::irgen::kCases[i], runs, mode);
}
