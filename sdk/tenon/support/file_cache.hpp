// FileCache: a private folder of files that programs can make again, such as compiled code.
//
//   FileCache files(FileCache::default_folder(), {.folder = "x86", .suffix = ".code"});
//   if (const auto bytes = files.load(key)) ...
//   files.store(key, bytes);
//
// The folder must belong to this user, and nobody else may be able to write to it. A file is written under a temporary
// name and renamed, so readers see all of it or nothing; its content is the caller's to check. When the files exceed
// their bound, the least recently used ones are removed.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/support/export.hpp>

namespace tenon {

// A 128-bit hash of some content.
struct TENON_API ContentKey {
  uint64_t high = 0, low = 0;
  // The same content with different seeds has different keys.
  static ContentKey of(std::string_view content, uint64_t seed = 0);
  std::string to_string() const;  // 32 hexadecimal digits
  bool operator==(const ContentKey&) const = default;
};
struct ContentKeyHash {
  size_t operator()(const ContentKey& key) const { return key.low; }
};

// Any thread, any number of processes. Failures are warnings.
class TENON_API FileCache {
 public:
  struct Options {
    std::string folder, suffix;
    uint64_t max_bytes = uint64_t{64} << 20;
  };
  // `folder`: options.folder is created inside it when the first file is written. Empty: no files.
  FileCache(std::string folder, Options options);
  // TENON_CACHE_DIR, else $XDG_CACHE_HOME/tenon, else ~/.cache/tenon (environment as secure_getenv gives it); empty
  // when there is none.
  static std::string default_folder();

  std::optional<std::vector<std::byte>> load(const ContentKey& key) const;
  void store(const ContentKey& key, std::span<const std::byte> bytes) const;
  // Warns that the file of `key` cannot be used.
  void distrusted(const ContentKey& key, std::string_view why) const;

 private:
  bool usable() const;
  std::string path(const ContentKey& key) const;
  void trim() const;
  std::string folder_, suffix_;
  uint64_t max_bytes_;
  // Bytes written since the folder was last scanned; starts so high that the first store scans it.
  std::shared_ptr<std::atomic<uint64_t>> stored_ = std::make_shared<std::atomic<uint64_t>>(uint64_t{1} << 62);
};

}  // namespace tenon
