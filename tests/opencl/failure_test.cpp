// The state after the driver fails: an error that says what and where, a process that continues, and no leaked object.
#include <gmock/gmock.h>

#include <cstring>
#include <functional>
#include <tuple>

#include <support_lib/random_tensor.hpp>
#include <tenon/tensor/compare.hpp>

#include "graph_support.hpp"

namespace tenon::opencl::testing {
namespace {

using ::testing::HasSubstr;

// A snippet, a compute kernel followed by another one, and one that can fail.
constexpr std::string_view kNetwork = R"(graph @g(%x: f32[8,16], %w: f32[16,8], %i: i64[3]) -> %y {
  %e = Exp %x "grow"
  %m = MatMul %e, %w "mix"
  %r = Relu %m "positive"
  %y = Gather %r, %i "choose" {axis = 0}
})";

// During its lifetime, a function of the driver returns an error code and creates no object.
template <auto kMember>
class Failing;
template <class R, class... A, R (*Api::*kMember)(A...)>
class Failing<kMember> {
 public:
  explicit Failing(cl_int code) : was_(api_for_tests().*kMember) {
    g_code = code;
    api_for_tests().*kMember = [](A... arguments) -> R {
      if constexpr (std::is_same_v<R, cl_int>) {
        return g_code;
      } else {
        *std::get<sizeof...(A) - 1>(std::tie(arguments...)) = g_code;
        return nullptr;
      }
    };
  }
  ~Failing() { api_for_tests().*kMember = was_; }

 private:
  static inline cl_int g_code = CL_SUCCESS;
  R (*was_)(A...);
};

class OpenclFailure : public OpenclTest {
 protected:
  void SetUp() override {
    OpenclTest::SetUp();
    if (IsSkipped()) return;
    std::mt19937 random(11);
    const Tensor x = tenon::testing::random_tensor(random, kF32, {8, 16});
    const Tensor w = tenon::testing::random_tensor(random, kF32, {16, 8});
    auto chosen = *Tensor::allocate(kI64, {3});
    const int64_t numbers[] = {5, 0, 7};
    std::memcpy(chosen.mutable_data(), numbers, sizeof numbers);
    inputs = {Datum(x), Datum(w), Datum(chosen)};
    expected = on_reference(**parse_graph(kNetwork), inputs)[0];
  }
  // A complete run, with a new device if there is no trusted one.
  Result<std::vector<Tensor>> whole_run() {
    TENON_TRY(backend, create_backend(cpu_target()));
    TENON_TRY(graph, parse_graph(kNetwork));
    TENON_TRY(executable, compiled(*backend, std::move(graph)));
    TENON_TRY(queue, backend->device()->create_stream(false));
    return run_on(*queue, *executable, inputs);
  }
  void expect_right(const Result<std::vector<Tensor>>& got) {
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    const Comparison comparison = compare((*got)[0], expected, {.rtol = 1e-5, .atol = 1e-6});
    EXPECT_TRUE(comparison.equal) << comparison.difference;
  }
  template <auto kMember>
  void expect_survived(std::string_view name, cl_int code, const Executable& executable) {
    SCOPED_TRACE(name);
    {
      auto own = *ClDevice::of(device->info())->open_stream();
      const Failing<kMember> fault(code);
      const auto got = run_on(*own, executable, inputs);
      ASSERT_FALSE(got.ok());
      const std::string text = got.error().to_string();
      EXPECT_THAT(text, HasSubstr(code_text(code)));
      EXPECT_THAT(text, HasSubstr(name));
      EXPECT_THAT(text, HasSubstr("device 'opencl:")) << "names the device";
      EXPECT_FALSE(own->synchronize().ok()) << "a stream that failed refuses more";
    }
    expect_right(whole_run());
  }
  std::vector<Datum> inputs;
  Tensor expected;
};

