// Fused elementwise chains on an OpenCL device against its own copy of the same bytes (clEnqueueCopyBuffer), and
// products and convolutions against kernels by hand (opencl_by_hand.hpp): medians of interleaved runs in one process,
// on buffers that lie on the device.
//
//   opencl_bench [rounds]        # TENON_BENCH_DEVICE=gpu: the first GPU
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tenon/ir/text.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/plugin/backend.hpp>
#include <tenon/support/str.hpp>

#include "opencl/backend.hpp"
#include "opencl/cl_device.hpp"
#include "opencl_by_hand.hpp"

namespace tenon::opencl {
namespace {

using Seconds = double;

struct Bench {
  std::unique_ptr<TargetBackend> backend;
  std::shared_ptr<ClDevice> device;
  std::unique_ptr<ClStream> stream;
  int rounds = 15;

  static Result<Bench> make(int rounds) {
    TargetDescription target;
    target.name = "opencl-bench", target.plugin = "opencl";
    const char* type = std::getenv("TENON_BENCH_DEVICE");
    target.options.add("device_type", Setting::word(type ? type : "cpu"));
    Bench made;
    made.rounds = rounds;
    TENON_TRY(backend, create_backend(target));
    made.backend = std::move(backend);
    made.device = std::static_pointer_cast<ClDevice>(made.backend->device());
    TENON_TRY(stream, made.device->open_stream());
    made.stream = std::move(stream);
    return made;
  }

  Result<std::unique_ptr<Executable>> compiled(const std::string& text) {
    TENON_TRY(graph, parse_graph(text));
    PassManager passes;
    TENON_OK(backend->add_tensor_sel(passes));
    TENON_TRY(report, passes.run(*graph));
    return backend->build(std::move(graph));
  }

