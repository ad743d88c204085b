// Fused elementwise chains on an OpenCL device compared with its own copy of the same bytes (clEnqueueCopyBuffer), and
// products, convolutions and pools compared with the best of the hand-written kernels (opencl_by_hand.hpp), whose
// results must be the same: medians of interleaved runs in one process, on buffers in device memory.
//
//   opencl_bench [--filter RE] [--rounds 15] [--together 1] [--json] [--device cpu|gpu|any] [--option KEY=VALUE]...
//                [--forms]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <tenon/ir/text.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/plugin/backend.hpp>
#include <tenon/support/median.hpp>
#include <tenon/support/str.hpp>

#include "opencl/backend.hpp"
#include "opencl/cl_stream.hpp"
#include "opencl_bench_cases.hpp"

namespace tenon::opencl {
namespace {

using Seconds = double;

struct Options {
  std::string filter = ".*", device = "cpu";
  int rounds = 15, together = 1;
  std::vector<std::string> settings;
  bool json = false, forms = false;
};

struct Bench {
  std::unique_ptr<TargetBackend> backend;
  std::shared_ptr<ClDevice> device;
  std::unique_ptr<ClStream> stream;
  Options options;
  nlohmann::json rows = nlohmann::json::array();

  static Result<Bench> make(const Options& options) {
    TargetDescription target;
    target.name = "opencl-bench", target.plugin = "opencl";
    target.options.add("device_type", Setting::word(options.device));
    for (const std::string& setting : options.settings) {
      const size_t sign = setting.find('=');
      if (sign == std::string::npos) return error(Code::invalid_argument, "--option ", setting, " is no KEY=VALUE");
      target.options.add(setting.substr(0, sign), Setting::word(setting.substr(sign + 1)));
    }
    Bench made;
    made.options = options;
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

// Time of one run when `together` runs are enqueued before waiting. `enqueue` only enqueues.
template <class Do>
Result<Seconds> seconds_of(Bench& bench, const Do& enqueue, int together) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < together; ++i) TENON_OK(enqueue());
  TENON_OK(bench.stream->synchronize());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / together;
}

Result<RunValue> enqueue(Bench& bench, const Executable& executable, const std::vector<RunValue>& inputs) {
  std::vector<RunValue> outputs(executable.outputs().size());
  TENON_TRY(event, executable.enqueue(*bench.stream, inputs, outputs, {}));
  return std::move(outputs.front());
}

Result<RunValue> run_once(Bench& bench, const Executable& executable, const std::vector<RunValue>& inputs) {
  TENON_TRY(output, enqueue(bench, executable, inputs));
  TENON_OK(bench.stream->synchronize());
  return output;
}

// A hand-written kernel, built.
class ByHand {
 public:
  static Result<ByHand> make(Bench& bench, const HandKernel& kernel) {
    ByHand made;
    TENON_TRY(programs, bench.device->programs());
    TENON_TRY(program, programs->get(kernel.source, str("a kernel by hand, ", kernel.name)));
    made.program_ = std::move(program);
    cl_int code = CL_SUCCESS;
    made.kernel_ = KernelObject(bench.device->cl().clCreateKernel(made.program_->program->get(), "by_hand", &code));
    TENON_OK(check(code, "clCreateKernel"));
    made.name_ = kernel.name, made.groups_ = kernel.groups;
    return made;
  }
  const std::string& name() const { return name_; }

  Result<void> enqueue(Bench& bench, const std::vector<cl_mem>& buffers) {
    const Api& cl = bench.device->cl();
    for (size_t i = 0; i < buffers.size(); ++i)
      TENON_OK(
          check(cl.clSetKernelArg(kernel_.get(), static_cast<cl_uint>(i), sizeof(cl_mem), &buffers[i]), "argument"));
    const size_t one = 1;
    return check(cl.clEnqueueNDRangeKernel(bench.stream->queue(), kernel_.get(), 1, nullptr, &groups_, &one, 0, nullptr,
                                           nullptr),
                 "clEnqueueNDRangeKernel");
  }

