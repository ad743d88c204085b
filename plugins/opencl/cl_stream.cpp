#include "opencl/cl_stream.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <tenon/support/str.hpp>

namespace tenon::opencl {
namespace {

// The host fills one piece of staging memory while the device copies the previous one.
constexpr size_t kStagedPiece = size_t{4} << 20;

}  // namespace

ClStream::ClStream(std::shared_ptr<ClDevice> device, StreamQueues queues)
    : device_(std::move(device)),
      cl_(device_->cl()),
      queues_(std::move(queues)),
      fate_(std::make_shared<StreamFate>(device_)),
      downloads_(std::make_shared<Downloads>(cl_)),
      host_uses_(cl_) {}

ClStream::~ClStream() {
  for (const Queue* queue : {&queues_.to_device, &queues_.compute, &queues_.to_host}) cl_.clFinish(queue->get());
  static_cast<void>(downloads_->finish_all());
}

Result<void> ClStream::flush(cl_command_queue queue) {
  return add([&] { return check(cl_.clFlush(queue), "clFlush"); });
}

void ClStream::drain() { cl_.clFinish(queue()); }

template <class Command>
Result<EventObject> ClStream::enqueue(cl_command_queue queue, std::string_view what, const WaitList& waits,
                                      const Command& command) {
  cl_event event = nullptr;
  TENON_OK(add([&]() -> Result<void> {
    TENON_OK(check(waits.failed(), "work before it"), what);
    return check(command(waits.count(), waits.data(), &event), what);
  }));
  EventObject object(event);
  if (auto flushed = flush(queue); !flushed.ok()) {
    cl_.clFinish(queue);  // no event records the command, so its memory must not be reused before it is complete
    return std::move(flushed).error();
  }
  return object;
}

Result<EventObject> ClStream::mark(const WaitList& waits) {
  return enqueue(queue(), "clEnqueueMarkerWithWaitList", waits,
                 [&](cl_uint count, const cl_event* events, cl_event* done) {
                   return cl_.clEnqueueMarkerWithWaitList(queue(), count, events, done);
                 });
}

EventPtr ClStream::event_of(EventObject event) const { return work_event(fate_, std::move(event)); }

// ---- Copies ----

Result<EventPtr> ClStream::copy_to_device(Buffer& to, size_t to_offset, std::span<const std::byte> from) {
  TENON_OK(usable());
  TENON_OK(check_range(*device_, to, to_offset, from.size(), "written"));
  return upload(cl_buffer(to), to_offset, from, nullptr);
}

Result<EventPtr> ClStream::copy_to_host(std::span<std::byte> to, const Buffer& from, size_t from_offset) {
  TENON_OK(usable());
  TENON_OK(check_range(*device_, from, from_offset, to.size(), "read"));
  return download(to, nullptr, cl_buffer(from), from_offset);
}

Result<EventPtr> ClStream::copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) {
  TENON_OK(usable());
  TENON_OK(check_range(*device_, to, to_offset, bytes, "written"));
  TENON_OK(check_range(*device_, from, from_offset, bytes, "read"));
  const ClBuffer &target = cl_buffer(to), &source = cl_buffer(from);
  if (source.is_pinned()) return upload(target, to_offset, {source.host_data() + from_offset, bytes}, &source);
  if (target.is_pinned()) return download({target.host_data() + to_offset, bytes}, &target, source, from_offset);
  if (bytes == 0) return completed_event();
  WaitList waits(cl_);
  source.before(Access::read, queue(), waits);
  target.before(Access::write, queue(), waits);
  TENON_TRY(event,
            enqueue(queue(), "clEnqueueCopyBuffer", waits, [&](cl_uint count, const cl_event* events, cl_event* done) {
              return cl_.clEnqueueCopyBuffer(queue(), source.object(), target.object(), from_offset, to_offset, bytes,
                                             count, events, done);
            }));
  source.used(Access::read, queue(), retained(cl_, event.get()));
  target.used(Access::write, queue(), retained(cl_, event.get()));
  return event_of(std::move(event));
}

