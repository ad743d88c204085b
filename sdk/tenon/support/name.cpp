#include <tenon/support/name.hpp>

#include <mutex>
#include <shared_mutex>
#include <unordered_set>

namespace tenon {
namespace {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

struct Table {
  std::shared_mutex mutex;
  std::unordered_set<std::string, TextHash, std::equal_to<>> entries;
};

// Leaked on purpose: names made by plugins are read until the very end of the process.
Table& table() {
  static auto* instance = new Table;
  return *instance;
}

}  // namespace

Name::Name(std::string_view text) {
  Table& t = table();
  {
    std::shared_lock lock(t.mutex);
    if (auto found = t.entries.find(text); found != t.entries.end()) {
      text_ = &*found;
      return;
    }
  }
  std::unique_lock lock(t.mutex);
  text_ = &*t.entries.emplace(text).first;
}

}  // namespace tenon
