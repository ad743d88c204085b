#include <tenon/tensor/declared.hpp>

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

Result<void> check_input(std::string_view name, const Type& type, const Datum& datum,
                         std::map<std::string, int64_t>& symbols) {
  const auto refuse = [&](std::string_view why) {
    return error(Code::invalid_argument, "input '", name, "' is declared ", type, " and given ",
                 datum.absent() ? std::string("nothing") : datum.type().to_string(), why);
  };
  if (datum.absent()) {
    if (type.is_optional() || !type.known()) return {};
    return refuse("");
  }
  if (!agrees(datum, type)) return refuse("");
  if (!datum.is_tensor() || !type.is_tensor() || !type.shape().ranked()) return {};
  const Tensor& tensor = datum.tensor();
  if (tensor.rank() != type.shape().rank()) return refuse(": another rank");
  for (size_t i = 0; i < tensor.dims().size(); ++i) {
    const Dim& dim = type.shape()[i];
    if (dim.is_static() && dim.value() != tensor.dim(i)) return refuse(str(": dim ", i, " differs"));
    if (dim.is_static() || !dim.known()) continue;
    const auto [entry, fresh] = symbols.emplace(dim.to_string(), tensor.dim(i));
    if (!fresh && entry->second != tensor.dim(i)) {
      return refuse(str(": ", entry->first, " is ", entry->second, " elsewhere and ", tensor.dim(i), " here"));
    }
  }
  return {};
}

}  // namespace tenon