Result<EventPtr> ClStream::upload(const ClBuffer& to, size_t to_offset, std::span<const std::byte> from,
                                  const ClBuffer* from_buffer) {
  if (from.empty()) return completed_event();
  if (to.is_pinned()) return move_on_host({to.host_data() + to_offset, from.size()}, &to, from, from_buffer);
  const cl_command_queue queue = queues_.to_device.get();
  WaitList waits(cl_);
  to.before(Access::write, queue, waits);
  if (device_->stages(from)) return upload_staged(to, to_offset, from, waits);
  if (from_buffer) from_buffer->before(Access::read, queue, waits);
  TENON_OK(downloads_->finish_into(from));
  host_uses_.before(Access::read, from, queue, waits);
  TENON_TRY(event,
            enqueue(queue, "clEnqueueWriteBuffer", waits, [&](cl_uint count, const cl_event* events, cl_event* done) {
              return cl_.clEnqueueWriteBuffer(queue, to.object(), CL_FALSE, to_offset, from.size(), from.data(), count,
                                              events, done);
            }));
  to.used(Access::write, queue, retained(cl_, event.get()));
  if (from_buffer) from_buffer->used(Access::read, queue, retained(cl_, event.get()));
  host_uses_.add(Access::read, from, queue, retained(cl_, event.get()));
  return event_of(std::move(event));
}

Result<EventPtr> ClStream::download(std::span<std::byte> to, const ClBuffer* to_buffer, const ClBuffer& from,
                                    size_t from_offset) {
  if (to.empty()) return completed_event();
  if (from.is_pinned()) return move_on_host(to, to_buffer, {from.host_data() + from_offset, to.size()}, &from);
  const cl_command_queue queue = queues_.to_host.get();
  WaitList waits(cl_);
  from.before(Access::read, queue, waits);
  host_uses_.before(Access::write, to, queue, waits);
  if (device_->stages(to)) return download_staged(to, from, from_offset, waits);
  if (to_buffer) to_buffer->before(Access::write, queue, waits);
  TENON_OK(downloads_->finish_into(to));
  TENON_TRY(event,
            enqueue(queue, "clEnqueueReadBuffer", waits, [&](cl_uint count, const cl_event* events, cl_event* done) {
              return cl_.clEnqueueReadBuffer(queue, from.object(), CL_FALSE, from_offset, to.size(), to.data(), count,
                                             events, done);
            }));
  from.used(Access::read, queue, retained(cl_, event.get()));
  if (to_buffer) to_buffer->used(Access::write, queue, retained(cl_, event.get()));
  host_uses_.add(Access::write, to, queue, retained(cl_, event.get()));
  return event_of(std::move(event));
}

// Reads the caller's memory inside the call.
Result<EventPtr> ClStream::upload_staged(const ClBuffer& to, size_t to_offset, std::span<const std::byte> from,
                                         const WaitList& waits) {
  TENON_OK(wait_for_host(Access::read, from, WaitList(cl_)));
  TENON_TRY(staging, device_->allocate_pinned(from.size()), "staging a copy");
  const cl_command_queue queue = queues_.to_device.get();
  const WaitList none(cl_);
  EventObject event;
  for (size_t at = 0; at < from.size(); at += kStagedPiece) {
    const size_t bytes = std::min(kStagedPiece, from.size() - at);
    std::memcpy(staging->host_data() + at, from.data() + at, bytes);
    TENON_TRY(done, enqueue(queue, "clEnqueueWriteBuffer", at == 0 ? waits : none,
                            [&](cl_uint count, const cl_event* events, cl_event* one) {
                              return cl_.clEnqueueWriteBuffer(queue, to.object(), CL_FALSE, to_offset + at, bytes,
                                                              staging->host_data() + at, count, events, one);
                            }));
    event = std::move(done);
    staging->used(Access::read, queue, retained(cl_, event.get()));
    to.used(Access::write, queue, retained(cl_, event.get()));
  }
  return event_of(std::move(event));
}

