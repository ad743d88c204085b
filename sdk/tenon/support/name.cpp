#include <tenon/support/name.hpp>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace tenon {
namespace {

// A hash table with linear probing. Names are looked up often and added rarely, so lookups take no lock.
class Table {
 public:
  Table() { slots_ = all_slots_.emplace_back(std::make_unique<Slots>(kFirstSlots)).get(); }

  const std::string* intern(std::string_view text) {
    const size_t hash = std::hash<std::string_view>()(text);
    if (const std::string* entry = find(*slots_.load(std::memory_order_acquire), text, hash)) return entry;
    const std::lock_guard lock(mutex_);
    if (const std::string* entry = find(*slots_, text, hash)) return entry;  // another thread has added it
    if (2 * (entries_.size() + 1) > slots_.load()->at.size()) grow();
    const std::string* entry = &entries_.emplace_back(text);
    put(*slots_, entry, hash);
    return entry;
  }

 private:
  static constexpr size_t kFirstSlots = 1024;
  struct Slots {
    explicit Slots(size_t size) : at(size) {}
    std::vector<std::atomic<const std::string*>> at;  // the size is a power of two; at least half are empty
    size_t place(size_t i) const { return i & (at.size() - 1); }
  };

  static const std::string* find(const Slots& slots, std::string_view text, size_t hash) {
    for (;; ++hash) {
      const std::string* entry = slots.at[slots.place(hash)].load(std::memory_order_acquire);
      if (!entry || *entry == text) return entry;
    }
  }
  static void put(Slots& slots, const std::string* entry, size_t hash) {
    while (slots.at[slots.place(hash)].load(std::memory_order_relaxed)) ++hash;
    slots.at[slots.place(hash)].store(entry, std::memory_order_release);
  }
  // Keeps the old slots, because other threads may still be reading them.
  void grow() {
    auto larger = std::make_unique<Slots>(2 * slots_.load()->at.size());
    for (const std::string& entry : entries_) put(*larger, &entry, std::hash<std::string_view>()(entry));
    slots_.store(all_slots_.emplace_back(std::move(larger)).get(), std::memory_order_release);
  }

  std::mutex mutex_;  // held while a name is added
  std::deque<std::string> entries_;
  std::vector<std::unique_ptr<Slots>> all_slots_;
  std::atomic<Slots*> slots_;
};

// Never destroyed: names made by plugins are read until the end of the process.
Table& table() {
  static auto* instance = new Table;
  return *instance;
}

}  // namespace

Name::Name(std::string_view text) : text_(table().intern(text)) {}

}  // namespace tenon
