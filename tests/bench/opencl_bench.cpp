// Fused elementwise chains on an OpenCL device against its own copy of the same bytes (clEnqueueCopyBuffer), and
// products by their arithmetic: medians of interleaved runs in one process, on buffers that lie on the device.
//
//   opencl_bench [rounds]        # TENON_BENCH_DEVICE=gpu: the first GPU
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include <tenon/ir/text.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/plugin/backend.hpp>
#include <tenon/support/str.hpp>

#include "opencl/backend.hpp"
#include "opencl/cl_device.hpp"

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

Result<void> arithmetic(Bench& bench, const std::string& name, const std::string& text, const std::vector<Dims>& shapes,
                        double operations) {
  TENON_TRY(executable, bench.compiled(text));
  std::vector<RunValue> inputs;
  for (const Dims& dims : shapes) {
    TENON_TRY(value, bench.input(dims));
    inputs.push_back(std::move(value));
  }
  TENON_OK(run_once(bench, *executable, inputs));
  std::vector<Seconds> times;
  for (int round = 0; round < bench.rounds; ++round) {
    TENON_TRY(taken, seconds_of([&] { return run_once(bench, *executable, inputs); }));
    times.push_back(taken);
  }
  std::printf("%-28s  %8.3f ms  %7.1f GFLOP/s\n", name.c_str(), 1e3 * median(times), 1e-9 * operations / median(times));
  return {};
}

Result<void> run(int rounds) {
  TENON_TRY(bench, Bench::make(rounds));
  std::printf("%s, %d rounds\n", bench.device->info().name, rounds);
  for (const int64_t elements : {int64_t{1} << 16, int64_t{1} << 20, int64_t{1} << 24, int64_t{1} << 26})
    TENON_OK(chain(bench, elements));
  for (const int64_t n : {256, 1024})
    TENON_OK(
        arithmetic(bench, str("MatMul ", n),
                   str("graph @g(%a: f32[", n, ",", n, "], %b: f32[", n, ",", n, "]) -> %y {\n %y = MatMul %a, %b\n}"),
                   {{n, n}, {n, n}}, 2.0 * static_cast<double>(n * n * n)));
  TENON_OK(arithmetic(bench, "Gemm 1x1024x1024, B transposed",
                      "graph @g(%a: f32[1,1024], %b: f32[1024,1024]) -> %y {\n %y = Gemm %a, %b {transB = 1}\n}",
                      {{1, 1024}, {1024, 1024}}, 2.0 * 1024 * 1024));
  return arithmetic(
      bench, "Conv 64x56x56, 64 of 3x3",
      "graph @g(%x: f32[1,64,56,56], %w: f32[64,64,3,3]) -> %y {\n %y = Conv %x, %w {pads = [1, 1, 1, 1]}\n}",
      {{1, 64, 56, 56}, {64, 64, 3, 3}}, 2.0 * 64 * 56 * 56 * 64 * 9);
}

}  // namespace
}  // namespace tenon::opencl

int main(int argc, char** argv) {
  const auto done = tenon::opencl::run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 15);
  if (done.ok()) return 0;
  std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
  return 1;
}
