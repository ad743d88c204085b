#include <tenon/tensor/declared.hpp>

#include <optional>

namespace tenon {

bool agrees(const Datum& datum, const Type& type) {
  if (!type.known() || datum.absent()) return true;
  if (type.is_optional()) return agrees(datum, type.inner());
  if (datum.is_tensor()) {
    return type.is_tensor() && (!type.element().valid() || datum.tensor().element() == type.element());
  }
  if (!type.is_sequence()) return false;
  for (const Datum& element : datum.elements()) {
    if (!agrees(element, type.inner())) return false;
  }
  return true;
}

namespace {

// Why a tensor is not what `type` states; nothing if it is. `symbols` may be null: symbols then allow any extent.
std::optional<std::string> mismatch(const Type& type, ElementType element, std::span<const int64_t> dims,
                                    std::map<std::string, int64_t>* symbols) {
  if (!type.known()) return std::nullopt;
  if (type.is_optional()) return mismatch(type.inner(), element, dims, symbols);
  if (!type.is_tensor() || (type.element().valid() && element != type.element())) return "";
  if (!type.shape().ranked()) return std::nullopt;
  if (static_cast<int64_t>(dims.size()) != type.shape().rank()) return ": another rank";
  for (size_t i = 0; i < dims.size(); ++i) {
    const Dim& dim = type.shape()[i];
    if (dim.is_static() && dim.value() != dims[i]) return str(": dim ", i, " differs");
    if (dim.is_static() || !dim.known() || symbols == nullptr) continue;
    const auto [entry, fresh] = symbols->emplace(dim.to_string(), dims[i]);
    if (!fresh && entry->second != dims[i])
      return str(": ", entry->first, " is ", entry->second, " elsewhere and ", dims[i], " here");
  }
  return std::nullopt;
}

std::optional<std::string> mismatch(const Type& type, const Datum& datum, std::map<std::string, int64_t>* symbols) {
  if (datum.is_tensor()) return mismatch(type, datum.tensor().element(), datum.tensor().dims(), symbols);
  if (datum.absent() && type.known() && !type.is_optional()) return "";
  return agrees(datum, type) ? std::nullopt : std::optional<std::string>("");
}

std::string type_of(const Datum& datum) { return datum.absent() ? "nothing" : datum.type().to_string(); }
std::string type_of(ElementType element, std::span<const int64_t> dims) {
  return TensorType{element, Shape(Dims(dims.begin(), dims.end()))}.to_string();
}

Error refused_input(std::string_view name, const Type& type, const std::string& given, const std::string& why) {
  return error(Code::invalid_argument, "input '", name, "' is declared ", type, " and given ", given, why);
}
Error refused_output(std::string_view name, const Type& type, const std::string& made, const std::string& why) {
  return error(Code::plugin, "output '", name, "' is declared ", type, " and made as ", made, why);
}

}  // namespace

Result<void> check_input(std::string_view name, const Type& type, const Datum& datum,
                         std::map<std::string, int64_t>& symbols) {
  const auto why = mismatch(type, datum, &symbols);
  if (why) return refused_input(name, type, type_of(datum), *why);
  return {};
}

Result<void> check_input(std::string_view name, const Type& type, ElementType element, std::span<const int64_t> dims,
                         std::map<std::string, int64_t>& symbols) {
  const auto why = mismatch(type, element, dims, &symbols);
  if (why) return refused_input(name, type, type_of(element, dims), *why);
  return {};
}

Result<void> check_output(std::string_view name, const Type& type, const Datum& datum) {
  const auto why = mismatch(type, datum, nullptr);
  if (why) return refused_output(name, type, type_of(datum), *why);
  return {};
}

Result<void> check_output(std::string_view name, const Type& type, ElementType element, std::span<const int64_t> dims) {
  const auto why = mismatch(type, element, dims, nullptr);
  if (why) return refused_output(name, type, type_of(element, dims), *why);
  return {};
}

}  // namespace tenon
