#include "nvdla/clock.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::nvdla {

Clock::Clock(const Hardware& hardware)
    : h_(hardware),
      loaded_at_(static_cast<size_t>(hardware.entries())),
      read_until_(static_cast<size_t>(hardware.entries())) {}

void Clock::wait_for_all() { load_ = compute_ = dram_ = end(); }
int64_t Clock::end() const { return std::max({load_, compute_, dram_}); }

void Clock::load(int64_t first, int64_t count, int64_t bytes) {
  int64_t start = std::max(load_, dram_);
  for (int64_t i = first; i < first + count; ++i) start = std::max(start, read_until_[static_cast<size_t>(i)]);
  load_ = dram_ = start + transfer(bytes);
  std::fill_n(loaded_at_.begin() + first, count, load_);
}

void Clock::uses(int64_t first, int64_t count) {
  for (int64_t i = first; i < first + count; ++i) ready_ = std::max(ready_, loaded_at_[static_cast<size_t>(i)]);
  used_.emplace_back(first, count);
}

void Clock::compute(int64_t cycles, int64_t dram_bytes) {
  const int64_t start = std::max(compute_, ready_), transferred = transfer(dram_bytes);
  compute_ = start + std::max(cycles, transferred);
  dram_ = std::max(dram_, start) + transferred;
  for (const auto& [first, count] : used_) std::fill_n(read_until_.begin() + first, count, compute_);
  used_.clear();
  ready_ = 0;
}

int64_t Clock::transfer(int64_t bytes) const {
  if (h_.dram_bytes_per_cycle <= 0) return 0;
  return static_cast<int64_t>(std::ceil(static_cast<double>(bytes) / h_.dram_bytes_per_cycle));
}

}  // namespace tenon::nvdla
