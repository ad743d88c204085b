#include <tenon/onnx/tensor_proto_internal.hpp>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace tenon::onnx {
namespace {

using format::TensorProto;

struct ElementRow {
  TensorProto::DataType number;
  ElementType element;
};
constexpr ElementRow kElements[] = {
    {TensorProto::FLOAT, kF32},
    {TensorProto::UINT8, kU8},
    {TensorProto::INT8, kI8},
    {TensorProto::UINT16, kU16},
    {TensorProto::INT16, kI16},
    {TensorProto::INT32, kI32},
    {TensorProto::INT64, kI64},
    {TensorProto::STRING, kString},
    {TensorProto::BOOL, kBool},
    {TensorProto::FLOAT16, kF16},
    {TensorProto::DOUBLE, kF64},
    {TensorProto::UINT32, kU32},
    {TensorProto::UINT64, kU64},
    {TensorProto::COMPLEX64, kC64},
    {TensorProto::COMPLEX128, kC128},
    {TensorProto::BFLOAT16, kBF16},
    {TensorProto::FLOAT8E4M3FN, kF8E4M3FN},
    {TensorProto::FLOAT8E4M3FNUZ, kF8E4M3FNUZ},
    {TensorProto::FLOAT8E5M2, kF8E5M2},
    {TensorProto::FLOAT8E5M2FNUZ, kF8E5M2FNUZ},
    {TensorProto::UINT4, kU4},
    {TensorProto::INT4, kI4},
    {TensorProto::FLOAT4E2M1, kF4E2M1},
    {TensorProto::FLOAT8E8M0, kF8E8M0},
    {TensorProto::UINT2, kU2},
    {TensorProto::INT2, kI2},
};

// Bits after the last element and bytes of booleans may have any value in a file; Tensor promises zeros, and 0 or 1.
bool needs_cleaning(const Tensor& tensor) {
  if (tensor.bytes() == 0) return false;
  if (tensor.element().is_bool()) {
    return std::any_of(tensor.data(), tensor.data() + tensor.bytes(), [](std::byte b) { return b > std::byte{1}; });
  }
  const auto used_bits = static_cast<unsigned>(tensor.size() * tensor.element().bits() % 8);
  return tensor.element().bits() < 8 && used_bits != 0 &&
         std::to_integer<unsigned>(tensor.data()[tensor.bytes() - 1]) >> used_bits != 0;
}

void clean(Tensor& tensor) {
  std::byte* data = tensor.mutable_data();
  if (tensor.element().is_bool()) {
    for (size_t i = 0; i < tensor.bytes(); ++i) data[i] = std::byte{data[i] != std::byte{0}};
    return;
  }
  const auto used_bits = static_cast<unsigned>(tensor.size() * tensor.element().bits() % 8);
  data[tensor.bytes() - 1] &= static_cast<std::byte>((1u << used_bits) - 1);
}

// `data` as a tensor that keeps `owner` alive; copied if the data lack the alignment that the element type needs.
Result<Tensor> from_bytes(ElementType element, const Dims& dims, std::shared_ptr<void> owner, std::byte* data,
                          size_t bytes, bool writable) {
  const bool aligned = reinterpret_cast<uintptr_t>(data) % 8 == 0;
  if (aligned || bytes == 0) {
    TENON_TRY(tensor, Tensor::share(element, dims, std::move(owner), data, bytes));
    if (!needs_cleaning(tensor)) return tensor;
    if (!writable) {
      TENON_TRY(copy, tensor.clone());
      tensor = std::move(copy);
    }
    clean(tensor);
    return tensor;
  }
  TENON_TRY(tensor, Tensor::allocate(element, dims));
  std::memcpy(tensor.mutable_data(), data, bytes);
  if (needs_cleaning(tensor)) clean(tensor);
  return tensor;
}

Error wrong_count(std::string_view field, size_t got, size_t wanted) {
  return error(Code::invalid_argument, "its ", field, " has ", got, " entries, ", wanted, " are needed");
}

template <class Stored, class Field>
Result<Tensor> from_field(ElementType element, const Dims& dims, Field& field, std::string_view name,
                          size_t per_element = 1) {
  TENON_TRY(count, element_count(dims));
  if (static_cast<uint64_t>(field.size()) != static_cast<uint64_t>(count) * per_element) {
    return wrong_count(name, static_cast<size_t>(field.size()), static_cast<size_t>(count) * per_element);
  }
  TENON_TRY(tensor, Tensor::allocate(element, dims));
  auto* out = reinterpret_cast<Stored*>(tensor.mutable_data());
  for (const auto value : field) *out++ = static_cast<Stored>(value);
  if (needs_cleaning(tensor)) clean(tensor);
  Field().Swap(&field);
  return tensor;
}

// One packed byte per entry.
Result<Tensor> from_packed(ElementType element, const Dims& dims, google::protobuf::RepeatedField<int32_t>& field) {
  TENON_TRY(count, element_count(dims));
  TENON_TRY(bytes, storage_bytes(element, count));
  if (static_cast<size_t>(field.size()) != bytes)
    return wrong_count("int32_data", static_cast<size_t>(field.size()), bytes);
  TENON_TRY(tensor, Tensor::allocate(element, dims));
  for (size_t i = 0; i < bytes; ++i) tensor.mutable_data()[i] = static_cast<std::byte>(field[static_cast<int>(i)]);
  if (needs_cleaning(tensor)) clean(tensor);
  return tensor;
}

Result<Tensor> from_strings(const Dims& dims, TensorProto& proto) {
  TENON_TRY(count, element_count(dims));
  if (proto.string_data_size() != count) {
    return wrong_count("string_data", static_cast<size_t>(proto.string_data_size()), static_cast<size_t>(count));
  }
  TENON_TRY(tensor, Tensor::allocate(kString, dims));
  auto out = tensor.mutable_as<std::string>();
  for (int i = 0; i < proto.string_data_size(); ++i)
    out[static_cast<size_t>(i)] = std::move(*proto.mutable_string_data(i));
  return tensor;
}

Result<Tensor> from_typed_field(ElementType element, const Dims& dims, TensorProto& proto) {
  if (element.is_string()) return from_strings(dims, proto);
  if (element == kF32) return from_field<float>(element, dims, *proto.mutable_float_data(), "float_data");
  if (element == kC64) return from_field<float>(element, dims, *proto.mutable_float_data(), "float_data", 2);
  if (element == kF64) return from_field<double>(element, dims, *proto.mutable_double_data(), "double_data");
  if (element == kC128) return from_field<double>(element, dims, *proto.mutable_double_data(), "double_data", 2);
  if (element == kI64) return from_field<int64_t>(element, dims, *proto.mutable_int64_data(), "int64_data");
  if (element == kU64) return from_field<uint64_t>(element, dims, *proto.mutable_uint64_data(), "uint64_data");
  if (element == kU32) return from_field<uint32_t>(element, dims, *proto.mutable_uint64_data(), "uint64_data");
  auto& numbers = *proto.mutable_int32_data();
  if (element == kI32) return from_field<int32_t>(element, dims, numbers, "int32_data");
  if (element.bits() == 16) return from_field<uint16_t>(element, dims, numbers, "int32_data");
  if (element.bits() == 8) return from_field<uint8_t>(element, dims, numbers, "int32_data");
  return from_packed(element, dims, numbers);
}

Result<Tensor> from_raw(ElementType element, const Dims& dims, TensorProto& proto) {
  if (element.is_string()) return error(Code::invalid_argument, "strings in raw_data; they must be in string_data");
  TENON_TRY(count, element_count(dims));
  TENON_TRY(bytes, storage_bytes(element, count));
  if (proto.raw_data().size() != bytes) {
    return error(Code::invalid_argument, "its raw_data has ", proto.raw_data().size(), " bytes, ", element, Shape(dims),
                 " takes ", bytes);
  }
  auto text = std::make_shared<std::string>(std::move(*proto.mutable_raw_data()));
  auto* data = reinterpret_cast<std::byte*>(text->data());
  return from_bytes(element, dims, std::move(text), data, bytes, true);
}

Result<uint64_t> number_entry(const std::string& key, const std::string& text) {
  uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) {
    return error(Code::invalid_argument, "its external data has ", key, " ", quote(text),
                 ", which is no number of bytes");
  }
  return value;
}