 private:
  std::shared_ptr<const BuiltProgram> program_;
  KernelObject kernel_;
  std::string name_;
  size_t groups_ = 1;
};

// A competitor that alternates with the plugin's runs.
struct Peer {
  std::string name;
  std::function<Result<void>()> enqueue;
};

void report(Bench& bench, const Work& work, const std::vector<Seconds>& ours, const Peer* peer,
            const std::vector<Seconds>& theirs, size_t launches) {
  const auto rate = [&](Seconds seconds) { return 1e-9 * work.amount / seconds; };
  nlohmann::json row{{"case", work.name},          {"ms", 1e3 * median(ours)}, {"unit", work.unit},
                     {"ours", rate(median(ours))}, {"launches", launches},     {"rounds", ours.size()}};
  if (peer) {
    row["peer"] = peer->name, row["theirs"] = rate(median(theirs));
    row["share"] = median(theirs) / median(ours);
  }
  if (!bench.options.json) {
    std::printf("%-34s %9.3f ms %8.1f %-7s", work.name.c_str(), 1e3 * median(ours), rate(median(ours)),
                std::string(work.unit).c_str());
    if (peer)
      std::printf("  %8.1f  share %.2f  %s", rate(median(theirs)), median(theirs) / median(ours), peer->name.c_str());
    std::printf("\n");
    std::fflush(stdout);
  }
  bench.rows.push_back(std::move(row));
}

Result<void> compare_with(Bench& bench, const Work& work, const Executable& executable,
                          const std::vector<RunValue>& inputs, Peer* peer) {
  std::vector<Seconds> ours, theirs;
  for (int round = 0; round < bench.options.rounds; ++round) {
    const auto run = [&]() -> Result<void> {
      const auto output = enqueue(bench, executable, inputs);
      return output.ok() ? Result<void>() : Result<void>(output.error());
    };
    TENON_TRY(taken, seconds_of(bench, run, bench.options.together));
    ours.push_back(taken);
    if (!peer) continue;
    TENON_TRY(other, seconds_of(bench, peer->enqueue, bench.options.together));
    theirs.push_back(other);
  }
  report(bench, work, ours, peer, theirs, executable.kernels().size());
  return {};
}

Result<std::vector<float>> values_of(Bench& bench, const Buffer& buffer, const Dims& dims) {
  size_t count = 1;
  for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
  std::vector<float> data(count);
  TENON_TRY(event, bench.stream->copy_to_host(std::as_writable_bytes(std::span(data)), buffer, 0));
  TENON_OK(event->wait());
  return data;
}

// A hand-written kernel that computes something else is useless for comparison.
Result<void> same(const std::vector<float>& a, const std::vector<float>& b, std::string_view form) {
  float most = 0, apart = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::fabs(a[i]));
    apart = std::max(apart, std::isfinite(b[i]) ? std::fabs(a[i] - b[i]) : std::numeric_limits<float>::infinity());
  }
  if (apart <= 1e-4f * most) return {};
  return error(Code::internal, "the kernel by hand, ", form, ", differs by ", apart, " where the largest is ", most);
}

// The fastest of the forms.
Result<std::optional<ByHand>> best_by_hand(Bench& bench, const Work& work, const std::vector<cl_mem>& buffers,
                                           const Buffer& result, const std::vector<float>& expected) {
  constexpr int kTries = 5;
  std::optional<ByHand> best;
  Seconds least = std::numeric_limits<double>::infinity();
  for (const HandKernel& kernel : work.hand) {
    TENON_TRY(made, ByHand::make(bench, kernel));
    TENON_OK(made.enqueue(bench, buffers));
    TENON_OK(bench.stream->synchronize());
    TENON_TRY(got, values_of(bench, result, work.result));
    TENON_OK(same(expected, got, kernel.name));
    Seconds taken = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kTries; ++i) {
      TENON_TRY(once, seconds_of(
                          bench, [&] { return made.enqueue(bench, buffers); }, 1));
      taken = std::min(taken, once);
    }
    if (bench.options.forms)
      std::printf("    %-30s %8.3f ms %8.1f\n", kernel.name.c_str(), 1e3 * taken, 1e-9 * work.amount / taken);
    if (taken < least) least = taken, best = std::move(made);
  }
  return best;
}

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
  TENON_TRY(first, run_once(bench, *executable, inputs));
  TENON_TRY(expected, values_of(bench, *first.device.buffer, work.result));
  TENON_TRY(hand, best_by_hand(bench, work, buffers, *to.device.buffer, expected));
  if (!hand) return compare_with(bench, work, *executable, inputs, nullptr);
  Peer peer{hand->name(), [&] { return hand->enqueue(bench, buffers); }};
  return compare_with(bench, work, *executable, inputs, &peer);
}

