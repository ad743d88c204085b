// The cache sizes of this machine, as the system reports them.
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <string>

#include <tenon/program/schedule/machine_readings.hpp>

namespace tenon::program {

namespace {

namespace fs = std::filesystem;

std::string first_word(const fs::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

// "32768K"; 0: not such a number.
size_t bytes_of(std::string_view text) {
  size_t kilobytes = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), kilobytes);
  const bool whole = problem == std::errc() && std::string_view(end, text.data() + text.size()) == "K";
  return whole ? kilobytes << 10 : 0;
}

}  // namespace

CacheBytes cache_bytes_in(const fs::path& folder, const CacheBytes& otherwise) {
  CacheBytes out = otherwise;
  std::error_code missing;
  for (int i = 0;; ++i) {
    const fs::path index = folder / str("index", i);
    if (!fs::is_directory(index, missing)) return out;
    const std::string level = first_word(index / "level"), type = first_word(index / "type");
    const size_t bytes = bytes_of(first_word(index / "size"));
    for (size_t l = 0; l < out.size(); ++l)
      if (level == std::to_string(l + 1) && (type == "Data" || type == "Unified") && bytes > 0) out[l] = bytes;
  }
}

CacheBytes cache_bytes_of_machine() {
  const CostModel usual = CostModel::host();
  CacheBytes stated{};
  constexpr std::array<int, 3> kNames{_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
  for (size_t level = 0; level < stated.size(); ++level) {
    const long bytes = sysconf(kNames[level]);
    stated[level] = bytes > 0 ? static_cast<size_t>(bytes) : static_cast<size_t>(usual.memories[level].bytes);
  }
  // The C library derives the size of the last-level cache from numbers of threads, which virtual machines state
  // arbitrarily.
  return cache_bytes_in("/sys/devices/system/cpu/cpu0/cache", stated);
}

}  // namespace tenon::program
