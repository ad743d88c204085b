// Runs with copies to and from the device: step by step, compared with the overlap that one or two streams achieve, and
// with inputs in pinned memory that kernels read directly. Medians of interleaved rounds of 16 runs in one process.
//
//   hidden = (serial - this) / (copies of a round alone)
//
//   opencl_transfer_bench [--rounds 9] [--device cpu|gpu|any]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <tenon/ir/text.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/plugin/backend.hpp>
#include <tenon/support/median.hpp>
#include <tenon/support/str.hpp>

#include "opencl/backend.hpp"
#include "opencl/cl_stream.hpp"

namespace tenon::opencl {
namespace {


constexpr int kRuns = 16;
constexpr size_t kDeep = 2;  // buffers, and streams

struct Work {
  std::string name, text;
  Dims input;
};

std::vector<Work> works() {
  const auto chain = [](int64_t elements) {
    return Work{str("chain of 5, ", elements * 4 / 1024, " KB"),
                str("graph @chain(%x: f32[", elements,
                    "]) -> %y {\n %a = Relu %x\n %b = Mul %a, %x\n %c = Add %b, %a\n %d = Sub %c, %x\n %y = Abs %d\n}"),
                {elements}};
  };
  const auto product = [](int64_t n) {
    return Work{str("MatMul of two ", n, "x", n, " inputs' halves"),
                str("graph @g(%x: f32[2,", n, ",", n, "]) -> %y {\n %a, %b = Split %x {axis = 0, num_outputs = 2}\n",
                    " %y = MatMul %a, %b\n}"),
                {2, n, n}};
  };
  return {chain(1 << 16), chain(1 << 20), chain(1 << 22), product(256), product(512)};
}

// The buffers of one case: on the host, and on the device as many as there are overlapping runs.
class Case {
 public:
  static Result<Case> make(TargetBackend& backend, const Work& work) {
    Case made;
    made.device_ = std::static_pointer_cast<ClDevice>(backend.device());
    TENON_TRY(graph, parse_graph(work.text));
    PassManager passes;
    TENON_OK(backend.add_tensor_sel(passes));
    TENON_TRY(report, passes.run(*graph));
    TENON_TRY(executable, backend.build(std::move(graph)));
    made.executable_ = std::move(executable);
    TENON_TRY(in, Tensor::allocate(kF32, work.input));
    for (size_t i = 0; i < in.bytes() / 4; ++i)
      reinterpret_cast<float*>(in.mutable_data())[i] = static_cast<float>(i % 251) / 251 - 0.5f;
    made.in_ = std::move(in);
    for (size_t i = 0; i < kDeep; ++i) {
      TENON_TRY(stream, made.device_->open_stream());
      TENON_TRY(global, made.device_->allocate("global", made.in_.bytes()));
      TENON_TRY(pinned, made.device_->allocate("pinned", made.in_.bytes()));
      std::memcpy(pinned->host_data(), made.in_.data(), made.in_.bytes());
      made.streams_.push_back(std::move(stream));
      made.global_.push_back({{}, {kF32, work.input, std::move(global), 0}});
      made.pinned_.push_back({{}, {kF32, work.input, std::move(pinned), 0}});
    }
    TENON_OK(made.serial());
    return made;
  }

  Result<void> serial() {
    for (int i = 0; i < kRuns; ++i) {
      TENON_OK(up(0, 0));
      TENON_OK(streams_[0]->synchronize());
      TENON_OK(run(0, global_[0]));
      TENON_OK(streams_[0]->synchronize());
      TENON_OK(down(0));
      TENON_OK(streams_[0]->synchronize());
    }
    return {};
  }
  Result<void> one_stream() {
    for (size_t i = 0; i < kRuns; ++i) {
      TENON_OK(up(0, i % kDeep));
      TENON_OK(run(0, global_[i % kDeep]));
      TENON_OK(down(0));
    }
    return streams_[0]->synchronize();
  }
  Result<void> two_streams() {
    for (size_t i = 0; i < kRuns; ++i) {
      const size_t s = i % kDeep;
      TENON_OK(up(s, s));
      TENON_OK(run(s, global_[s]));
      TENON_OK(down(s));
    }
    for (const auto& stream : streams_) TENON_OK(stream->synchronize());
    return {};
  }
  // The host has filled them before: what is saved if a producer writes there directly.
  Result<void> from_pinned() {
    for (size_t i = 0; i < kRuns; ++i) {
      TENON_OK(run(0, pinned_[i % kDeep]));
      TENON_OK(down(0));
    }
    return streams_[0]->synchronize();
  }
  Result<void> copies() {
    for (int i = 0; i < kRuns; ++i) {
      TENON_OK(up(0, 0));
      TENON_OK(streams_[0]->synchronize());
      TENON_OK(down(0));
      TENON_OK(streams_[0]->synchronize());
    }
    return {};
  }

