#include <tenon/model/spare_outputs_internal.hpp>

#include <algorithm>
#include <atomic>
#include <utility>

namespace tenon::detail {

void SpareOutputs::take(std::span<Datum> outputs) {
  std::vector<Datum> kept;
  {
    const std::lock_guard lock(mutex_);
    kept.swap(kept_);
  }
  for (size_t i = 0; i < kept.size(); ++i)
    if (kept[i].is_tensor() && kept[i].tensor().owner().use_count() == 1) outputs[i] = std::move(kept[i]);
  // Happens-after the release by its last holder, before this run writes to it.
  std::atomic_thread_fence(std::memory_order_acquire);
}

void SpareOutputs::keep(std::span<const Datum> outputs) {
  const auto is_large = [](const Datum& d) { return d.is_tensor() && d.tensor().bytes() >= kLeastBytes; };
  if (std::ranges::none_of(outputs, is_large)) return;
  std::vector<Datum> kept(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    if (is_large(outputs[i])) kept[i] = outputs[i];
  const std::lock_guard lock(mutex_);
  kept_ = std::move(kept);
}

}  // namespace tenon::detail