Result<Tensor> from_external(ElementType element, const Dims& dims, const TensorProto& proto, ExternalData* external) {
  if (!external) {
    return error(Code::invalid_argument,
                 "its data lies in another file, but no folder of external data is known; "
                 "set ImportOptions::external_data_folder");
  }
  if (element.is_string()) return error(Code::invalid_argument, "strings cannot be external data");
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") {
      TENON_TRY(number, number_entry(entry.key(), entry.value()));
      offset = number;
    }
    if (entry.key() == "length") {
      TENON_TRY(number, number_entry(entry.key(), entry.value()));
      length = number;
    }
  }
  TENON_TRY(file, external->file(location));
  TENON_TRY(count, element_count(dims));
  TENON_TRY(bytes, storage_bytes(element, count));
  if (length && *length != bytes) {
    return error(Code::invalid_argument, "its external data has length ", *length, ", ", element, Shape(dims),
                 " takes ", bytes, " bytes");
  }
  if (offset > file->size() || bytes > file->size() - offset) {
    return error(Code::invalid_argument, "its external data are the ", bytes, " bytes from offset ", offset, " of '",
                 location, "', which has ", file->size());
  }
  std::byte* data = file->data() + offset;
  return from_bytes(element, dims, std::move(file), data, bytes, false);
}

