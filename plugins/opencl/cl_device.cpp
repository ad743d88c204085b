#include "opencl/cl_device.hpp"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include <tenon/support/str.hpp>

#include "opencl/cl_stream.hpp"

namespace tenon::opencl {
namespace {

constexpr uint64_t kMostFileBytes = uint64_t{256} << 20, kMostFormBytes = uint64_t{4} << 20;
// Whole pages: drivers require that of host memory that is used in place.
constexpr size_t kPageBytes = 4096;

// Rounds to few distinct sizes, so that buffers can be reused; wastes at most an eighth.
size_t rounded(size_t bytes) {
  constexpr size_t kLeast = 256;
  if (bytes <= kLeast) return kLeast;
  const size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

size_t rounded_to_pages(size_t bytes) { return (rounded(bytes) + kPageBytes - 1) / kPageBytes * kPageBytes; }

}  // namespace

ClDevice::ClDevice(const DeviceInfo& info) : info_(info), name_(str("opencl:", info.number)) {}

ClDevice::~ClDevice() { release(std::move(kept_)); }

std::shared_ptr<ClDevice> ClDevice::of(const DeviceInfo& info) {
  static std::mutex mutex;
  static std::unordered_map<uint32_t, std::weak_ptr<ClDevice>> known;
  const std::lock_guard lock(mutex);
  std::weak_ptr<ClDevice>& place = known[info.number];
  if (auto device = place.lock(); device && !device->distrusted_) return device;
  auto device = std::make_shared<ClDevice>(info);
  place = device;
  return device;
}

void ClDevice::distrust() { distrusted_ = true; }

Result<ClDevice::Driver*> ClDevice::driver() {
  const std::lock_guard lock(open_mutex_);
  if (driver_) return driver_.get();
  TENON_TRY(cl, api());
  TENON_TRY(id, device_id(*cl, info_));
  cl_int code = CL_SUCCESS;
  Context context(cl->clCreateContext(nullptr, 1, &id, nullptr, nullptr, &code));
  TENON_OK(check(code, "clCreateContext"), "opening OpenCL device '", info_.name, "'");
  Queue maps(cl->clCreateCommandQueue(context.get(), id, 0, &code));
  TENON_OK(check(code, "clCreateCommandQueue"), "opening OpenCL device '", info_.name, "'");
  FileCache files(FileCache::default_folder(), {.folder = "opencl", .suffix = ".bin", .max_bytes = kMostFileBytes});
  const cl_context object = context.get();
  FileCache forms(FileCache::default_folder(), {.folder = "opencl", .suffix = ".form", .max_bytes = kMostFormBytes});
  driver_.reset(new Driver{cl,
                           id,
                           std::move(context),
                           {*cl, info_, id, object, std::move(files), binaries_of(info_)},
                           FormChoices(std::move(forms)),
                           std::move(maps)});
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

// ---- Memory ----

Result<Memory> ClDevice::create_buffer(size_t bytes, cl_mem_flags flags, void* storage) {
  if (bytes > info_.most_allocation_bytes)
    return error(Code::resource_exhausted, "device '", name_, "' gives at most ", info_.most_allocation_bytes,
                 " bytes in one piece, ", bytes, " are wanted");
  TENON_TRY(driver, this->driver());
  const auto create = [&](cl_int& code) {
    return Memory(driver->cl->clCreateBuffer(driver->context.get(), flags, std::max<size_t>(bytes, 1), storage, &code));
  };
  cl_int code = CL_SUCCESS;
  Memory memory = create(code);
  if (code != CL_SUCCESS && failure(code, "").code() == Code::resource_exhausted) {
    release_idle();  // memory kept for reuse may be what is missing
    memory = create(code);
  }
  TENON_OK(check(code, "clCreateBuffer"), bytes, " bytes on device '", name_, "'");
  return memory;
}

Result<Memory> ClDevice::allocate_memory(size_t bytes, cl_mem_flags flags) {
  return create_buffer(bytes, flags, nullptr);
}

Result<std::shared_ptr<ClBuffer>> ClDevice::allocate_buffer(size_t bytes) {
  Piece piece = take(rounded(bytes), /*pinned=*/false);
  if (!piece.memory) {
    TENON_TRY(memory, allocate_memory(rounded(bytes)));
    piece = {{}, std::move(memory), nullptr, rounded(bytes)};
  }
  return std::make_shared<ClBuffer>(shared_from_this(), std::move(piece), bytes);
}

Result<Piece> ClDevice::make_pinned(size_t bytes) {
  TENON_TRY(driver, this->driver());
  Piece piece{.bytes = bytes};
  if (info_.shares_memory) {
    // Storage of our own keeps its address from one mapping to the next.
    TENON_TRY(storage, allocate_aligned(bytes, kPageBytes));
    piece.storage = std::move(storage);
  }
  const cl_mem_flags where = info_.shares_memory ? CL_MEM_USE_HOST_PTR : CL_MEM_ALLOC_HOST_PTR;
  TENON_TRY(memory, create_buffer(bytes, CL_MEM_READ_WRITE | where, piece.storage.get()), "pinned memory");
  piece.memory = std::move(memory);
  cl_int code = CL_SUCCESS;
  void* host = driver->cl->clEnqueueMapBuffer(driver->maps.get(), piece.memory.get(), CL_TRUE,
                                              CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, nullptr, nullptr, &code);
  TENON_OK(check(code, "clEnqueueMapBuffer"), bytes, " bytes of pinned memory of device '", name_, "'");
  piece.host = static_cast<std::byte*>(host);
  const std::lock_guard lock(mutex_);
  pinned_[piece.host] = bytes;
  return piece;
}

Result<std::shared_ptr<ClBuffer>> ClDevice::allocate_pinned(size_t bytes) {
  Piece piece = take(rounded_to_pages(bytes), /*pinned=*/true);
  if (!piece.memory) {
    TENON_TRY(made, make_pinned(rounded_to_pages(bytes)));
    piece = std::move(made);
  }
  return std::make_shared<ClBuffer>(shared_from_this(), std::move(piece), bytes);
}

Result<std::shared_ptr<Buffer>> ClDevice::allocate(std::string_view memory, size_t bytes) {
  if (memory != kGlobalMemory && memory != kPinnedMemory)
    return error(Code::not_found, "device '", name_, "' has no memory '", memory, "'; it has '", kGlobalMemory,
                 "' and '", kPinnedMemory, "'");
  TENON_TRY(buffer, memory == kPinnedMemory ? allocate_pinned(bytes) : allocate_buffer(bytes));
  return std::shared_ptr<Buffer>(std::move(buffer));
}

bool ClDevice::stages(std::span<const std::byte> host) const {
  if (info_.shares_memory || host.size() > kMostStagedBytes) return false;
  const std::lock_guard lock(mutex_);
  const auto behind = pinned_.upper_bound(host.data());
  if (behind == pinned_.begin()) return true;
  const auto& [begin, bytes] = *std::prev(behind);
  return host.data() + host.size() > begin + bytes;
}

// ---- Buffers kept for reuse ----

void ClDevice::keep(Piece piece, Uses uses) {
  std::list<Kept> gone;
  {
    const std::lock_guard lock(mutex_);
    kept_bytes_ += piece.bytes;
    kept_.push_front({std::move(piece), std::move(uses)});
    while (kept_bytes_ > kMostKeptBytes) {
      kept_bytes_ -= kept_.back().piece.bytes;
      gone.splice(gone.end(), kept_, std::prev(kept_.end()));
    }
  }
  release(std::move(gone));
}

Piece ClDevice::take(size_t bytes, bool pinned) {
  const std::lock_guard lock(mutex_);
  for (auto it = kept_.begin(); it != kept_.end(); ++it) {
    if (it->piece.bytes != bytes || (it->piece.host != nullptr) != pinned || !it->uses.idle(cl())) continue;
    Piece piece = std::move(it->piece);
    kept_bytes_ -= bytes;
    kept_.erase(it);
    return piece;
  }
  return {};
}

void ClDevice::release_idle() {
  std::list<Kept> gone;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = kept_.begin(); it != kept_.end();) {
      const auto next = std::next(it);
      if (it->uses.idle(cl())) {
        kept_bytes_ -= it->piece.bytes;
        gone.splice(gone.end(), kept_, it);
      }
      it = next;
    }
  }
  release(std::move(gone));
}

// The driver keeps device memory until the work that uses it is complete, but not our host pages: those are waited for.
void ClDevice::release(std::list<Kept> gone) {
  for (Kept& kept : gone)
    if (kept.piece.host) unpin(kept);
}

void ClDevice::unpin(Kept& kept) {
  {
    const std::lock_guard lock(mutex_);
    pinned_.erase(kept.piece.host);
  }
  WaitList waits(cl());
  kept.uses.before(Access::write, nullptr, waits);
  // Where this fails, the device is lost and accesses nothing any more.
  static_cast<void>(waits.wait());
  cl().clEnqueueUnmapMemObject(driver_->maps.get(), kept.piece.memory.get(), kept.piece.host, 0, nullptr, nullptr);
  cl().clFinish(driver_->maps.get());
}

// ---- Streams ----

Result<std::unique_ptr<ClStream>> ClDevice::open_stream() {
  TENON_TRY(driver, this->driver());
  StreamQueues queues;
  for (Queue* queue : {&queues.compute, &queues.to_device, &queues.to_host}) {
    cl_int code = CL_SUCCESS;
    *queue = Queue(driver->cl->clCreateCommandQueue(driver->context.get(), driver->id, 0, &code));
    TENON_OK(check(code, "clCreateCommandQueue"), "a stream of device '", name_, "'");
  }
  return std::make_unique<ClStream>(shared_from_this(), std::move(queues));
}

Result<std::unique_ptr<Stream>> ClDevice::create_stream(bool) {
  TENON_TRY(stream, open_stream());
  return std::unique_ptr<Stream>(std::move(stream));
}

}  // namespace tenon::opencl
