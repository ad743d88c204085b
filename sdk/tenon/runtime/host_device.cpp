#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <tenon/runtime/device.hpp>
#include <tenon/support/memory.hpp>

namespace tenon {
namespace {

constexpr std::string_view kMemory = "host";
using QueuedWork = std::function<Result<void>()>;

class HostBuffer final : public Buffer {
 public:
  HostBuffer(std::shared_ptr<Device> device, AlignedBytes data, size_t bytes)
      : device_(std::move(device)), data_(std::move(data)), bytes_(bytes) {}
  Device& device() const override { return *device_; }
  const std::string& memory() const override { return memory_; }
  size_t bytes() const override { return bytes_; }
  std::byte* host_data() const override { return data_.get(); }

 private:
  std::shared_ptr<Device> device_;
  AlignedBytes data_;
  size_t bytes_;
  std::string memory_{kMemory};
};

Result<void> guarded(const QueuedWork& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return error(Code::resource_exhausted, "the heap is exhausted");
  } catch (const std::exception& thrown) {
    return error(Code::internal, "work on a stream threw: ", thrown.what());
  } catch (...) {
    return error(Code::internal, "work on a stream threw something that is no std::exception");
  }
}

// Common base of both kinds of stream: checks of ranges, and copies as work.
class HostStream : public Stream {
 public:
  explicit HostStream(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  Device& device() const final { return *device_; }

  Result<EventPtr> copy_to_device(Buffer& to, size_t to_offset, std::span<const std::byte> from) final {
    TENON_TRY(target, part(to, to_offset, from.size(), "written"));
    return copy_bytes(target, from.data(), from.size());
  }
  Result<EventPtr> copy_to_host(std::span<std::byte> to, const Buffer& from, size_t from_offset) final {
    TENON_TRY(source, part(from, from_offset, to.size(), "read"));
    return copy_bytes(to.data(), source, to.size());
  }
  Result<EventPtr> copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) final {
    TENON_TRY(target, part(to, to_offset, bytes, "written"));
    TENON_TRY(source, part(from, from_offset, bytes, "read"));
    return copy_bytes(target, source, bytes);
  }

 private:
  Result<std::byte*> part(const Buffer& buffer, size_t offset, size_t bytes, std::string_view verb) const {
    TENON_OK(check_range(*device_, buffer, offset, bytes, verb));
    return buffer.host_data() + offset;
  }
  Result<EventPtr> copy_bytes(std::byte* to, const std::byte* from, size_t bytes) {
    return call([=]() -> Result<void> {
      // Null is allowed for an empty range, but not for memmove.
      if (bytes > 0) std::memmove(to, from, bytes);
      return {};
    });
  }

  std::shared_ptr<Device> device_;
};

class FailedEvent final : public Event {
 public:
  explicit FailedEvent(Error error) : error_(std::move(error)) {}
  Result<void> wait() override { return error_; }
  bool done() const override { return true; }

 private:
  Error error_;
};

// Runs work inside the enqueuing call.
class InlineStream final : public HostStream {
 public:
  using HostStream::HostStream;
  Result<EventPtr> call(QueuedWork work) override {
    if (error_) return *error_;
    auto done = guarded(work);
    if (done.ok()) return completed_event();
    error_ = std::move(done).error();
    return EventPtr(std::make_shared<FailedEvent>(*error_));
  }
  Result<void> synchronize() override {
    if (error_) return *error_;
    return {};
  }

 private:
  std::optional<Error> error_;
};

class QueuedEvent final : public Event {
 public:
  Result<void> wait() override {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [this] { return done(); });
    return result_;
  }
  bool done() const override { return done_.load(std::memory_order_acquire); }
  void finish(Result<void> result) {
    std::lock_guard lock(mutex_);
    result_ = std::move(result);
    done_.store(true, std::memory_order_release);
    finished_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable finished_;
  std::atomic<bool> done_ = false;
  Result<void> result_;
};

// Runs work on a thread of its own. The destructor finishes all enqueued work.
class BackgroundStream final : public HostStream {
 public:
  explicit BackgroundStream(std::shared_ptr<Device> device)
      : HostStream(std::move(device)), worker_([this] { work(); }) {}
  ~BackgroundStream() override {
    {
      std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_one();
    worker_.join();
  }

  Result<EventPtr> call(QueuedWork work) override {
    auto event = std::make_shared<QueuedEvent>();
    {
      std::lock_guard lock(mutex_);
      if (error_) return *error_;
      jobs_.push_back({std::move(work), event});
    }
    changed_.notify_one();
    return EventPtr(std::move(event));
  }
  Result<void> synchronize() override {
    EventPtr last;
    {
      std::lock_guard lock(mutex_);
      if (!running_ && jobs_.empty()) {
        if (error_) return *error_;
        return {};
      }
      last = jobs_.empty() ? running_ : jobs_.back().event;
    }
    return last->wait();
  }

 private:
  struct Job {
    QueuedWork work;
    std::shared_ptr<QueuedEvent> event;
  };

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      running_ = job.event;
      // Work that was enqueued after a failure fails with it.
      Result<void> result = error_ ? Result<void>(*error_) : Result<void>();
      lock.unlock();
      if (result.ok()) result = guarded(job.work);
      job.work = nullptr;  // what it holds is released before its completion is visible
      lock.lock();
      if (!result.ok() && !error_) error_ = result.error();
      running_ = nullptr;
      job.event->finish(std::move(result));
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  EventPtr running_;
  std::optional<Error> error_;
  bool ending_ = false;
  std::thread worker_;  // last: it starts after all other members are initialised
};

class HostDevice final : public Device, public std::enable_shared_from_this<HostDevice> {
 public:
  const std::string& name() const override { return name_; }
  std::vector<std::string> memories() const override { return {std::string(kMemory)}; }
  Result<std::shared_ptr<Buffer>> allocate(std::string_view memory, size_t bytes) override {
    if (memory != kMemory) {
      return error(Code::not_found, "device 'host' has no memory '", memory, "'; it has '", kMemory, "'");
    }
    TENON_TRY(data, allocate_aligned(bytes), "allocating a buffer on device 'host'");
    return std::shared_ptr<Buffer>(std::make_shared<HostBuffer>(shared_from_this(), std::move(data), bytes));
  }
  Result<std::unique_ptr<Stream>> create_stream(bool background) override {
    if (!background) return std::unique_ptr<Stream>(std::make_unique<InlineStream>(shared_from_this()));
    try {
      return std::unique_ptr<Stream>(std::make_unique<BackgroundStream>(shared_from_this()));
    } catch (const std::system_error& thrown) {
      return error(Code::resource_exhausted, "no thread for a stream of device 'host': ", thrown.what());
    }
  }
  bool is_host() const override { return true; }

 private:
  std::string name_ = "host";
};

}  // namespace

std::shared_ptr<Device> host_device() {
  static const std::shared_ptr<Device> device = std::make_shared<HostDevice>();
  return device;
}

}  // namespace tenon
