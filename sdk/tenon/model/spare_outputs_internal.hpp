// Inside the room: reuse of the memory of large outputs from run to run. The operating system clears every page
// that it hands out, which takes longer than the work of a memory-bound model.
#pragma once
#include <mutex>
#include <span>
#include <vector>

#include <tenon/tensor/datum.hpp>

namespace tenon::detail {

// Thread-safe.
class SpareOutputs {
 public:
  // Puts the tensors of the last run that nobody else holds any more into `outputs`, which are empty.
  void take(std::span<Datum> outputs);
  // Shares the large ones of a run's outputs: one set, the latest.
  void keep(std::span<const Datum> outputs);

 private:
  static constexpr size_t kLeastBytes = size_t{1} << 20;  // smaller ones come from mapped pages of the heap
  std::mutex mutex_;
  std::vector<Datum> kept_;
};

}  // namespace tenon::detail
