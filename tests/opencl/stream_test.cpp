// Streams: overlap, order, pinned memory and staging. A device that shares memory with the host is also used as one
// that does not: copies are then staged, and pinned memory belongs to the driver.
#include "opencl/cl_stream.hpp"

#include <gmock/gmock.h>

#include <cstring>
#include <random>
#include <thread>

#include "graph_support.hpp"
#include "opencl/executable.hpp"

namespace tenon::opencl::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kNegate = "graph @g(%x: f32[N]) -> %y {\n %y = Neg %x\n}";

class OpenclStream : public OpenclTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    OpenclTest::SetUp();
    if (IsSkipped()) return;
    DeviceInfo info = device->info();
    info.shares_memory = GetParam();
    device = std::make_shared<ClDevice>(info);
    stream = *device->open_stream();
    auto backend = *create_backend(cpu_target());
    auto graph = *parse_graph(kNegate);
    PassManager passes;
    ASSERT_TRUE(backend->add_tensor_sel(passes).ok() && passes.run(*graph).ok());
    const CompilerOptions options{.lanes = 4};
    negate = *make_executable(std::move(graph), device, std::make_shared<const Compiler>(target, *table, options));
  }
  static std::vector<float> numbers(size_t count, float first) {
    std::vector<float> made(count);
    for (size_t i = 0; i < count; ++i) made[i] = first + static_cast<float>(i % 1000);
    return made;
  }
  static RunValue value(std::shared_ptr<Buffer> buffer) {
    const auto count = static_cast<int64_t>(buffer->bytes() / sizeof(float));
    return {{}, {kF32, {count}, std::move(buffer), 0}};
  }
  // The output of a run on `input`, and the event of the run.
  Result<std::pair<std::shared_ptr<Buffer>, EventPtr>> run(Stream& on, std::shared_ptr<Buffer> input) {
    const RunValue inputs[] = {value(std::move(input))};
    RunValue outputs[1];
    TENON_TRY(event, negate->enqueue(on, inputs, outputs, {}));
    return std::pair(outputs[0].device.buffer, event);
  }
  std::shared_ptr<Buffer> buffer_of(const std::vector<float>& data) {
    auto buffer = *device->allocate("global", data.size() * sizeof(float));
    EXPECT_TRUE((*stream->copy_to_device(*buffer, 0, std::as_bytes(std::span(data))))->wait().ok());
    return buffer;
  }
  std::unique_ptr<Executable> negate;
};

// Makes the kernels of a stream wait until the host opens the gate, through shared memory.
class Gate {
 public:
  explicit Gate(ClStream& stream) {
    // The number of iterations is bounded, so that a failing test does not hang.
    const std::string source =
        "__kernel void gate(volatile __global int* flag) {\n"
        "  for (long i = 0; i < 20000000000L && flag[0] == 0; ++i) {}\n}\n";
    ClDevice& device = stream.cl_device();
    program_ = *(*device.programs())->get(source, "the gate");
    cl_int code = CL_SUCCESS;
    memory_ = *device.allocate_pinned(64);
    std::memset(memory_->host_data(), 0, 64);
    kernel_ = KernelObject(device.cl().clCreateKernel(program_->program->get(), "gate", &code));
    const cl_mem object = memory_->object();
    EXPECT_EQ(device.cl().clSetKernelArg(kernel_.get(), 0, sizeof object, &object), CL_SUCCESS);
    const size_t one = 1;
    EXPECT_EQ(
        device.cl().clEnqueueNDRangeKernel(stream.queue(), kernel_.get(), 1, nullptr, &one, &one, 0, nullptr, nullptr),
        CL_SUCCESS);
    EXPECT_TRUE(stream.flush().ok());
  }
  ~Gate() { open(); }
  void open() { *reinterpret_cast<volatile cl_int*>(memory_->host_data()) = 1; }

 private:
  std::shared_ptr<ClBuffer> memory_;
  std::shared_ptr<const BuiltProgram> program_;
  KernelObject kernel_;
};