  Result<RunValue> input(const Dims& dims) {
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    std::vector<float> data(static_cast<size_t>(count));
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 251) / 251 - 0.5f;
    TENON_TRY(buffer, device->allocate_buffer(data.size() * sizeof(float)));
    TENON_TRY(copied, stream->copy_to_device(*buffer, 0, std::as_bytes(std::span(data))));
    TENON_OK(copied->wait());
    return RunValue{{}, {kF32, dims, std::move(buffer), 0}};
  }
};

Result<Seconds> seconds_of(const std::function<Result<void>()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  TENON_OK(work());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Seconds median(std::vector<Seconds> all) {
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
  return all[all.size() / 2];
}

Result<void> run_once(Bench& bench, const Executable& executable, const std::vector<RunValue>& inputs) {
  std::vector<RunValue> outputs(executable.outputs().size());
  TENON_TRY(event, executable.enqueue(*bench.stream, inputs, outputs, {}));
  return event->wait();
}

// Reads x, writes y: the bytes of a copy.
Result<void> chain(Bench& bench, int64_t elements) {
  TENON_TRY(executable,
            bench.compiled(str(
                "graph @chain(%x: f32[", elements,
                "]) -> %y {\n %a = Relu %x\n %b = Mul %a, %x\n %c = Add %b, %a\n %d = Sub %c, %x\n %y = Abs %d\n}")));
  TENON_TRY(x, bench.input({elements}));
  const size_t bytes = static_cast<size_t>(elements) * sizeof(float);
  TENON_TRY(to, bench.device->allocate_buffer(bytes));
  const auto copy = [&]() -> Result<void> {
    TENON_TRY(event, bench.stream->copy(*to, 0, *x.device.buffer, 0, bytes));
    return event->wait();
  };
  const std::vector<RunValue> inputs{x};
  TENON_OK(run_once(bench, *executable, inputs));
  TENON_OK(copy());
  std::vector<Seconds> chains, copies;
  for (int round = 0; round < bench.rounds; ++round) {
    TENON_TRY(ours, seconds_of([&] { return run_once(bench, *executable, inputs); }));
    TENON_TRY(theirs, seconds_of(copy));
    chains.push_back(ours), copies.push_back(theirs);
  }
  const double moved = 2e-9 * static_cast<double>(bytes);
  std::printf("chain of 5  %9zu KB  %7.2f GB/s  copy %7.2f GB/s  %.2f of it, %zu launch(es)\n", bytes / 1024,
              moved / median(chains), moved / median(copies), median(copies) / median(chains),
              executable->kernels().size());
  return {};
}

// A kernel of opencl_by_hand.hpp on three buffers, in as many work groups as jobs.
class ByHand {
 public:
  static Result<ByHand> make(Bench& bench, const std::string& source, size_t groups) {
    ByHand made;
    TENON_TRY(programs, bench.device->programs());
    TENON_TRY(program, programs->get(source, "a kernel by hand"));
    made.program_ = std::move(program);
    cl_int code = CL_SUCCESS;
    made.kernel_ = KernelObject(bench.device->cl().clCreateKernel(made.program_->program->get(), "by_hand", &code));
    TENON_OK(check(code, "clCreateKernel"));
    made.groups_ = groups;
    return made;
  }
  Result<void> run(Bench& bench, const std::vector<cl_mem>& buffers) {
    const Api& cl = bench.device->cl();
    for (size_t i = 0; i < buffers.size(); ++i)
      TENON_OK(
          check(cl.clSetKernelArg(kernel_.get(), static_cast<cl_uint>(i), sizeof(cl_mem), &buffers[i]), "argument"));
    const size_t one = 1;
    TENON_OK(check(cl.clEnqueueNDRangeKernel(bench.stream->queue(), kernel_.get(), 1, nullptr, &groups_, &one, 0,
                                             nullptr, nullptr),
                   "clEnqueueNDRangeKernel"));
    return check(cl.clFinish(bench.stream->queue()), "clFinish");
  }

 private:
  std::shared_ptr<const BuiltProgram> program_;
  KernelObject kernel_;
  size_t groups_ = 1;
};

// `hand`: a source by hand for the same buffers, or none.
struct Work {
  std::string name, text;
  std::vector<Dims> shapes;
  Dims result;
  double operations = 0;
  std::string hand = {};
};

Result<void> arithmetic(Bench& bench, const Work& work) {
  TENON_TRY(executable, bench.compiled(work.text));
  std::vector<RunValue> inputs;
  std::vector<cl_mem> buffers;
  for (const Dims& dims : work.shapes) {
    TENON_TRY(value, bench.input(dims));
    buffers.push_back(cl_buffer(*value.device.buffer).object());
    inputs.push_back(std::move(value));
  }
  TENON_TRY(to, bench.input(work.result));
  buffers.push_back(cl_buffer(*to.device.buffer).object());
  std::optional<ByHand> hand;
  if (!work.hand.empty()) {
    TENON_TRY(made, ByHand::make(bench, work.hand, 16));
    hand = std::move(made);
    TENON_OK(hand->run(bench, buffers));
  }
  TENON_OK(run_once(bench, *executable, inputs));
  std::vector<Seconds> times, by_hand;
  for (int round = 0; round < bench.rounds; ++round) {
    TENON_TRY(taken, seconds_of([&] { return run_once(bench, *executable, inputs); }));
    times.push_back(taken);
    if (!hand) continue;
    TENON_TRY(theirs, seconds_of([&] { return hand->run(bench, buffers); }));
    by_hand.push_back(theirs);
  }
  std::printf("%-32s  %8.3f ms  %7.1f GFLOP/s", work.name.c_str(), 1e3 * median(times),
              1e-9 * work.operations / median(times));
  if (hand)
    std::printf("  by hand %7.1f  %.2f of it", 1e-9 * work.operations / median(by_hand),
                median(by_hand) / median(times));
  std::printf("\n");
  return {};
}

// Multiply-adds of both units, in registers.
Result<void> peak(Bench& bench) {
  constexpr int kGroups = 4;
  constexpr double kSteps = 2e5;
  TENON_TRY(hand,
            ByHand::make(bench, str("#define PEAK_STEPS ", static_cast<int64_t>(kSteps), "\n", kPeakByHand), kGroups));
  TENON_TRY(value, bench.input({64 * kGroups}));
  const cl_mem buffer = cl_buffer(*value.device.buffer).object();
  std::vector<Seconds> times;
  for (int round = 0; round < bench.rounds; ++round) {
    TENON_TRY(taken, seconds_of([&] { return hand.run(bench, {buffer, buffer, buffer}); }));
    times.push_back(taken);
  }
  std::printf("multiply-adds in registers        %.1f GFLOP/s\n", 2e-9 * 16 * 24 * kGroups * kSteps / median(times));
  return {};
}

Work matmul(int64_t m, int64_t n, int64_t k, bool by_hand, std::string_view behind = "") {
  Work work{.name = str("MatMul ", m, "x", k, "x", n, behind.empty() ? "" : " and Relu")};
  work.text = str("graph @g(%a: f32[", m, ",", k, "], %b: f32[", k, ",", n, "]) -> %y {\n %",
                  behind.empty() ? "y" : "m", " = MatMul %a, %b\n", behind, "}");
  work.shapes = {{m, k}, {k, n}}, work.result = {m, n};
  work.operations = 2.0 * static_cast<double>(m * n * k);
  if (by_hand) work.hand = str("#define M ", m, "\n#define N ", n, "\n#define K ", k, "\n", kHandHead, kGemmByHand);
  return work;
}

Work conv(int64_t channels, int64_t size, int64_t outputs, int64_t kernel, int64_t stride, bool by_hand) {
  const int64_t out = size / stride, pad = kernel / 2;
  Work work{.name = str("Conv ", channels, "x", size, "x", size, ", ", outputs, " of ", kernel, "x", kernel,
                        stride > 1 ? "/2" : "")};
  work.text = str("graph @g(%x: f32[1,", channels, ",", size, ",", size, "], %w: f32[", outputs, ",", channels, ",",
                  kernel, ",", kernel, "]) -> %y {\n %y = Conv %x, %w {strides = [", stride, ", ", stride,
                  "], pads = [", pad, ", ", pad, ", ", pad, ", ", pad, "]}\n}");
  work.shapes = {{1, channels, size, size}, {outputs, channels, kernel, kernel}};
  work.result = {1, outputs, out, out};
  work.operations = 2.0 * static_cast<double>(outputs * out * out * channels * kernel * kernel);
  if (by_hand) work.hand = str(kHandHead, kConvByHand);
  return work;
}

Result<void> run(int rounds) {
  TENON_TRY(bench, Bench::make(rounds));
  std::printf("%s, %d rounds\n", bench.device->info().name, rounds);
  for (const int64_t elements : {int64_t{1} << 16, int64_t{1} << 20, int64_t{1} << 24, int64_t{1} << 26})
    TENON_OK(chain(bench, elements));
  const bool wide = bench.device->info().float_lanes == 16;  // what the kernels by hand are written for
  if (wide) TENON_OK(peak(bench));
  TENON_OK(arithmetic(bench, matmul(256, 256, 256, wide)));
  TENON_OK(arithmetic(bench, matmul(1024, 1024, 1024, wide)));
  TENON_OK(arithmetic(bench, matmul(128, 768, 768, wide)));
  TENON_OK(arithmetic(bench, matmul(128, 768, 768, wide, " %y = Relu %m\n")));
  TENON_OK(
      arithmetic(bench, {"Gemm 1x1024x1024, B transposed",
                         "graph @g(%a: f32[1,1024], %b: f32[1024,1024]) -> %y {\n %y = Gemm %a, %b {transB = 1}\n}",
                         {{1, 1024}, {1024, 1024}},
                         {1, 1024},
                         2.0 * 1024 * 1024}));
  TENON_OK(arithmetic(bench, conv(64, 56, 64, 3, 1, wide)));
  TENON_OK(arithmetic(bench, conv(3, 224, 64, 7, 2, false)));
  TENON_OK(arithmetic(bench, conv(128, 28, 128, 3, 1, false)));
  TENON_OK(arithmetic(bench, conv(256, 14, 256, 3, 1, false)));
  TENON_OK(arithmetic(bench, conv(512, 7, 512, 3, 1, false)));
  return arithmetic(bench, conv(64, 56, 256, 1, 1, false));
}

}  // namespace
}  // namespace tenon::opencl

int main(int argc, char** argv) {
  const auto done = tenon::opencl::run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 15);
  if (done.ok()) return 0;
  std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
  return 1;
}
