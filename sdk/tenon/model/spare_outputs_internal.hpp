// Inside of the room: memory of large outputs from run to run. The system clears every page that it gives out, which
// takes a memory-bound model longer than its work.
#pragma once
#include <mutex>
#include <span>
#include <vector>

#include <tenon/tensor/datum.hpp>

namespace tenon::detail {

// Any thread.
class SpareOutputs {
 public:
  // Puts into `outputs`, which hold nothing, the tensors of the last run that nobody else has any more.
  void take(std::span<Datum> outputs);
  // Shares those of a run's outputs that are large: one set, the latest.
  void keep(std::span<const Datum> outputs);

 private:
  static constexpr size_t kLeastBytes = size_t{1} << 20;  // less comes from the heap, with its pages in place
  std::mutex mutex_;
  std::vector<Datum> kept_;
};

}  // namespace tenon::detail