TEST_P(OpenclStream, CopiesOverlapTheKernelsOfOneStream) {
  if (device->info().compute_units < 2) GTEST_SKIP() << "one compute unit, which the kernel takes";
  const std::vector<float> first = numbers(5000, 1), second = numbers(5000, 7), third = numbers(5000, 11);
  const auto a = buffer_of(first), b = buffer_of(second);
  auto c = *device->allocate("global", third.size() * sizeof(float));
  const auto before = run(*stream, a);
  ASSERT_TRUE(before.ok() && before->second->wait().ok());
  Gate gate(*stream);
  const auto now = run(*stream, b);
  ASSERT_TRUE(now.ok());
  // Run N waits for the gate; the output of N-1 and the input of N+1 are copied meanwhile.
  std::vector<float> out(first.size());
  const auto out_done = stream->copy_to_host(std::as_writable_bytes(std::span(out)), *before->first, 0);
  const auto in_done = stream->copy_to_device(*c, 0, std::as_bytes(std::span(third)));
  const auto next = run(*stream, c);
  ASSERT_TRUE(out_done.ok() && in_done.ok() && next.ok());
  ASSERT_TRUE((*out_done)->wait().ok() && (*in_done)->wait().ok());
  EXPECT_FALSE(now->second->done());
  EXPECT_FALSE(next->second->done());
  EXPECT_EQ(out[3], -first[3]);
  // A copy into memory that run N reads waits for it.
  const auto late = stream->copy_to_device(*b, 0, std::as_bytes(std::span(third)));
  ASSERT_TRUE(late.ok());
  EXPECT_FALSE((*late)->done());
  gate.open();
  ASSERT_TRUE((*late)->wait().ok());
  EXPECT_TRUE(now->second->done());
  ASSERT_TRUE(next->second->wait().ok());
  for (const auto& [run, from] : {std::pair(now, second), std::pair(next, third)}) {
    ASSERT_TRUE((*stream->copy_to_host(std::as_writable_bytes(std::span(out)), *run->first, 0))->wait().ok());
    EXPECT_EQ(out[4999], -from[4999]);
  }
}

TEST_P(OpenclStream, StreamsOfADeviceKeepTheOrderOfABuffer) {
  const std::vector<float> data = numbers(200000, 3);
  auto other = *device->open_stream();
  auto in = buffer_of(numbers(data.size(), 0));
  std::vector<float> out(data.size());
  ASSERT_TRUE(run(*stream, in).ok()) << "a plan for these extents";
  Gate gate(*stream);
  const auto copied = stream->copy_to_device(*in, 0, std::as_bytes(std::span(data)));
  const auto first = run(*stream, in);  // waits for the gate
  const auto second = run(*other, first->first);
  const auto read = other->copy_to_host(std::as_writable_bytes(std::span(out)), *second->first, 0);
  ASSERT_TRUE(copied.ok() && first.ok() && second.ok() && read.ok());
  gate.open();
  ASSERT_TRUE((*read)->wait().ok());
  EXPECT_EQ(out, data);
}

TEST_P(OpenclStream, PinnedMemoryIsTheHosts) {
  EXPECT_THAT(device->memories(), ElementsAre("global", "pinned"));
  const std::vector<float> data = numbers(3000, 5);
  const size_t bytes = data.size() * sizeof(float);
  auto pinned = *device->allocate("pinned", bytes), back = *device->allocate("pinned", bytes);
  auto global = *device->allocate("global", bytes);
  EXPECT_EQ(pinned->memory(), "pinned");
  EXPECT_EQ(global->host_data(), nullptr);
  ASSERT_NE(pinned->host_data(), nullptr);
  EXPECT_FALSE(device->stages({pinned->host_data(), bytes}));
  EXPECT_EQ(device->stages(std::as_bytes(std::span(data))), !GetParam());
  std::memcpy(pinned->host_data(), data.data(), bytes);
  ASSERT_TRUE(stream->copy(*global, 0, *pinned, 0, bytes).ok());
  ASSERT_TRUE((*stream->copy(*back, 0, *global, 0, bytes))->wait().ok());
  EXPECT_EQ(std::memcmp(back->host_data(), data.data(), bytes), 0);
  ASSERT_TRUE((*stream->copy(*back, 4, *pinned, 0, bytes - 4))->wait().ok());
  EXPECT_EQ(std::memcmp(back->host_data() + 4, data.data(), bytes - 4), 0);
  EXPECT_FALSE(stream->copy(*back, 8, *pinned, 0, bytes).ok());
}

