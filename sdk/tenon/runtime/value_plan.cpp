#include <tenon/runtime/value_plan.hpp>

#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include <tenon/runtime/arena_plan.hpp>
#include <tenon/support/memory.hpp>

namespace tenon {
namespace {

// None: it gets no place. Packed elements need zero bits after the last one; extents whose product overflows int64 are
// reported when the tensor is allocated.
std::optional<size_t> bytes_of(const PassedValue& value) {
  if (!value.element.valid() || value.element.is_string() || value.element.bits() % 8 != 0) return std::nullopt;
  const auto count = element_count(value.dims);
  if (!count.ok()) return std::nullopt;
  const auto bytes = storage_bytes(value.element, *count);
  return bytes.ok() ? std::optional(*bytes) : std::nullopt;
}

}  // namespace

ValuePlan::ValuePlan(std::vector<PassedValue> values) : values_(std::move(values)) {
  std::vector<Lifetime> lives;
  for (PassedValue& value : values_) {
    const auto bytes = bytes_of(value);
    if (!bytes) value.element = {};
    lives.push_back({bytes.value_or(0), value.first, value.last});
  }
  ArenaPlan plan = plan_arena(lives, kAlignBytes);
  offsets_ = std::move(plan.offsets);
  bytes_ = plan.bytes;
  lower_bound_bytes_ = plan.lower_bound_bytes;
}

Result<std::vector<Datum>> ValuePlan::places() const {
  TENON_TRY(memory, allocate_aligned(bytes_), "memory for values between steps");
  std::byte* const base = memory.get();
  const std::shared_ptr<void> arena(memory.release(), AlignedFree());
  std::vector<Datum> places(values_.size());
  for (size_t i = 0; i < values_.size(); ++i) {
    const PassedValue& value = values_[i];
    if (!value.element.valid()) continue;
    TENON_TRY(tensor, Tensor::share(value.element, value.dims, arena, base + offsets_[i], *bytes_of(value)));
    places[i] = Datum(std::move(tensor));
  }
  return places;
}

bool is_place_for(const Datum& datum, ElementType element, const Dims& dims) {
  return datum.is_tensor() && datum.tensor().element() == element && datum.tensor().dims() == dims;
}

Result<void> copy_value(const Datum& from, Datum& to) {
  if (!from.is_tensor()) {
    to = from;
    return {};
  }
  const Tensor& tensor = from.tensor();
  if (is_place_for(to, tensor.element(), tensor.dims()) && !tensor.element().is_string()) {
    if (tensor.bytes() > 0) std::memmove(to.tensor().mutable_data(), tensor.data(), tensor.bytes());
    return {};
  }
  TENON_TRY(copy, tensor.clone());
  to = Datum(std::move(copy));
  return {};
}

}  // namespace tenon