// Reads its inputs, writes its output: the bytes of a copy.
Result<void> chain(Bench& bench, const Work& work) {
  TENON_TRY(executable, bench.compiled(work.text));
  std::vector<RunValue> inputs;
  for (const Dims& dims : work.shapes) {
    TENON_TRY(value, bench.input(dims));
    inputs.push_back(std::move(value));
  }
  const auto bytes = static_cast<size_t>(work.amount / 2);
  TENON_TRY(from, bench.input({static_cast<int64_t>(bytes / sizeof(float))}));
  TENON_TRY(to, bench.device->allocate_buffer(bytes));
  Peer copy{"the device's copy", [&]() -> Result<void> {
              TENON_TRY(event, bench.stream->copy(*to, 0, *from.device.buffer, 0, bytes));
              return {};
            }};
  TENON_TRY(first, run_once(bench, *executable, inputs));
  TENON_OK(copy.enqueue());
  return compare_with(bench, work, *executable, inputs, &copy);
}

Result<void> peak(Bench& bench) {
  constexpr int64_t kSteps = 200000;
  const HandKernel kernel = peak_by_hand(kSteps);
  TENON_TRY(hand, ByHand::make(bench, kernel));
  TENON_TRY(value, bench.input({static_cast<int64_t>(64 * kernel.groups)}));
  const cl_mem buffer = cl_buffer(*value.device.buffer).object();
  std::vector<Seconds> times;
  for (int round = 0; round < bench.options.rounds; ++round) {
    TENON_TRY(taken, seconds_of(
                         bench,
                         [&] {
                           return hand.enqueue(bench, {buffer, buffer, buffer});
                         },
                         1));
    times.push_back(taken);
  }
  const Work work{.name = "multiply-adds in registers",
                  .amount = 2.0 * 16 * 24 * static_cast<double>(kernel.groups) * static_cast<double>(kSteps)};
  report(bench, work, times, nullptr, {}, 1);
  return {};
}

Result<void> run(const Options& options) {
  TENON_TRY(bench, Bench::make(options));
  const std::regex filter(options.filter);
  if (!options.json)
    std::printf("%s, %d rounds; ours, the best by hand, its form\n", bench.device->info().name, options.rounds);
  const auto wanted = [&](const std::string& name) { return std::regex_search(name, filter); };
  for (const Work& work : elementwise_works())
    if (wanted(work.name)) TENON_OK(chain(bench, work), work.name);
  // The hardware that the hand-written kernels are written for.
  const bool wide = bench.device->info().float_lanes == 16;
  if (wide && wanted("multiply-adds in registers")) TENON_OK(peak(bench));
  for (Work& work : arithmetic_works()) {
    if (!wanted(work.name)) continue;
    if (!wide) work.hand.clear();
    TENON_OK(arithmetic(bench, work), work.name);
  }
  if (options.json) std::printf("%s\n", bench.rows.dump(2).c_str());
  return {};
}

}  // namespace
}  // namespace tenon::opencl

int main(int argc, char** argv) {
  tenon::opencl::Options options;
  CLI::App app{"The OpenCL plugin against the device's copy and kernels by hand"};
  app.add_option("--filter", options.filter, "Cases whose names this regular expression finds");
  app.add_option("--rounds", options.rounds, "Runs of each, in turn")->check(CLI::Range(1, 10000));
  app.add_option("--together", options.together, "Runs that are enqueued before one is waited for")
      ->check(CLI::Range(1, 10000));
  app.add_option("--option", options.settings, "KEY=VALUE: an option of the target; may be repeated");
  app.add_option("--device", options.device, "cpu, gpu or any");
  app.add_flag("--json", options.json);
  app.add_flag("--forms", options.forms, "Each form of the kernels by hand as well")->excludes("--json");
  CLI11_PARSE(app, argc, argv);
  const auto done = tenon::opencl::run(options);
  if (done.ok()) return 0;
  std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
  return 1;
}