 private:
  Result<void> up(size_t stream, size_t to) {
    TENON_TRY(event, streams_[stream]->copy_to_device(*global_[to].device.buffer, 0, {in_.data(), in_.bytes()}));
    return {};
  }
  Result<void> run(size_t stream, const RunValue& input) {
    std::vector<RunValue> outputs(1);
    TENON_TRY(event, executable_->enqueue(*streams_[stream], std::span(&input, 1), outputs, {}));
    output_[stream] = outputs[0];
    return {};
  }
  Result<void> down(size_t stream) {
    const DeviceTensor& from = output_[stream].device;
    TENON_TRY(count, element_count(from.dims));
    out_[stream].resize(static_cast<size_t>(count) * sizeof(float));
    TENON_TRY(event, streams_[stream]->copy_to_host(out_[stream], *from.buffer, 0));
    return {};
  }

  std::shared_ptr<ClDevice> device_;
  std::unique_ptr<Executable> executable_;
  Tensor in_;
  std::vector<std::unique_ptr<ClStream>> streams_;
  std::vector<RunValue> global_, pinned_;
  RunValue output_[kDeep];
  std::vector<std::byte> out_[kDeep];
};

Result<void> measure(TargetBackend& backend, const Work& work, int rounds) {
  TENON_TRY(one, Case::make(backend, work));
  const std::pair<const char*, Result<void> (Case::*)()> ways[] = {{"copies alone", &Case::copies},
                                                                   {"serial", &Case::serial},
                                                                   {"one stream", &Case::one_stream},
                                                                   {"two streams", &Case::two_streams},
                                                                   {"pinned inputs", &Case::from_pinned}};
  std::vector<double> times[std::size(ways)];
  for (int round = 0; round <= rounds; ++round) {
    for (size_t w = 0; w < std::size(ways); ++w) {
      const auto begin = std::chrono::steady_clock::now();
      TENON_OK((one.*ways[w].second)());
      const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
      if (round > 0) times[w].push_back(taken.count() / kRuns);  // the first warms up
    }
  }
  std::printf("%s, us a run\n", work.name.c_str());
  const double copies = median(times[0]), serial = median(times[1]);
  for (size_t w = 0; w < std::size(ways); ++w) {
    const double us = median(times[w]);
    std::printf("  %-14s %9.1f", ways[w].first, us);
    if (w > 1)
      std::printf("   %.2f of serial, %3.0f%% of the copies hidden", us / serial, 100 * (serial - us) / copies);
    std::printf("\n");
  }
  return {};
}

Result<void> run(const std::string& device, int rounds) {
  TargetDescription target;
  target.name = "opencl-bench", target.plugin = "opencl";
  target.options.add("device_type", Setting::word(device));
  TENON_TRY(backend, create_backend(target));
  const DeviceInfo& info = std::static_pointer_cast<ClDevice>(backend->device())->info();
  std::printf("%s, %u compute units, %d rounds\n", info.name, info.compute_units, rounds);
  for (const Work& work : works()) TENON_OK(measure(*backend, work, rounds), work.name);
  return {};
}

}  // namespace
}  // namespace tenon::opencl

int main(int argc, char** argv) {
  std::string device = "cpu";
  int rounds = 9;
  CLI::App app{"Copies of the OpenCL plugin beside its kernels"};
  app.add_option("--rounds", rounds, "Rounds of each, in turn")->check(CLI::Range(1, 1000));
  app.add_option("--device", device, "cpu, gpu or any");
  CLI11_PARSE(app, argc, argv);
  const auto done = tenon::opencl::run(device, rounds);
  if (done.ok()) return 0;
  std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
  return 1;
}
