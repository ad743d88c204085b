#include "x86/code/jit_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>

#include "x86/code/code_observers.hpp"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U  // Linux 6.3
#endif

namespace tenon::x86 {
namespace {

constexpr size_t kAlignment = 64, kRegionBytes = size_t{1} << 20;
constexpr int kInt3 = 0xcc;

size_t rounded(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// Where vm.memfd_noexec is set, a file must be created as executable; older systems do not know the flag.
int make_file() {
  const int fd = memfd_create("tenon-jit", MFD_CLOEXEC | MFD_EXEC);
  return fd >= 0 || errno != EINVAL ? fd : memfd_create("tenon-jit", MFD_CLOEXEC);
}

Result<void> write_all(int fd, const std::byte* data, size_t bytes, size_t offset) {
  while (bytes > 0) {
    const ssize_t written = pwrite(fd, data, bytes, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      return error(Code::resource_exhausted, "no memory for ", bytes, " bytes of code: ", std::strerror(errno));
    data += written;
    offset += static_cast<size_t>(written);
    bytes -= static_cast<size_t>(written);
  }
  return {};
}

}  // namespace

// One file and its mapping. Offsets and sizes are multiples of 64.
struct JitCode::Region {
  int fd = -1;
  std::byte* base = nullptr;
  size_t bytes = 0;
  pid_t owner = getpid();  // a child of fork() shares the file and must not write to it
  mutable std::mutex mutex;
  std::map<size_t, size_t> free;  // offset -> bytes; adjacent ranges are merged
  std::map<size_t, size_t> used;

  static Result<std::shared_ptr<Region>> make(size_t bytes);
  ~Region();
  std::optional<size_t> take(size_t wanted);
  void give_back(size_t offset);
};

JitCode::Region::~Region() {
  if (base) munmap(base, bytes);
  if (fd >= 0) close(fd);
}

Result<std::shared_ptr<JitCode::Region>> JitCode::Region::make(size_t bytes) {
  auto region = std::make_shared<Region>();
  const auto refused = [&](std::string_view call) {
    return error(Code::resource_exhausted, "no memory for generated code (", bytes, " bytes): ", call, ": ",
                 std::strerror(errno));
  };
  region->fd = make_file();
  if (region->fd < 0) return refused("memfd_create");
  if (ftruncate(region->fd, static_cast<off_t>(bytes)) != 0) return refused("ftruncate");
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_EXEC, MAP_SHARED, region->fd, 0);
  if (base == MAP_FAILED) return refused("mmap");
  region->base = static_cast<std::byte*>(base);
  region->bytes = bytes;
  region->free[0] = bytes;
  return region;
}

// First fit, because kernels have similar lifetimes.
std::optional<size_t> JitCode::Region::take(size_t wanted) {
  const std::lock_guard lock(mutex);
  for (const auto& [offset, size] : free) {
    if (size < wanted) continue;
    const size_t at = offset, left = size - wanted;
    free.erase(at);
    if (left > 0) free[at + wanted] = left;
    used[at] = wanted;
    return at;
  }
  return std::nullopt;
}

void JitCode::Region::give_back(size_t offset) {
  const std::lock_guard lock(mutex);
  const auto taken = used.find(offset);
  if (owner == getpid()) {
    const std::vector<std::byte> traps(taken->second, std::byte{kInt3});
    // Without traps the freed code is still unused, so a failure does no harm.
    if (!write_all(fd, traps.data(), traps.size(), offset).ok()) errno = 0;
  }
  auto [at, is_new] = free.emplace(offset, taken->second);
  used.erase(taken);
  if (const auto next = std::next(at); next != free.end() && at->first + at->second == next->first) {
    at->second += next->second;
    free.erase(next);
  }
  if (at == free.begin()) return;
  if (const auto before = std::prev(at); before->first + before->second == at->first) {
    before->second += at->second;
    free.erase(at);
  }
}

JitCode::~JitCode() {
  code_removed(*this);
  region_->give_back(static_cast<size_t>(static_cast<const std::byte*>(address_) - region_->base));
}

JitMemory& JitMemory::shared() {
  static JitMemory memory;
  return memory;
}

Result<std::shared_ptr<const JitCode>> JitMemory::add(std::shared_ptr<const CodeObject> object) {
  const size_t bytes = rounded(std::max<size_t>(object->bytes.size(), 1), kAlignment);
  std::shared_ptr<JitCode::Region> region;
  std::optional<size_t> offset;
  {
    const std::lock_guard lock(mutex_);
    const pid_t self = getpid();
    for (const auto& candidate : regions_) {
      if (candidate->owner != self || !(offset = candidate->take(bytes))) continue;
      region = candidate;
      break;
    }
    if (!region) {
      // Releases files without live code.
      std::erase_if(regions_, [](const auto& old) { return old.use_count() == 1; });
      TENON_TRY(made, JitCode::Region::make(std::max(kRegionBytes, rounded(bytes, 4096))));
      region = std::move(made);
      offset = region->take(bytes);
      regions_.push_back(region);
    }
  }
  std::shared_ptr<const JitCode> code(new JitCode(std::move(object), region, region->base + *offset));
  TENON_OK(write_all(region->fd, code->object().bytes.data(), code->object().bytes.size(), *offset), "kernel '",
           code->object().name, "'");
  code_added(*code);
  return code;
}

JitMemory::Usage JitMemory::usage() const {
  const std::lock_guard lock(mutex_);
  Usage usage;
  for (const auto& region : regions_) {
    const std::lock_guard region_lock(region->mutex);
    usage.kernels += region->used.size();
    usage.mapped_bytes += region->bytes;
    for (const auto& [offset, bytes] : region->used) usage.used_bytes += bytes;
  }
  return usage;
}

}  // namespace tenon::x86
