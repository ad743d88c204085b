// The cycle count of simulator.hpp: when each unit is free, and until when each entry of the buffer is in use.
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
  // Loads `bytes` from DRAM into entries [first, first + count), once nothing reads them any more.
  void load(int64_t first, int64_t count, int64_t bytes);
  // Declares that the next compute() reads these entries.
  void uses(int64_t first, int64_t count);
  // Takes `cycles` of a unit, or the time for `dram_bytes` of transfers, whichever is longer.
  void compute(int64_t cycles, int64_t dram_bytes);

 private:
  int64_t transfer(int64_t bytes) const;

  const Hardware& h_;
  int64_t load_ = 0, compute_ = 0, dram_ = 0;  // times at which they are free
  int64_t ready_ = 0;                          // time at which the entries of uses() are loaded
  std::vector<int64_t> loaded_at_, read_until_;
  std::vector<std::pair<int64_t, int64_t>> used_;
};

}  // namespace tenon::nvdla