TEST_F(OpenclFailure, OfAnyCommandIsAnErrorOfItsStream) {
  for (const auto& [name, test] : std::initializer_list<std::pair<const char*, std::function<void(const Executable&)>>>{
#define TENON_CASE(function, code)                                                               \
  {                                                                                              \
#function, [&](const Executable& e) { expect_survived<&Api::function>(#function, code, e); } \
  }
           TENON_CASE(clEnqueueNDRangeKernel, CL_OUT_OF_RESOURCES), TENON_CASE(clSetKernelArg, CL_INVALID_MEM_OBJECT),
           TENON_CASE(clEnqueueWriteBuffer, CL_MEM_OBJECT_ALLOCATION_FAILURE),
           TENON_CASE(clEnqueueReadBuffer, CL_DEVICE_NOT_AVAILABLE), TENON_CASE(clFlush, CL_INVALID_COMMAND_QUEUE)
#undef TENON_CASE
       }) {
    auto backend = *create_backend(cpu_target());
    auto executable = *compiled(*backend, *parse_graph(kNetwork));
    device = std::static_pointer_cast<ClDevice>(backend->device());
    auto warm = *device->open_stream();
    expect_right(run_on(*warm, *executable, inputs));
    test(*executable);
    EXPECT_NE(ClDevice::of(device->info()), device) << name << ": a context that failed is not given to others";
  }
}

TEST_F(OpenclFailure, OfMakingThingsIsAnErrorThatNamesThem) {
  const auto fails = [&](auto fault, std::string_view what) {
    static_cast<void>(fault);
    const auto got = whole_run();
    ASSERT_FALSE(got.ok()) << what;
    EXPECT_THAT(got.error().to_string(), HasSubstr(what));
  };
  stream.reset(), device.reset();  // a new driver context for each
  fails(Failing<&Api::clCreateContext>(CL_DEVICE_NOT_AVAILABLE), "opening OpenCL device");
  fails(Failing<&Api::clCreateCommandQueue>(CL_OUT_OF_HOST_MEMORY), "clCreateCommandQueue");
  fails(Failing<&Api::clCreateBuffer>(CL_MEM_OBJECT_ALLOCATION_FAILURE), "bytes on device 'opencl:");
  fails(Failing<&Api::clCreateKernel>(CL_INVALID_KERNEL_NAME), "in snippet.Subgraph grow");
  fails(Failing<&Api::clBuildProgram>(CL_BUILD_PROGRAM_FAILURE), "does not compile the kernel of");
  expect_right(whole_run());
}

// The reference works while the device is lost. Afterwards a new object of the same device works.
TEST_F(OpenclFailure, ALostDeviceIsReplaced) {
  auto backend = *create_backend(cpu_target());
  auto executable = *compiled(*backend, *parse_graph(kNetwork));
  device = std::static_pointer_cast<ClDevice>(backend->device());
  auto queue = *device->open_stream();
  expect_right(run_on(*queue, *executable, inputs));
  {
    const cl_int gone = CL_DEVICE_NOT_AVAILABLE;
    const Failing<&Api::clEnqueueNDRangeKernel> kernels(gone);
    const Failing<&Api::clEnqueueWriteBuffer> writes(gone);
    const Failing<&Api::clEnqueueReadBuffer> reads(gone);
    const Failing<&Api::clEnqueueMapBuffer> maps(gone);
    const Failing<&Api::clCreateBuffer> memory(gone);
    const Failing<&Api::clCreateContext> contexts(gone);
    const Failing<&Api::clWaitForEvents> waits(gone);
    const Failing<&Api::clFlush> flushes(gone);
    const Failing<&Api::clFinish> finishes(gone);
    EXPECT_THAT(run_on(*queue, *executable, inputs).error().to_string(), HasSubstr("CL_DEVICE_NOT_AVAILABLE"));
    EXPECT_FALSE(queue->synchronize().ok());
    EXPECT_FALSE(device->allocate("pinned", 100).ok());
    EXPECT_THAT(whole_run().error().to_string(), HasSubstr("opening OpenCL device"));
    EXPECT_TRUE(compare(on_reference(**parse_graph(kNetwork), inputs)[0], expected, {}).equal);
  }
  EXPECT_FALSE(run_on(*queue, *executable, inputs).ok()) << "the stream stays ended";
  expect_right(whole_run());
}

