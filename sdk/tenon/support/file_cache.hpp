// FileCache: a private folder of files that programs make for themselves and may lose: compiled code.
//
//   FileCache files(FileCache::default_folder(), {.folder = "x86", .suffix = ".code"});
//   if (const auto bytes = files.load(key)) ...
//   files.store(key, bytes);
//
// The folder must be one of this user that nobody else may write to. A file is written beside its place and renamed, so
// readers see all of it or nothing; what is in it is for the caller to check. When the files exceed their bound, those
// that were used longest ago go.
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

// 128 bits of what a thing is made of.
struct TENON_API ContentKey {
  uint64_t high = 0, low = 0;
  // Content of another seed has another key.
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
  // `folder`: options.folder is made inside, when the first file is written. Empty: no files.
  FileCache(std::string folder, Options options);
  // TENON_CACHE_DIR, else $XDG_CACHE_HOME/tenon, else ~/.cache/tenon (environment as secure_getenv gives it); empty
  // when there is none.
  static std::string default_folder();

  std::optional<std::vector<std::byte>> load(const ContentKey& key) const;
  void store(const ContentKey& key, std::span<const std::byte> bytes) const;
  // Says that the file of `key` cannot be used.
  void distrusted(const ContentKey& key, std::string_view why) const;

 private:
  bool usable() const;
  std::string path(const ContentKey& key) const;
  void trim() const;
  std::string folder_, suffix_;
  uint64_t max_bytes_;
  // Bytes written since all files were looked at; the first store looks.
  std::shared_ptr<std::atomic<uint64_t>> stored_ = std::make_shared<std::atomic<uint64_t>>(uint64_t{1} << 62);
};

}  // namespace tenon