Result<EventPtr> ClStream::download_staged(std::span<std::byte> to, const ClBuffer& from, size_t from_offset,
                                           const WaitList& waits) {
  auto download = std::make_shared<Download>();
  TENON_TRY(staging, device_->allocate_pinned(to.size()), "staging a copy");
  const cl_command_queue queue = queues_.to_host.get();
  TENON_TRY(event,
            enqueue(queue, "clEnqueueReadBuffer", waits, [&](cl_uint count, const cl_event* events, cl_event* done) {
              return cl_.clEnqueueReadBuffer(queue, from.object(), CL_FALSE, from_offset, to.size(),
                                             staging->host_data(), count, events, done);
            }));
  from.used(Access::read, queue, retained(cl_, event.get()));
  staging->used(Access::write, queue, retained(cl_, event.get()));
  download->staging = std::move(staging), download->event = std::move(event), download->to = to;
  downloads_->add(download);
  return download_event(fate_, downloads_, std::move(download));
}

Result<void> ClStream::wait_for_host(Access access, std::span<const std::byte> range, WaitList waits) {
  return add([&]() -> Result<void> {
    TENON_OK(downloads_->finish_into(range));
    host_uses_.before(access, range, nullptr, waits);
    return waits.wait();
  });
}

Result<EventPtr> ClStream::move_on_host(std::span<std::byte> to, const ClBuffer* to_buffer,
                                        std::span<const std::byte> from, const ClBuffer* from_buffer) {
  WaitList reads(cl_), writes(cl_);
  if (from_buffer) from_buffer->before(Access::read, nullptr, reads);
  if (to_buffer) to_buffer->before(Access::write, nullptr, writes);
  TENON_OK(wait_for_host(Access::read, from, std::move(reads)));
  TENON_OK(wait_for_host(Access::write, to, std::move(writes)));
  std::memmove(to.data(), from.data(), from.size());
  return completed_event();
}

// ---- Pinned memory used in place ----

Result<void> ClStream::lend(std::span<const ClBuffer* const> pinned, WaitList& waits) {
  for (const ClBuffer* buffer : pinned) {
    WaitList all = std::exchange(waits, WaitList(cl_));  // the queue is in order: waiting once is enough
    buffer->before(Access::write, queue(), all);
    host_uses_.before(Access::write, {buffer->host_data(), buffer->bytes()}, queue(), all);
    TENON_OK(add([&]() -> Result<void> {
      TENON_OK(check(all.failed(), "work before it"));
      return check(
          cl_.clEnqueueUnmapMemObject(queue(), buffer->object(), buffer->host_data(), all.count(), all.data(), nullptr),
          "clEnqueueUnmapMemObject");
    }));
  }
  return {};
}

Result<EventObject> ClStream::take_back(std::span<const ClBuffer* const> pinned) {
  EventObject last;
  for (const ClBuffer* buffer : pinned) {
    cl_event event = nullptr;
    cl_int code = CL_SUCCESS;
    cl_.clEnqueueMapBuffer(queue(), buffer->object(), CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0, buffer->bytes(), 0,
                           nullptr, &event, &code);
    last = EventObject(event);
    TENON_OK(check(code, "clEnqueueMapBuffer"));
    buffer->used(Access::write, queue(), retained(cl_, last.get()));
    host_uses_.add(Access::write, {buffer->host_data(), buffer->bytes()}, queue(), retained(cl_, last.get()));
  }
  return last;
}

// ---- The host ----

Result<EventPtr> ClStream::call(std::function<Result<void>()> work) {
  TENON_OK(synchronize());
  auto done = work();
  if (!done.ok()) return fate_->ended(done.error(), /*of_device=*/false).error();
  return completed_event();
}

Result<void> ClStream::synchronize() {
  TENON_OK(add([&]() -> Result<void> {
    for (const Queue* queue : {&queues_.to_device, &queues_.compute, &queues_.to_host})
      TENON_OK(check(cl_.clFinish(queue->get()), "clFinish"));
    return downloads_->finish_all();
  }));
  host_uses_.clear();
  return {};
}

}  // namespace tenon::opencl
