#include <tenon/onnx/external_data_internal.hpp>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <tenon/support/str.hpp>

namespace tenon::onnx {
namespace {

// Why the last system call failed, as the end of a sentence.
std::string system_reason() { return std::strerror(errno); }

Result<void> check_location(const std::string& location) {
  const auto refuse = [&](std::string_view why) {
    return error(Code::invalid_argument, "external data location ", quote(location), " ", why,
                 "; it must name a file in or below the model's folder");
  };
  if (location.empty()) return refuse("is empty");
  if (location.find('\0') != std::string::npos) return refuse("has a NUL byte");
  if (location.front() == '/') return refuse("is absolute");
  for (const std::string_view part : split(location, '/')) {
    if (part == "..") return refuse("has a '..'");
  }
  return {};
}

// Kernels before 5.6, and sandboxes that forbid the call, lack openat2. Each folder of the path is then opened
// separately from the one before it, refusing links, so that nothing can be exchanged between check and use.
int open_part_by_part(int folder, const std::string& location) {
  int at = dup(folder);
  const auto parts = split(location, '/');
  for (size_t i = 0; i < parts.size() && at >= 0; ++i) {
    if (parts[i].empty() || parts[i] == ".") continue;
    const bool last = i + 1 == parts.size();
    const int flags =
        last ? O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const int next = openat(at, std::string(parts[i]).c_str(), flags);
    const int reason = errno;
    close(at);
    errno = reason;
    at = next;
  }
  return at;
}

int open_beneath(int folder, const std::string& location) {
  open_how how{};
  how.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long opened = syscall(SYS_openat2, folder, location.c_str(), &how, sizeof how);
  if (opened < 0 && (errno == ENOSYS || errno == EPERM)) return open_part_by_part(folder, location);
  return static_cast<int>(opened);
}

}  // namespace

Result<std::shared_ptr<MappedFile>> MappedFile::map(int descriptor, const std::string& name) {
  struct stat facts {};
  std::shared_ptr<MappedFile> file(new MappedFile);
  if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    close(descriptor);
    return error(Code::io, name, " is not a regular file");
  }
  file->size_ = static_cast<size_t>(facts.st_size);
  if (file->size_ > 0) {
    void* mapped = mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapped == MAP_FAILED) {
      const std::string reason = system_reason();
      close(descriptor);
      return error(Code::io, "mapping ", name, " (", file->size_, " bytes): ", reason);
    }
    file->data_ = static_cast<std::byte*>(mapped);
  }
  close(descriptor);
  return file;
}

MappedFile::~MappedFile() {
  if (data_) munmap(data_, size_);
}

Result<std::unique_ptr<ExternalData>> ExternalData::open(const std::string& folder) {
  const std::string path = folder.empty() ? "." : folder;
  const int descriptor = ::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return error(Code::io, "opening the folder of external data '", path, "': ", system_reason());
  return std::unique_ptr<ExternalData>(new ExternalData(path, descriptor));
}

ExternalData::~ExternalData() { close(descriptor_); }

Result<std::shared_ptr<MappedFile>> ExternalData::file(const std::string& location) {
  if (const auto found = files_.find(location); found != files_.end()) return found->second;
  TENON_OK(check_location(location));
  const std::string name = str("external data '", folder_, "/", location, "'");
  const int descriptor = open_beneath(descriptor_, location);
  if (descriptor < 0) {
    if (errno == ELOOP || errno == EXDEV) {
      return error(Code::invalid_argument, name,
                   " is reached through a symbolic link; only files of the folder itself are read");
    }
    return error(Code::io, "opening ", name, ": ", system_reason());
  }
  struct stat facts {};
  if (fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_nlink != 1) {
    close(descriptor);
    return error(Code::invalid_argument, name, " has ", facts.st_nlink,
                 " names (hard links), so it may be a file from elsewhere; copy it");
  }
  TENON_TRY(mapped, MappedFile::map(descriptor, name));
  files_.emplace(location, mapped);
  return mapped;
}

}  // namespace tenon::onnx
