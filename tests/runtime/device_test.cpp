#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <numeric>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/runtime/device.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> ramp(size_t bytes) {
  std::vector<std::byte> out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(i);
  return out;
}

// Both kinds of stream have the same contract.
class StreamTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    device_ = host_device();
    auto stream = device_->create_stream(GetParam());
    ASSERT_TRUE(stream.ok());
    stream_ = *std::move(stream);
  }
  std::shared_ptr<Buffer> buffer(size_t bytes) {
    auto made = device_->allocate("host", bytes);
    EXPECT_TRUE(made.ok());
    return *made;
  }

  std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
};

TEST_P(StreamTest, CopiesGoThereAndBack) {
  const auto from = ramp(100);
  auto first = buffer(128), second = buffer(64);
  ASSERT_TRUE(stream_->copy_to_device(*first, 20, from).ok());
  ASSERT_TRUE(stream_->copy(*second, 4, *first, 30, 50).ok());
  std::vector<std::byte> back(50);
  auto done = stream_->copy_to_host(back, *second, 4);
  ASSERT_TRUE(done.ok());
  ASSERT_TRUE((*done)->wait().ok());
  EXPECT_TRUE((*done)->done());
  EXPECT_EQ(0, std::memcmp(back.data(), from.data() + 10, 50));
}

TEST_P(StreamTest, RangesOutsideABufferAreRefusedAndTheStreamGoesOn) {
  const auto from = ramp(16);
  auto small = buffer(16);
  std::vector<std::byte> to(16);
  for (const size_t offset : {size_t{1}, size_t{16}, size_t{17}, SIZE_MAX, SIZE_MAX - 15}) {
    auto refused = stream_->copy_to_device(*small, offset, from);
    ASSERT_FALSE(refused.ok()) << offset;
    EXPECT_EQ(refused.error().code(), Code::invalid_argument);
    EXPECT_THAT(refused.error().message(), HasSubstr("16 bytes"));
    EXPECT_FALSE(stream_->copy_to_host(to, *small, offset).ok()) << offset;
    EXPECT_FALSE(stream_->copy(*small, 0, *small, offset, 16).ok()) << offset;
    EXPECT_FALSE(stream_->copy(*small, offset, *small, 0, 16).ok()) << offset;
  }
  EXPECT_FALSE(stream_->copy(*small, 0, *small, 0, SIZE_MAX).ok());
  EXPECT_TRUE(stream_->copy_to_device(*small, 16, {}).ok());
  EXPECT_TRUE(stream_->copy_to_device(*small, 0, from).ok());
  EXPECT_TRUE(stream_->synchronize().ok());
}

TEST_P(StreamTest, WorkKeepsItsOrder) {
  std::vector<int> order;
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(stream_->call([&order, i] { return order.push_back(i), Result<void>(); }).ok());
  ASSERT_TRUE(stream_->synchronize().ok());
  std::vector<int> expected(200);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST_P(StreamTest, AnErrorStaysAndStopsWhatIsBehindIt) {
  std::atomic<bool> ran_after = false;
  auto failed = stream_->call([]() -> Result<void> { return error(Code::io, "the cable is out"); });
  ASSERT_TRUE(failed.ok());
  auto waited = (*failed)->wait();
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().message(), "the cable is out");
  auto refused = stream_->call([&] { return ran_after = true, Result<void>(); });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message(), "the cable is out");
  ASSERT_FALSE(stream_->synchronize().ok());
  EXPECT_FALSE(ran_after);
}

TEST_P(StreamTest, WhatWorkThrowsBecomesAnError) {
  auto threw = stream_->call([]() -> Result<void> { throw std::runtime_error("out of paper"); });
  ASSERT_TRUE(threw.ok());
  auto waited = (*threw)->wait();
  ASSERT_FALSE(waited.ok());
  EXPECT_THAT(waited.error().message(), HasSubstr("out of paper"));
}

TEST_P(StreamTest, TensorsGoToTheHostAsTheyAre) {
  const Tensor tensor = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  auto on_host = to_device(*stream_, tensor);
  ASSERT_TRUE(on_host.ok());
  EXPECT_FALSE(on_host->on_device());
  EXPECT_EQ(on_host->host.tensor().data(), tensor.data());
  // The same bytes in a buffer, at an offset.
  auto memory = buffer(64);
  ASSERT_TRUE(stream_->copy_to_device(*memory, 8, {tensor.data(), tensor.bytes()}).ok());
  const RunValue value{{}, {tensor.element(), tensor.dims(), memory, 8}};
  auto back = to_host(*stream_, value);
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(back->tensor().identical(tensor));
  auto beyond = to_host(*stream_, {{}, {tensor.element(), tensor.dims(), memory, 48}});
  EXPECT_FALSE(beyond.ok());
}

INSTANTIATE_TEST_SUITE_P(Both, StreamTest, ::testing::Values(false, true),
                         [](const auto& info) { return info.param ? "background" : "inline"; });

TEST(HostDevice, UnknownMemoryAndAbsurdSizesAreErrors) {
  auto unknown = host_device()->allocate("scratch", 16);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code(), Code::not_found);
  EXPECT_THAT(unknown.error().message(), HasSubstr("scratch"));
  auto absurd = host_device()->allocate("host", SIZE_MAX / 2);
  ASSERT_FALSE(absurd.ok());
  EXPECT_EQ(absurd.error().code(), Code::resource_exhausted);
  auto empty = host_device()->allocate("host", 0);
  ASSERT_TRUE(empty.ok());
  EXPECT_NE((*empty)->host_data(), nullptr);
}

TEST(BackgroundStream, WorksBesideItsCaller) {
  auto stream = *host_device()->create_stream(true);
  std::promise<void> go;
  auto event = *stream->call([wait = go.get_future().share()] { return wait.wait(), Result<void>(); });
  EXPECT_FALSE(event->done());
  go.set_value();
  EXPECT_TRUE(event->wait().ok());
  EXPECT_TRUE(event->done());
}

TEST(BackgroundStream, WhatWasEnqueuedBehindAFailureFailsWithIt) {
  auto stream = *host_device()->create_stream(true);
  std::promise<void> go;
  bool ran = false;
  auto failing = *stream->call([wait = go.get_future().share()]() -> Result<void> {
    wait.wait();
    return error(Code::io, "first");
  });
  auto behind = *stream->call([&] { return ran = true, Result<void>(); });
  go.set_value();
  auto waited = behind->wait();
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().message(), "first");
  EXPECT_FALSE(ran);
}

TEST(BackgroundStream, EndsItsWorkBeforeItGoes) {
  std::atomic<int> done = 0;
  {
    auto stream = *host_device()->create_stream(true);
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(
          stream
              ->call([&] { return std::this_thread::sleep_for(std::chrono::microseconds(50)), ++done, Result<void>(); })
              .ok());
    }
  }
  EXPECT_EQ(done, 50);
}

}  // namespace
}  // namespace tenon