TEST_P(OpenclStream, RunsReadPinnedMemory) {
  auto pinned = *device->allocate("pinned", 4000 * sizeof(float));
  auto* numbers = reinterpret_cast<float*>(pinned->host_data());
  auto other = *device->open_stream();
  ASSERT_TRUE(run(*stream, pinned).ok()) << "a plan for these extents";
  ASSERT_TRUE(stream->synchronize().ok());
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 4000; ++i) numbers[i] = static_cast<float>(i + round);
    const Counted<&Api::clEnqueueWriteBuffer> writes;
    const auto done = run(*stream, pinned), again = run(*other, pinned);
    ASSERT_TRUE(done.ok() && again.ok());
    ASSERT_TRUE(done->second->wait().ok() && again->second->wait().ok());
    EXPECT_EQ(writes.calls(), GetParam() ? 0 : 2) << "kernels read in place where memory is shared";
    EXPECT_EQ(pinned->host_data(), reinterpret_cast<std::byte*>(numbers));
    std::vector<float> out(4000);
    for (const auto& made : {done->first, again->first}) {
      ASSERT_TRUE((*stream->copy_to_host(std::as_writable_bytes(std::span(out)), *made, 0))->wait().ok());
      EXPECT_EQ(out[17], -static_cast<float>(17 + round));
    }
  }
}

TEST_P(OpenclStream, CopiesToTheHostAreThereWhenTheySaySo) {
  const std::vector<float> ones = numbers(40000, 1), twos = numbers(40000, 2);
  const auto a = buffer_of(ones), b = buffer_of(twos);
  std::vector<float> out(ones.size());
  const auto bytes = std::as_writable_bytes(std::span(out));
  const auto first = stream->copy_to_host(bytes, *a, 0), second = stream->copy_to_host(bytes, *b, 0);
  ASSERT_TRUE((*second)->wait().ok() && (*first)->wait().ok());
  EXPECT_EQ(out, twos) << "in the order of enqueuing, not of waiting";
  const auto polled = stream->copy_to_host(bytes, *a, 0);
  while (!(*polled)->done()) std::this_thread::yield();
  EXPECT_EQ(out, ones);
  ASSERT_TRUE(stream->copy_to_host(bytes, *b, 0).ok() && stream->synchronize().ok());
  EXPECT_EQ(out, twos);
  // The host buffer that one copy reads is the one that the copy before it writes.
  auto c = *device->allocate("global", bytes.size());
  ASSERT_TRUE(stream->copy_to_host(bytes, *a, 0).ok());
  ASSERT_TRUE(stream->copy_to_device(*c, 0, bytes).ok());
  ASSERT_TRUE((*stream->copy_to_host(bytes, *b, 0))->wait().ok());
  std::vector<float> copy(out.size());
  ASSERT_TRUE((*stream->copy_to_host(std::as_writable_bytes(std::span(copy)), *c, 0))->wait().ok());
  EXPECT_EQ(copy, ones);
  EventPtr outlives;
  {
    auto other = *device->open_stream();
    outlives = *other->copy_to_host(bytes, *a, 0);
  }
  EXPECT_EQ(out, ones) << "a stream that ends has done its work";
  EXPECT_TRUE(outlives->done() && outlives->wait().ok());
}

// Random commands for a stream, compared with executing them on the host immediately.
class RandomWork {
 public:
  RandomWork(uint32_t seed, ClStream& stream, const Executable& negate)
      : random_(seed), stream_(stream), device_(stream.cl_device()), negate_(negate) {
    for (int i = 0; i < 3; ++i) global_.push_back(make("global"));
    for (int i = 0; i < 2; ++i) pinned_.push_back(make("pinned"));
    for (int i = 0; i < 3; ++i) plain_.push_back({std::vector<float>(kMost), std::vector<float>(kMost)});
    for (Place& place : plain_)
      for (float& number : place.real) number = static_cast<float>(random_() % 1000);
    for (Place& place : plain_) place.expected = place.real;
  }

  Result<void> step() {
    const size_t count = random_() % 4 == 0 ? kMost : 1 + random_() % 3000;
    const size_t from = random_() % (kMost - count + 1), to = random_() % (kMost - count + 1);
    switch (random_() % 5) {
      case 0: {
        Place &a = one_of(plain_), &b = one_of(global_);
        put(b, to, a, from, count);
        return ok(stream_.copy_to_device(*b.buffer, to * 4, std::as_bytes(std::span(a.real).subspan(from, count))));
      }
      case 1: {
        Place &a = one_of(global_), &b = one_of(plain_);
        put(b, to, a, from, count);
        return ok(
            stream_.copy_to_host(std::as_writable_bytes(std::span(b.real).subspan(to, count)), *a.buffer, from * 4));
      }
      case 2: return copy(one_of(pinned_), to, one_of(global_), from, count);
      case 3: return copy(one_of(global_), to, one_of(random_() % 2 ? pinned_ : global_), from, count);
      default: return run(one_of(global_), one_of(random_() % 4 ? global_ : pinned_));
    }
  }

