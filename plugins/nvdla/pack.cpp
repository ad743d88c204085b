#include "nvdla/pack.hpp"

#include <algorithm>
#include <cstring>

#include <tenon/tensor/reorder.hpp>

namespace tenon::nvdla {
namespace {

Result<Layout> row_major(const Dims& dims, const Hardware& hardware) {
  return Layout::row_major(dims, hardware.element_bytes * 8);
}

// Kernels [first, first + count) of a part as [count, channels of the part, R, S].
class GroupOfKernels {
 public:
  GroupOfKernels(const Tensor& w, const ConvLayer& layer, const Hardware& hardware)
      : from_(w.data()),
        parts_(layer.parts),
        taps_(layer.rows.kernel * layer.cols.kernel),
        element_(hardware.element_bytes) {}

  std::vector<std::byte> bytes(int64_t first, int64_t count) const {
    std::vector<std::byte> all(static_cast<size_t>(count * parts_.channels * taps_ * element_));
    const int64_t line = parts_.group_channels * taps_ * element_;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = (k * parts_.channels + parts_.first_channel(first + k)) * taps_ * element_;
      std::memcpy(all.data() + at, from_ + (first + k) * line, static_cast<size_t>(line));
    }
    return all;
  }

 private:
  const std::byte* from_;
  const Parts& parts_;
  int64_t taps_, element_;
};

Result<ReorderPlan> group_plan(int64_t kernels, const ConvLayer& layer, const Hardware& hardware) {
  const Dims dims{kernels, layer.parts.channels, layer.rows.kernel, layer.cols.kernel};
  TENON_TRY(from, row_major(dims, hardware));
  TENON_TRY(to, Layout::parse(hardware.weight_layout, "KCRS", dims, hardware.element_bytes * 8));
  return plan_reorder(from, to);
}

}  // namespace

Result<void> pack_activation(const Tensor& x, const Hardware& hardware, std::span<std::byte> to) {
  TENON_TRY(dims, image_dims(x.dims(), hardware));
  TENON_TRY(from, row_major(dims, hardware));
  TENON_TRY(layout, activation_layout(x.dims(), hardware));
  TENON_TRY(plan, plan_reorder(from, layout));
  return plan.run({x.data(), x.bytes()}, to);
}

Result<void> unpack_activation(std::span<const std::byte> from, const Hardware& hardware, Tensor& y) {
  TENON_TRY(dims, image_dims(y.dims(), hardware));
  TENON_TRY(layout, activation_layout(y.dims(), hardware));
  TENON_TRY(to, row_major(dims, hardware));
  TENON_TRY(plan, plan_reorder(layout, to));
  return plan.run(from, {y.mutable_data(), y.bytes()});
}

Result<std::vector<std::byte>> pack_weights(const Tensor& w, const ConvLayer& layer, const Hardware& hardware) {
  const int64_t all = layer.parts.count * layer.weight_bytes(hardware), group = hardware.atomic_k;
  std::vector<std::byte> packed(static_cast<size_t>(all));
  const GroupOfKernels kernels(w, layer, hardware);
  TENON_TRY(plan, group_plan(std::min(group, layer.parts.kernels), layer, hardware));
  const int64_t rest = layer.parts.kernels % group;
  TENON_TRY(last_plan, group_plan(rest == 0 ? 1 : rest, layer, hardware));
  std::byte* to = packed.data();
  for (int64_t part = 0; part < layer.parts.count; ++part)
    for (int64_t first = 0; first < layer.parts.kernels; first += group) {
      const int64_t count = std::min(group, layer.parts.kernels - first), bytes = layer.group_bytes(count, hardware);
      const auto dense = kernels.bytes(part * layer.parts.kernels + first, count);
      const ReorderPlan& reorder = count == std::min(group, layer.parts.kernels) ? plan : last_plan;
      TENON_OK(reorder.run(dense, std::span(to, static_cast<size_t>(bytes))));
      to += bytes;
    }
  return packed;
}

}  // namespace tenon::nvdla