Result<Tensor> take(TensorProto& proto, ExternalData* external) {
  TENON_TRY(element, element_from_number(proto.data_type()));
  if (proto.has_segment())
    return error(Code::unsupported, "it is a segment of a larger tensor; segments are not supported");
  const Dims dims(proto.dims().begin(), proto.dims().end());
  TENON_TRY(count, element_count(dims));
  TENON_OK(storage_bytes(element, count));
  if (proto.data_location() == TensorProto::EXTERNAL) return from_external(element, dims, proto, external);
  if (proto.has_raw_data()) return from_raw(element, dims, proto);
  return from_typed_field(element, dims, proto);
}

}  // namespace

Result<ElementType> element_from_number(int32_t data_type) {
  for (const ElementRow& row : kElements) {
    if (row.number == data_type) return row.element;
  }
  return error(Code::invalid_argument, "element type number ", data_type, " is none that ONNX defines (1 to 26)");
}

Result<int32_t> number_of_element(ElementType element) {
  for (const ElementRow& row : kElements) {
    if (row.element == element) return static_cast<int32_t>(row.number);
  }
  return error(Code::unsupported, "ONNX has no element type ", element);
}

Result<Tensor> take_tensor(format::TensorProto& proto, ExternalData* external) {
  TENON_TRY(tensor, take(proto, external), "tensor ", quote(proto.name()));
  return tensor;
}

Result<Tensor> take_sparse_tensor(format::SparseTensorProto& proto, ExternalData* external) {
  const std::string name = proto.values().name();
  TENON_TRY(values, take_tensor(*proto.mutable_values(), external), "the values of a sparse tensor");
  TENON_TRY(indices, take_tensor(*proto.mutable_indices(), external), "the indices of sparse tensor ", quote(name));
  const Dims dims(proto.dims().begin(), proto.dims().end());
  if (values.rank() != 1 || indices.element() != kI64 || values.element().is_string() ||
      values.element().is_complex()) {
    return error(Code::invalid_argument, "sparse tensor ", quote(name), " has values ", values, " and indices ",
                 indices, "; wanted are a vector of numbers and i64 indices");
  }
  const auto rank = static_cast<int64_t>(dims.size());
  const bool linear = indices.rank() == 1;
  const Dims wanted = linear ? Dims{values.dim(0)} : Dims{values.dim(0), rank};
  if (indices.dims() != wanted) {
    return error(Code::invalid_argument, "sparse tensor ", quote(name), " has indices ", indices, " for ",
                 values.dim(0), " values of ", Shape(dims));
  }
  TENON_TRY(dense, Tensor::zeros(values.element(), dims), "sparse tensor ", quote(name));
  const Dims strides = row_major_strides(dims);
  const auto at = indices.as<int64_t>();
  const int bits = values.element().bits();
  for (int64_t k = 0; k < values.size(); ++k) {
    int64_t place = linear ? at[static_cast<size_t>(k)] : 0;
    bool inside = place >= 0 && place < dense.size();
    for (int64_t d = 0; !linear && d < rank; ++d) {
      const int64_t index = at[static_cast<size_t>(k * rank + d)];
      inside = inside && index >= 0 && index < dims[static_cast<size_t>(d)];
      if (inside) place += index * strides[static_cast<size_t>(d)];
    }
    if (!inside) {
      return error(Code::invalid_argument, "sparse tensor ", quote(name), ": the index of value ", k, " is outside ",
                   Shape(dims));
    }
    store_bits(dense.mutable_data(), bits, place, load_bits(values.data(), bits, k));
  }
  return dense;
}

Result<void> write_tensor_header(const Tensor& tensor, const std::string& name, format::TensorProto& out) {
  TENON_TRY(number, number_of_element(tensor.element()), "tensor ", quote(name));
  out.set_data_type(number);
  out.mutable_dims()->Add(tensor.dims().begin(), tensor.dims().end());
  if (!name.empty()) out.set_name(name);
  return {};
}

Result<void> write_tensor(const Tensor& tensor, const std::string& name, format::TensorProto& out) {
  TENON_OK(write_tensor_header(tensor, name, out));
  if (tensor.element().is_string()) {
    for (const std::string& text : tensor.as<std::string>()) out.add_string_data(text);
  } else {
    out.set_raw_data(tensor.data(), tensor.bytes());
  }
  return {};
}

}  // namespace tenon::onnx
