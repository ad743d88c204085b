// The device of these tests, and functions that run single kernels on it.
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <tenon/snippet/body/params.hpp>

#include "opencl/assemble.hpp"
#include "opencl/cl_stream.hpp"
#include "opencl/compiler.hpp"
#include "opencl/emitters/emitters.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl::testing {

// TENON_TEST_OPENCL_DEVICE=gpu (or any) runs the tests on another device: a GPU, or a simulator of one.
inline TargetDescription cpu_target() {
  const char* type = std::getenv("TENON_TEST_OPENCL_DEVICE");
  TargetDescription target;
  target.name = "opencl-cpu";
  target.plugin = "opencl";
  target.options.add("device_type", Setting::word(type ? type : "cpu"));
  return target;
}

// Adds guard zones (guard_zones.hpp) of 256 bytes around every buffer.
inline TargetDescription guarded_target(TargetDescription target) {
  target.options.add("guard_zones", Setting::word("256"));
  return target;
}

// Opens the device of cpu_target(). By default it is of type CPU, and shares the memory of the process.
class OpenclTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto found = device_of(cpu_target());
    if (!found.ok()) GTEST_SKIP() << found.error().message() << " (Debian: pocl-opencl-icd)";
    device = ClDevice::of(*found);
    target = described(cpu_target(), *found);
    table = *jitter_table();
    stream = *device->open_stream();
  }
  std::shared_ptr<ClDevice> device;
  TargetDescription target;
  const codegen::JitterTable* table = nullptr;
  std::unique_ptr<ClStream> stream;
};

using Bytes = std::vector<std::byte>;

// Replaces a function of the driver during its lifetime.
template <class F>
class Fault {
 public:
  Fault(F Api::*member, F fake) : member_(member), was_(api_for_tests().*member) { api_for_tests().*member = fake; }
  ~Fault() { api_for_tests().*member_ = was_; }

 private:
  F Api::*member_;
  F was_;
};

// Counts calls of a function of the driver during its lifetime; only one at a time per function.
template <auto kMember>
class Counted;
template <class R, class... A, R (*Api::*kMember)(A...)>
class Counted<kMember> {
 public:
  Counted() : was_(api_for_tests().*kMember) {
    g_was = was_, g_calls = 0;
    api_for_tests().*kMember = [](A... arguments) -> R {
      ++g_calls;
      return g_was(arguments...);
    };
  }
  ~Counted() { api_for_tests().*kMember = was_; }
  int calls() const { return g_calls; }

 private:
  static inline R (*g_was)(A...) = nullptr;
  static inline std::atomic<int> g_calls = 0;
  R (*was_)(A...);
};

// One launch of `source` with the words of `chunks` chunks; null ports begin at address 0.
inline Result<void> launch(ClStream& stream, const std::string& source, std::span<const int64_t> words, int64_t chunks,
                           const std::vector<cl_mem>& ports, const GroupForm& form = {}) {
  ClDevice& device = stream.cl_device();
  TENON_TRY(programs, device.programs());
  TENON_TRY(program, programs->get(source, "a test's kernel"));
  const Api& cl = device.cl();
  TENON_TRY(memory, device.allocate_memory(words.size_bytes()));
  TENON_OK(check(cl.clEnqueueWriteBuffer(stream.queue(), memory.get(), CL_TRUE, 0,
                                         std::max<size_t>(words.size_bytes(), 1), words.data(), 0, nullptr, nullptr),
                 "clEnqueueWriteBuffer"));
  cl_int code = CL_SUCCESS;
  KernelObject kernel(cl.clCreateKernel(program->program->get(), std::string(kSnippetKernel).c_str(), &code));
  TENON_OK(check(code, "clCreateKernel"));
  const cl_mem object = memory.get();
  const cl_long first = 0, count = chunks;
  TENON_OK(check(cl.clSetKernelArg(kernel.get(), kWordsArgument, sizeof object, &object), "words"));
  TENON_OK(check(cl.clSetKernelArg(kernel.get(), kFirstArgument, sizeof first, &first), "first"));
  TENON_OK(check(cl.clSetKernelArg(kernel.get(), kChunksArgument, sizeof count, &count), "chunks"));
  for (size_t i = 0; i < ports.size(); ++i)
    TENON_OK(check(cl.clSetKernelArg(kernel.get(), kPortsArgument + static_cast<cl_uint>(i), sizeof(cl_mem),
                                     ports[i] ? &ports[i] : nullptr),
                   "a port"));
  const auto local = static_cast<size_t>(form.group), items = static_cast<size_t>(chunks * form.items);
  const size_t global = (items + local - 1) / local * local;
  TENON_OK(
      check(cl.clEnqueueNDRangeKernel(stream.queue(), kernel.get(), 1, nullptr, &global, &local, 0, nullptr, nullptr),
            "clEnqueueNDRangeKernel"));
  return check(cl.clFinish(stream.queue()), "clFinish");
}

// The bytes of each output of a body over these extents.
inline Result<std::vector<Bytes>> run_body(ClStream& stream, const Compiler& compiler, const snippet::Body& body,
                                           const Dims& extents, const std::vector<Bytes>& inputs) {
  TENON_TRY(compiled, compiler.compile(body));
  TENON_TRY(plan, snippet::CallPlan::make_for_extents(body, compiled->kernel, extents));
  std::vector<std::shared_ptr<ClBuffer>> buffers;
  std::vector<cl_mem> ports;
  for (size_t i = 0; i < body.inputs.size() + body.outputs.size(); ++i) {
    TENON_TRY(buffer, stream.cl_device().allocate_buffer(plan.port_bytes(i)));
    if (i < inputs.size()) {
      TENON_TRY(event, stream.copy_to_device(*buffer, 0, inputs[i]));
      TENON_OK(event->wait());
    }
    ports.push_back(buffer->object());
    buffers.push_back(std::move(buffer));
  }
  TENON_TRY(scratch, stream.cl_device().allocate_memory(plan.scratch_bytes()));
  if (!compiled->kernel.scratch.empty()) ports.push_back(scratch.get());
  std::vector<int64_t> words(plan.words());
  const std::vector<void*> addresses(buffers.size(), nullptr);
  plan.fill(words, addresses, nullptr);
  if (!plan.empty()) TENON_OK(launch(stream, compiled->source, words, 1, ports, compiled->form));
  std::vector<Bytes> outputs;
  for (size_t i = body.inputs.size(); i < buffers.size(); ++i) {
    Bytes& bytes = outputs.emplace_back(plan.port_bytes(i));
    TENON_TRY(event, stream.copy_to_host(bytes, *buffers[i], 0));
    TENON_OK(event->wait());
  }
  return outputs;
}

}  // namespace tenon::opencl::testing