  void expect_the_same() {
    for (const Place& place : plain_) EXPECT_EQ(place.real, place.expected);
    for (const std::vector<Place>* places : {&global_, &pinned_})
      for (const Place& place : *places) {
        std::vector<float> real(kMost);
        const auto copied = stream_.copy_to_host(std::as_writable_bytes(std::span(real)), *place.buffer, 0);
        ASSERT_TRUE(copied.ok() && (*copied)->wait().ok());
        EXPECT_EQ(real, place.expected) << place.buffer->memory();
      }
  }

 private:
  static constexpr size_t kMost = 60000;
  struct Place {
    std::vector<float> expected, real;
    std::shared_ptr<Buffer> buffer;
  };
  static Result<void> ok(const Result<EventPtr>& enqueued) {
    return enqueued.ok() ? Result<void>() : Result<void>(enqueued.error());
  }
  Place make(std::string_view memory) {
    Place place{std::vector<float>(kMost, 0), {}, *device_.allocate(memory, kMost * sizeof(float))};
    EXPECT_TRUE((*stream_.copy_to_device(*place.buffer, 0, std::as_bytes(std::span(place.expected))))->wait().ok());
    return place;
  }
  Place& one_of(std::vector<Place>& places) { return places[random_() % places.size()]; }
  static void put(Place& to, size_t at, const Place& from, size_t from_at, size_t count) {
    std::copy_n(from.expected.begin() + static_cast<ptrdiff_t>(from_at), count,
                to.expected.begin() + static_cast<ptrdiff_t>(at));
  }
  Result<void> copy(Place& to, size_t at, Place& from, size_t from_at, size_t count) {
    if (&to == &from) return {};
    put(to, at, from, from_at, count);
    return ok(stream_.copy(*to.buffer, at * 4, *from.buffer, from_at * 4, count * 4));
  }
  Result<void> run(Place& to, Place& from) {
    const RunValue inputs[] = {{{}, {kF32, {static_cast<int64_t>(kMost)}, from.buffer, 0}}};
    RunValue outputs[1];
    TENON_TRY(event, negate_.enqueue(stream_, inputs, outputs, {}));
    std::vector<float> made = from.expected;
    for (float& number : made) number = -number;
    to.expected = std::move(made), to.buffer = outputs[0].device.buffer;
    return {};
  }

  std::mt19937 random_;
  ClStream& stream_;
  ClDevice& device_;
  const Executable& negate_;
  std::vector<Place> global_, pinned_, plain_;
};

TEST_P(OpenclStream, WhatTouchesTheSameMemoryKeepsItsOrder) {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    RandomWork work(seed, *stream, *negate);
    for (int step = 0; step < 150; ++step) {
      const auto done = work.step();
      ASSERT_TRUE(done.ok()) << done.error().to_string();
    }
    ASSERT_TRUE(stream->synchronize().ok());
    work.expect_the_same();
  }
}

TEST_P(OpenclStream, WorkOnTheHostIsInOrder) {
  const std::vector<float> data = numbers(50000, 4);
  const auto in = buffer_of(data);
  std::vector<float> out(data.size());
  const auto made = run(*stream, in);
  ASSERT_TRUE(made.ok() && stream->copy_to_host(std::as_writable_bytes(std::span(out)), *made->first, 0).ok());
  float seen = 0;
  ASSERT_TRUE(stream->call([&]() -> Result<void> { return seen = out[7], Result<void>(); }).ok());
  EXPECT_EQ(seen, -data[7]);
  EXPECT_FALSE(stream->call([]() -> Result<void> { return error(Code::cancelled, "enough"); }).ok());
  EXPECT_THAT(stream->synchronize().error().message(), HasSubstr("enough"));
  EXPECT_FALSE(stream->copy_to_host(std::as_writable_bytes(std::span(out)), *in, 0).ok());
}

INSTANTIATE_TEST_SUITE_P(Memory, OpenclStream, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "shared" : "apart"; });

}  // namespace
}  // namespace tenon::opencl::testing
