// When units are free, and who uses which entry of the buffer until when: the cycles of simulator.hpp.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "nvdla/hardware.hpp"

namespace tenon::nvdla {

class Clock {
 public:
  explicit Clock(const Hardware& hardware);

  void wait_for_all();
  int64_t end() const;
  // `bytes` of DRAM into entries [first, first + count), once nobody reads them.
  void load(int64_t first, int64_t count, int64_t bytes);
  // The next compute() reads these entries.
  void uses(int64_t first, int64_t count);
  // `cycles` of a unit, or what the transfer of `dram_bytes` takes, if that is more.
  void compute(int64_t cycles, int64_t dram_bytes);

 private:
  int64_t transfer(int64_t bytes) const;

  const Hardware& h_;
  int64_t load_ = 0, compute_ = 0, dram_ = 0;  // when free
  int64_t ready_ = 0;                          // when what uses() named is there
  std::vector<int64_t> loaded_at_, read_until_;
  std::vector<std::pair<int64_t, int64_t>> used_;
};

}  // namespace tenon::nvdla
