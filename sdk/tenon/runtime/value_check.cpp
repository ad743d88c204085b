#include <tenon/runtime/value_check.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include <tenon/tensor/declared.hpp>

namespace tenon {
namespace {

constexpr size_t kMostSymbols = 16;  // handled by the fast path

// Checks that the bytes of the tensor are inside its buffer.
Result<void> check_place(const DeviceTensor& tensor) {
  TENON_TRY(count, element_count(tensor.dims));
  TENON_TRY(bytes, storage_bytes(tensor.element, count));
  return check_range(tensor.buffer->device(), *tensor.buffer, tensor.offset, bytes, "read");
}

}  // namespace

ValueCheck::ValueCheck(const std::vector<ValueInfo>& infos) : infos_(infos) {
  std::map<std::string, int64_t> symbols;
  for (const ValueInfo& info : infos_) {
    Rule& rule = rules_.emplace_back();
    if (!info.type.is_tensor() || !info.type.shape().ranked()) continue;
    rule.element = info.type.element();
    if (auto dims = info.type.shape().static_dims()) {
      rule.dims = *std::move(dims);
      continue;
    }
    for (const Dim& dim : info.type.shape().dims()) {
      DimRule& of_dim = rule.dim_rules.emplace_back();
      if (dim.is_static())
        of_dim.extent = dim.value();
      else if (dim.known())
        of_dim.symbol = symbols.emplace(dim.to_string(), static_cast<int64_t>(symbols.size())).first->second;
    }
  }
  symbols_ = symbols.size();
}

bool ValueCheck::fits(size_t i, ElementType element, const Dims& dims, std::span<int64_t> symbols) const {
  const Rule& rule = rules_[i];
  if (!rule.element.valid() || element != rule.element) return false;
  if (rule.dim_rules.empty()) return dims == rule.dims;
  if (dims.size() != rule.dim_rules.size()) return false;
  for (size_t d = 0; d < dims.size(); ++d) {
    const DimRule& of_dim = rule.dim_rules[d];
    if (of_dim.extent >= 0 && dims[d] != of_dim.extent) return false;
    if (of_dim.symbol < 0 || symbols.empty()) continue;
    int64_t& seen = symbols[static_cast<size_t>(of_dim.symbol)];
    if (seen >= 0 && seen != dims[d]) return false;
    seen = dims[d];
  }
  return true;
}

bool ValueCheck::fits(size_t i, const Datum& value, std::span<int64_t> symbols) const {
  return value.is_tensor() && fits(i, value.tensor().element(), value.tensor().dims(), symbols);
}

bool ValueCheck::fits(size_t i, const RunValue& value, std::span<int64_t> symbols) const {
  return value.on_device() ? fits(i, value.device.element, value.device.dims, symbols) : fits(i, value.host, symbols);
}

template <class Get>
bool ValueCheck::all_fit(size_t count, const Get& get) const {
  std::array<int64_t, kMostSymbols> symbols;
  if (symbols_ > kMostSymbols) return false;
  std::fill_n(symbols.begin(), symbols_, -1);
  for (size_t i = 0; i < count; ++i)
    if (!fits(i, get(i), {symbols.data(), symbols_})) return false;
  return true;
}

template <class Get>
Result<void> ValueCheck::host_inputs(size_t count, const Get& get) const {
  if (all_fit(count, get)) return {};
  std::map<std::string, int64_t> symbols;
  for (size_t i = 0; i < count; ++i) TENON_OK(check_input(infos_[i].name, infos_[i].type, get(i), symbols));
  return {};
}

Result<void> ValueCheck::inputs(std::span<const Datum* const> values) const {
  return host_inputs(values.size(), [&](size_t i) -> const Datum& { return *values[i]; });
}

Result<void> ValueCheck::inputs(std::span<const Datum> values) const {
  return host_inputs(values.size(), [&](size_t i) -> const Datum& { return values[i]; });
}

Result<void> ValueCheck::inputs(std::span<const RunValue> values) const {
  if (!all_fit(values.size(), [&](size_t i) -> const RunValue& { return values[i]; })) {
    std::map<std::string, int64_t> symbols;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto& [name, type] = infos_[i];
      const DeviceTensor& device = values[i].device;
      TENON_OK(values[i].on_device() ? check_input(name, type, device.element, device.dims, symbols)
                                     : check_input(name, type, values[i].host, symbols));
    }
  }
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].on_device()) TENON_OK(check_place(values[i].device), "input '", infos_[i].name, "'");
  return {};
}

Result<void> ValueCheck::output(size_t i, const Datum& value) const {
  return fits(i, value, {}) ? Result<void>() : check_output(infos_[i].name, infos_[i].type, value);
}

Result<void> ValueCheck::output(size_t i, const RunValue& value) const {
  if (!value.on_device()) return output(i, value.host);
  if (fits(i, value, {})) return {};
  return check_output(infos_[i].name, infos_[i].type, value.device.element, value.device.dims);
}

}  // namespace tenon
