#include <tenon/support/file_cache.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <tenon/support/hash.hpp>
#include <tenon/support/log.hpp>
#include <tenon/support/str.hpp>

namespace tenon {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  int fd_;
};

// Why a folder or file cannot be trusted; empty when it can: it is ours, and nobody else can have written it.
std::string distrust(const struct stat& info, bool folder) {
  if (folder ? !S_ISDIR(info.st_mode) : !S_ISREG(info.st_mode)) return folder ? "it is no folder" : "it is no file";
  if (info.st_uid != geteuid()) return str("it belongs to user ", info.st_uid);
  if (info.st_mode & (S_IWGRP | S_IWOTH)) return "others may write to it";
  return {};
}

void warn(const std::string& path, std::string_view why) {
  log(LogLevel::warning, "file cache: ", path, " is not used: ", why);
}

// Like mkdir -p; the last folder is private.
bool make_folders(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    if (mkdir(path.substr(0, slash).c_str(), 0700) != 0 && errno != EEXIST) return false;
  return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

std::optional<std::vector<std::byte>> read_all(int fd, size_t size) {
  std::vector<std::byte> bytes(size);
  size_t done = 0;
  while (done < size) {
    const ssize_t got = read(fd, bytes.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    done += static_cast<size_t>(got);
  }
  return bytes;
}

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

ContentKey ContentKey::of(std::string_view content, uint64_t seed) {
  const auto bytes = std::as_bytes(std::span(content));
  return {hash_mix(hash_bytes(bytes, seed), content.size()), hash_mix(hash_bytes(bytes, ~seed), fnv1a(content, seed))};
}

std::string ContentKey::to_string() const {
  std::string text;
  for (const uint64_t word : {high, low})
    for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[word >> shift & 15];
  return text;
}

FileCache::FileCache(std::string folder, Options options)
    : folder_(std::move(folder)), suffix_(std::move(options.suffix)), max_bytes_(options.max_bytes) {
  if (!folder_.empty()) folder_ += "/" + options.folder;
}

std::string FileCache::default_folder() {
  if (const char* folder = secure_getenv("TENON_CACHE_DIR")) return folder;
  if (const char* folder = secure_getenv("XDG_CACHE_HOME"); folder && folder[0] == '/') return str(folder, "/tenon");
  if (const char* home = secure_getenv("HOME"); home && home[0] == '/') return str(home, "/.cache/tenon");
  return {};
}

std::string FileCache::path(const ContentKey& key) const { return str(folder_, "/", key, suffix_); }

bool FileCache::usable() const {
  if (folder_.empty()) return false;
  struct stat info {};
  if (lstat(folder_.c_str(), &info) != 0) {
    if (errno != ENOENT) warn(folder_, std::strerror(errno));
    return false;
  }
  const std::string why = distrust(info, true);
  if (!why.empty()) warn(folder_, why);
  return why.empty();
}

std::optional<std::vector<std::byte>> FileCache::load(const ContentKey& key) const {
  if (!usable()) return std::nullopt;
  const std::string name = path(key);
  const Descriptor file(open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file.ok()) {
    if (errno != ENOENT) warn(name, std::strerror(errno));
    return std::nullopt;
  }
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return warn(name, std::strerror(errno)), std::nullopt;
  if (const std::string why = distrust(info, false); !why.empty()) return warn(name, why), std::nullopt;
  if (static_cast<uint64_t>(info.st_size) > max_bytes_) return warn(name, "it is too large"), std::nullopt;
  auto bytes = read_all(file.get(), static_cast<size_t>(info.st_size));
  if (!bytes) return warn(name, "it cannot be read"), std::nullopt;
  futimens(file.get(), nullptr);  // for trim(); where the file system refuses it, the oldest written file goes first
  return bytes;
}

void FileCache::distrusted(const ContentKey& key, std::string_view why) const { warn(path(key), why); }

void FileCache::store(const ContentKey& key, std::span<const std::byte> bytes) const {
  if (folder_.empty()) return;
  if (!make_folders(folder_)) return warn(folder_, std::strerror(errno));
  if (!usable()) return;
  static std::atomic<uint64_t> number{0};
  const std::string draft = str(folder_, "/", getpid(), "-", number.fetch_add(1), ".draft");
  const Descriptor file(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.ok()) return warn(draft, std::strerror(errno));
  if (!write_all(file.get(), bytes) || rename(draft.c_str(), path(key).c_str()) != 0) {
    warn(draft, std::strerror(errno));
    unlink(draft.c_str());
    return;
  }
  // A scan costs in proportion to the number of files, so there is one for each sixteenth of the bound that is written.
  if (stored_->fetch_add(bytes.size()) + bytes.size() < max_bytes_ / 16) return;
  stored_->store(0);
  trim();
}

// Reduces the files to three quarters of the bound, so that not every further file causes a scan.
void FileCache::trim() const {
  struct Entry {
    timespec used;
    uint64_t bytes;
    std::string path;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  DIR* folder = opendir(folder_.c_str());
  if (!folder) return;
  while (const dirent* entry = readdir(folder)) {
    struct stat info {};
    const std::string path = str(folder_, "/", std::string_view(entry->d_name));
    if (entry->d_name[0] == '.' || lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    total += static_cast<uint64_t>(info.st_size);
    entries.push_back({info.st_mtim, static_cast<uint64_t>(info.st_size), path});
  }
  closedir(folder);
  if (total <= max_bytes_) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  for (const Entry& entry : entries) {
    if (total <= max_bytes_ / 4 * 3) return;
    if (unlink(entry.path.c_str()) == 0) total -= entry.bytes;
  }
}

}  // namespace tenon