cl_int failed_work(cl_event, cl_event_info, size_t, void* value, size_t*) {
  const cl_int status = CL_OUT_OF_RESOURCES;
  std::memcpy(value, &status, sizeof status);
  return CL_SUCCESS;
}

TEST_F(OpenclFailure, WorkThatFailsBehindTheCallIsTold) {
  auto backend = *create_backend(cpu_target());
  auto executable = *compiled(*backend, *parse_graph(kNetwork));
  device = std::static_pointer_cast<ClDevice>(backend->device());
  auto queue = *device->open_stream();
  auto buffer = *device->allocate_buffer(64);
  const Bytes bytes(64);
  {
    const auto event = queue->copy_to_device(*buffer, 0, bytes);
    ASSERT_TRUE(event.ok());
    const Failing<&Api::clWaitForEvents> waits(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    const Fault status(&Api::clGetEventInfo, &failed_work);
    EXPECT_TRUE((*event)->done()) << "who then waits hears of it";
    EXPECT_THAT((*event)->wait().error().to_string(), HasSubstr("device 'opencl:"));
    EXPECT_THAT((*event)->wait().error().to_string(), HasSubstr("CL_OUT_OF_RESOURCES"));
    auto other = *device->open_stream();
    Bytes back(64);
    const auto behind = other->copy_to_host(back, *buffer, 0);
    ASSERT_FALSE(behind.ok()) << "what reads what was not written";
    EXPECT_THAT(behind.error().to_string(), HasSubstr("CL_OUT_OF_RESOURCES"));
  }
  EXPECT_FALSE(queue->copy_to_device(*buffer, 0, bytes).ok());
  EXPECT_NE(ClDevice::of(device->info()), device);
  expect_right(whole_run());
}

std::atomic<int> g_refusals;
decltype(Api::clCreateBuffer) g_create = nullptr;
cl_mem refuse_some(cl_context context, cl_mem_flags flags, size_t bytes, void* host, cl_int* code) {
  if (g_refusals-- <= 0) return g_create(context, flags, bytes, host, code);
  *code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  return nullptr;
}

TEST_F(OpenclFailure, MemoryThatIsKeptIsGivenBackBeforeMemoryIsShort) {
  const auto memories = [] { return live_objects()[static_cast<size_t>(ObjectKind::memory)]; };
  for (const char* space : {"global", "pinned"}) ASSERT_TRUE(device->allocate(space, 100000).ok());
  const int64_t kept = memories();
  g_create = api_for_tests().clCreateBuffer;
  const Fault fault(&Api::clCreateBuffer, &refuse_some);
  g_refusals = 1;
  const auto made = device->allocate("global", 3000);
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_LT(memories(), kept);
  g_refusals = 2;
  EXPECT_EQ(device->allocate("global", 5000).error().code(), Code::resource_exhausted);
}

// A device that reports every command as queued, even those that have completed.
cl_int report_queued(cl_event, cl_event_info, size_t bytes, void* status, size_t*) {
  const cl_int queued = CL_QUEUED;
  std::memcpy(status, &queued, std::min(bytes, sizeof queued));
  return CL_SUCCESS;
}

// Runs with known shapes, after the queue has reached its maximum depth.
TEST_F(OpenclFailure, WarmRunsMakeEventsOnly) {
  auto backend = *create_backend(cpu_target());
  auto executable = *compiled(*backend, *parse_graph(kNetwork));
  device = std::static_pointer_cast<ClDevice>(backend->device());
  auto queue = *device->open_stream();
  std::vector<RunValue> placed;
  for (const Datum& input : inputs) placed.push_back(*to_device(*queue, input.tensor()));
  Bytes out(expected.bytes());
  const auto runs = [&](int count) {
    std::vector<RunValue> before;
    for (int i = 0; i < count; ++i) {
      std::vector<RunValue> outputs(1);
      const Tensor& x = inputs[0].tensor();
      ASSERT_TRUE(queue->copy_to_device(*placed[0].device.buffer, 0, {x.data(), x.bytes()}).ok());
      ASSERT_TRUE(executable->enqueue(*queue, placed, outputs, {}).ok());
      ASSERT_TRUE(queue->copy_to_host(out, *outputs[0].device.buffer, 0).ok());
      before = std::move(outputs);
      if (i % 4 < 3) continue;
      ASSERT_TRUE(queue->synchronize().ok());
    }
    ASSERT_TRUE(queue->synchronize().ok());
  };
  {
    const Fault deepest(&Api::clGetEventInfo, &report_queued);
    runs(4);
  }
  runs(16);
  const auto before = live_objects();
  const Counted<&Api::clCreateBuffer> buffers;
  const Counted<&Api::clCreateKernel> kernels;
  const Counted<&Api::clCreateProgramWithSource> sources;
  const Counted<&Api::clCreateProgramWithBinary> binaries;
  const Counted<&Api::clCreateCommandQueue> queues;
  const Counted<&Api::clEnqueueMapBuffer> maps;
  runs(40);
  EXPECT_EQ(buffers.calls() + kernels.calls() + sources.calls() + binaries.calls() + queues.calls() + maps.calls(), 0);
  const auto after = live_objects();
  for (size_t kind = 0; kind < kObjectKinds; ++kind) EXPECT_LE(after[kind], before[kind]) << "of kind " << kind;
}

// Covers streams, events, pinned memory, and runs that fail. Nothing else in the process uses the device meanwhile.
TEST_F(OpenclFailure, NothingOfTheDriverIsLeftBehind) {
  stream.reset(), device.reset();
  const auto before = live_objects();
  {
    auto backend = *create_backend(cpu_target());
    auto executable = *compiled(*backend, *parse_graph(kNetwork));
    device = std::static_pointer_cast<ClDevice>(backend->device());
    auto queue = *device->open_stream(), other = *device->open_stream();
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(run_on(i == 1 ? *other : *queue, *executable, inputs).ok());
    std::vector<Datum> wrong = inputs;
    auto outside = *Tensor::allocate(kI64, {3});
    const int64_t numbers[] = {5, 8, 7};
    std::memcpy(outside.mutable_data(), numbers, sizeof numbers);
    wrong[2] = Datum(outside);
    EXPECT_THAT(run_on(*queue, *executable, wrong).error().to_string(), HasSubstr("Gather choose"));
    auto pinned = *device->allocate("pinned", 8 * 16 * sizeof(float));
    std::vector<RunValue> placed, outputs(1);
    for (const Datum& input : inputs) placed.push_back(*to_device(*queue, input.tensor()));
    placed[0].device.buffer = pinned;
    const auto held = executable->enqueue(*queue, placed, outputs, {});
    ASSERT_TRUE(held.ok());
    const auto now = live_objects();
    for (size_t kind = 0; kind < kObjectKinds; ++kind) EXPECT_GT(now[kind], before[kind]) << "of kind " << kind;
    {
      const Failing<&Api::clEnqueueNDRangeKernel> fault(CL_OUT_OF_RESOURCES);
      EXPECT_FALSE(executable->enqueue(*other, placed, outputs, {}).ok());
    }
    queue.reset();
    EXPECT_TRUE((*held)->wait().ok()) << "an event outlives its stream";
    device.reset();
  }
  EXPECT_EQ(live_objects(), before);
}

}  // namespace
}  // namespace tenon::opencl::testing
