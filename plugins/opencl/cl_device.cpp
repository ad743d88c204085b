#include "opencl/cl_device.hpp"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include <tenon/support/str.hpp>

namespace tenon::opencl {
namespace {

class ClEvent final : public Event {
 public:
  ClEvent(std::shared_ptr<ClDevice> device, EventObject event) : device_(std::move(device)), event_(std::move(event)) {}
  Result<void> wait() override {
    const cl_event event = event_.get();
    const cl_int code = device_->cl().clWaitForEvents(1, &event);
    if (code != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) return check(code, "clWaitForEvents");
    cl_int status = code;
    device_->cl().clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    return failure(status < 0 ? status : code, str("work on device '", device_->name(), "'"));
  }
  bool done() const override {
    cl_int status = CL_QUEUED;
    const cl_int code =
        device_->cl().clGetEventInfo(event_.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    return code != CL_SUCCESS || status <= CL_COMPLETE;
  }

 private:
  std::shared_ptr<ClDevice> device_;
  EventObject event_;
};

constexpr uint64_t kMostFileBytes = uint64_t{256} << 20, kMostFormBytes = uint64_t{4} << 20;

// Few sizes, so that buffers find one another: an eighth is wasted at most.
size_t rounded(size_t bytes) {
  constexpr size_t kLeast = 256;
  if (bytes <= kLeast) return kLeast;
  const size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

}  // namespace

EventObject retained(const Api& cl, const EventObject& event) {
  if (!event || cl.clRetainEvent(event.get()) != CL_SUCCESS) return {};
  return EventObject(event.get());
}

// ---- Buffers ----

ClBuffer::ClBuffer(std::shared_ptr<ClDevice> device, Memory memory, size_t bytes)
    : device_(std::move(device)), memory_(std::move(memory)), bytes_(bytes) {}

ClBuffer::~ClBuffer() { device_->keep({std::move(memory_), rounded(bytes_), std::move(last_use_)}); }

Device& ClBuffer::device() const { return *device_; }

const std::string& ClBuffer::memory() const {
  static const std::string kName(kGlobalMemory);
  return kName;
}

void ClBuffer::used_until(EventObject event) {
  const std::lock_guard lock(mutex_);
  last_use_ = std::move(event);
}

// ---- Devices ----

ClDevice::ClDevice(const DeviceInfo& info) : info_(info), name_(str("opencl:", info.number)) {}

std::shared_ptr<ClDevice> ClDevice::of(const DeviceInfo& info) {
  static std::mutex mutex;
  static std::unordered_map<uint32_t, std::weak_ptr<ClDevice>> known;
  const std::lock_guard lock(mutex);
  std::weak_ptr<ClDevice>& place = known[info.number];
  if (auto device = place.lock()) return device;
  auto device = std::make_shared<ClDevice>(info);
  place = device;
  return device;
}

Result<ClDevice::Driver*> ClDevice::driver() {
  const std::lock_guard lock(open_mutex_);
  if (driver_) return driver_.get();
  TENON_TRY(cl, api());
  TENON_TRY(id, device_id(*cl, info_));
  cl_int code = CL_SUCCESS;
  Context context(cl->clCreateContext(nullptr, 1, &id, nullptr, nullptr, &code));
  TENON_OK(check(code, "clCreateContext"), "opening OpenCL device '", info_.name, "'");
  FileCache files(FileCache::default_folder(), {.folder = "opencl", .suffix = ".bin", .max_bytes = kMostFileBytes});
  const cl_context object = context.get();
  FileCache forms(FileCache::default_folder(), {.folder = "opencl", .suffix = ".form", .max_bytes = kMostFormBytes});
  driver_.reset(new Driver{
      cl, id, std::move(context), {*cl, info_, id, object, std::move(files)}, FormChoices(std::move(forms))});
  return driver_.get();
}

Result<ProgramCache*> ClDevice::programs() {
  TENON_TRY(driver, this->driver());
  return &driver->programs;
}

Result<FormChoices*> ClDevice::form_choices() {
  TENON_TRY(driver, this->driver());
  return &driver->forms;
}

Result<Memory> ClDevice::allocate_memory(size_t bytes, cl_mem_flags flags) {
  if (bytes > info_.most_allocation_bytes)
    return error(Code::resource_exhausted, "device '", name_, "' gives at most ", info_.most_allocation_bytes,
                 " bytes in one piece, ", bytes, " are wanted");
  TENON_TRY(driver, this->driver());
  cl_int code = CL_SUCCESS;
  Memory memory(driver->cl->clCreateBuffer(driver->context.get(), flags, std::max<size_t>(bytes, 1), nullptr, &code));
  TENON_OK(check(code, "clCreateBuffer"), bytes, " bytes on device '", name_, "'");
  return memory;
}

bool ClDevice::is_idle(const EventObject& event) const {
  if (!event) return true;
  cl_int status = CL_QUEUED;
  const cl_int code =
      cl().clGetEventInfo(event.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return code == CL_SUCCESS && status <= CL_COMPLETE;
}

void ClDevice::keep(Kept kept) {
  std::list<Kept> gone;  // released without the lock
  const std::lock_guard lock(mutex_);
  kept_bytes_ += kept.bytes;
  kept_.push_front(std::move(kept));
  while (kept_bytes_ > kMostKeptBytes) {
    kept_bytes_ -= kept_.back().bytes;
    gone.splice(gone.end(), kept_, std::prev(kept_.end()));
  }
}

Memory ClDevice::take(size_t bytes) {
  const std::lock_guard lock(mutex_);
  for (auto it = kept_.begin(); it != kept_.end(); ++it) {
    if (it->bytes != bytes || !is_idle(it->last_use)) continue;
    Memory memory = std::move(it->memory);
    kept_bytes_ -= bytes;
    kept_.erase(it);
    return memory;
  }
  return {};
}

Result<std::shared_ptr<ClBuffer>> ClDevice::allocate_buffer(size_t bytes) {
  Memory memory = take(rounded(bytes));
  if (!memory) {
    TENON_TRY(made, allocate_memory(rounded(bytes)));
    memory = std::move(made);
  }
  return std::make_shared<ClBuffer>(shared_from_this(), std::move(memory), bytes);
}

Result<std::shared_ptr<Buffer>> ClDevice::allocate(std::string_view memory, size_t bytes) {
  if (memory != kGlobalMemory)
    return error(Code::not_found, "device '", name_, "' has no memory '", memory, "'; it has '", kGlobalMemory, "'");
  TENON_TRY(buffer, allocate_buffer(bytes));
  return std::shared_ptr<Buffer>(std::move(buffer));
}

Result<std::unique_ptr<ClStream>> ClDevice::open_stream() {
  TENON_TRY(driver, this->driver());
  cl_int code = CL_SUCCESS;
  Queue queue(driver->cl->clCreateCommandQueue(driver->context.get(), driver->id, 0, &code));
  TENON_OK(check(code, "clCreateCommandQueue"), "a stream of device '", name_, "'");
  return std::make_unique<ClStream>(shared_from_this(), std::move(queue));
}

Result<std::unique_ptr<Stream>> ClDevice::create_stream(bool) {
  TENON_TRY(stream, open_stream());
  return std::unique_ptr<Stream>(std::move(stream));
}

// ---- Streams ----

ClStream::~ClStream() { device_->cl().clFinish(queue()); }

Result<void> ClStream::usable() const {
  if (error_) return *error_;
  return {};
}

Result<EventObject> ClStream::mark() {
  cl_event event = nullptr;
  TENON_OK(add([&] {
    return check(device_->cl().clEnqueueMarkerWithWaitList(queue(), 0, nullptr, &event), "clEnqueueMarkerWithWaitList");
  }));
  EventObject object(event);
  TENON_OK(flush());
  return object;
}

Result<void> ClStream::flush() {
  return add([&] { return check(device_->cl().clFlush(queue()), "clFlush"); });
}

Result<EventPtr> ClStream::event_of(EventObject event) {
  return EventPtr(std::make_shared<ClEvent>(device_, std::move(event)));
}

Result<EventPtr> ClStream::finish(cl_int code, std::string_view what, cl_event event, const Buffer* first,
                                  const Buffer* second) {
  TENON_OK(add([&] { return check(code, what); }), "device '", device_->name(), "'");
  EventObject object(event);
  for (const Buffer* buffer : {first, second})
    if (buffer) const_cast<ClBuffer&>(cl_buffer(*buffer)).used_until(retained(device_->cl(), object));
  TENON_OK(flush());
  return event_of(std::move(object));
}

Result<EventPtr> ClStream::copy_to_device(Buffer& to, size_t to_offset, std::span<const std::byte> from) {
  TENON_OK(usable());
  TENON_OK(check_range(*device_, to, to_offset, from.size(), "written"));
  if (from.empty()) return completed_event();
  cl_event event = nullptr;
  const cl_int code = device_->cl().clEnqueueWriteBuffer(queue(), cl_buffer(to).object(), CL_FALSE, to_offset,
                                                         from.size(), from.data(), 0, nullptr, &event);
  return finish(code, "clEnqueueWriteBuffer", event, &to, nullptr);
}

Result<EventPtr> ClStream::copy_to_host(std::span<std::byte> to, const Buffer& from, size_t from_offset) {
  TENON_OK(usable());
  TENON_OK(check_range(*device_, from, from_offset, to.size(), "read"));
  if (to.empty()) return completed_event();
  cl_event event = nullptr;
  const cl_int code = device_->cl().clEnqueueReadBuffer(queue(), cl_buffer(from).object(), CL_FALSE, from_offset,
                                                        to.size(), to.data(), 0, nullptr, &event);
  return finish(code, "clEnqueueReadBuffer", event, &from, nullptr);
}

Result<EventPtr> ClStream::copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) {
  TENON_OK(usable());
  TENON_OK(check_range(*device_, to, to_offset, bytes, "written"));
  TENON_OK(check_range(*device_, from, from_offset, bytes, "read"));
  if (bytes == 0) return completed_event();
  cl_event event = nullptr;
  const cl_int code = device_->cl().clEnqueueCopyBuffer(queue(), cl_buffer(from).object(), cl_buffer(to).object(),
                                                        from_offset, to_offset, bytes, 0, nullptr, &event);
  return finish(code, "clEnqueueCopyBuffer", event, &from, &to);
}

Result<EventPtr> ClStream::call(std::function<Result<void>()> work) {
  TENON_OK(synchronize());
  TENON_OK(add(work));
  return completed_event();
}

Result<void> ClStream::synchronize() {
  return add([&] { return check(device_->cl().clFinish(queue()), "clFinish"); });
}

}  // namespace tenon::opencl
