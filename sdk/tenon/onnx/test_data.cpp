#include <tenon/onnx/test_data.hpp>

#include <tenon/onnx/model_file_internal.hpp>
#include <tenon/onnx/tensor_proto_internal.hpp>

namespace tenon {
namespace {

namespace format = onnx_format;

// Nesting depth of values; the format's own cases have two levels.
constexpr int kDepth = 16;

// The readers fill `out`, which is initially the absent datum.
Result<void> read_tensor(format::TensorProto& proto, Datum& out) {
  TENON_TRY(tensor, onnx::take_tensor(proto, nullptr));
  out = Datum(std::move(tensor));
  return {};
}

Result<void> read_sequence(format::SequenceProto& proto, const Type& type, int depth, Datum& out);
Result<void> read_optional(format::OptionalProto& proto, const Type& type, int depth, Datum& out) {
  if (depth > kDepth) return error(Code::resource_exhausted, "values are nested more than ", kDepth, " deep");
  const Type inner = type.is_optional() ? type.inner() : Type();
  if (proto.has_tensor_value()) return read_tensor(*proto.mutable_tensor_value(), out);
  if (proto.has_sequence_value()) return read_sequence(*proto.mutable_sequence_value(), inner, depth + 1, out);
  if (proto.has_optional_value()) return read_optional(*proto.mutable_optional_value(), inner, depth + 1, out);
  if (proto.has_map_value() || proto.has_sparse_tensor_value()) {
    return error(Code::unsupported, "an optional of a map or a sparse tensor");
  }
  return {};
}

Result<void> read_sequence(format::SequenceProto& proto, const Type& type, int depth, Datum& out) {
  if (depth > kDepth) return error(Code::resource_exhausted, "values are nested more than ", kDepth, " deep");
  if (proto.map_values_size() || proto.sparse_tensor_values_size()) {
    return error(Code::unsupported, "a sequence of maps or sparse tensors");
  }
  const Type inner = type.is_sequence() ? type.inner() : Type();
  std::vector<Datum> elements;
  const auto next = [&]() -> Datum& { return elements.emplace_back(); };
  for (auto& item : *proto.mutable_tensor_values()) {
    TENON_OK(read_tensor(item, next()), "element ", elements.size() - 1, " of a sequence");
  }
  for (auto& item : *proto.mutable_sequence_values()) TENON_OK(read_sequence(item, inner, depth + 1, next()));
  for (auto& item : *proto.mutable_optional_values()) TENON_OK(read_optional(item, inner, depth + 1, next()));
  out = Datum::sequence(std::move(elements), inner);
  return {};
}

int kind_of(const Type& type) {
  if (type.is_optional()) return format::SequenceProto::OPTIONAL;
  return type.is_sequence() ? format::SequenceProto::SEQUENCE : format::SequenceProto::TENSOR;
}

Result<void> write_sequence(const Datum& value, const Type& type, format::SequenceProto& out);
Result<void> write_optional(const Datum& value, const Type& type, format::OptionalProto& out) {
  const Type inner = type.inner();
  out.set_elem_type(kind_of(inner));
  if (value.absent()) return {};
  if (inner.is_optional()) return write_optional(value, inner, *out.mutable_optional_value());
  if (value.is_sequence()) return write_sequence(value, inner, *out.mutable_sequence_value());
  return onnx::write_tensor(value.tensor(), "", *out.mutable_tensor_value());
}

Result<void> write_sequence(const Datum& value, const Type& type, format::SequenceProto& out) {
  const Type inner = type.is_sequence() && type.inner().known() ? type.inner() : value.element_type();
  out.set_elem_type(kind_of(inner));
  for (const Datum& element : value.elements()) {
    if (inner.is_optional()) {
      TENON_OK(write_optional(element, inner, *out.add_optional_values()));
    } else if (element.is_sequence()) {
      TENON_OK(write_sequence(element, inner, *out.add_sequence_values()));
    } else if (element.is_tensor()) {
      TENON_OK(onnx::write_tensor(element.tensor(), "", *out.add_tensor_values()));
    } else {
      return error(Code::invalid_argument, "an element of ", type, " holds nothing");
    }
  }
  return {};
}

// Writes `proto`, filled by `fill`, to a file.
template <class Proto, class Fill>
Result<void> write_as(const std::string& path, const std::string& name, Fill fill) {
  Proto proto;
  if (!name.empty()) proto.set_name(name);
  TENON_OK(fill(proto), "writing '", path, "'");
  return onnx::write_file(path, proto);
}

Result<void> read(const std::string& path, const Type& type, Datum& out) {
  if (type.is_sequence()) {
    format::SequenceProto proto;
    TENON_OK(onnx::parse_file(path, proto));
    return read_sequence(proto, type, 0, out);
  }
  if (type.is_optional()) {
    format::OptionalProto proto;
    TENON_OK(onnx::parse_file(path, proto));
    return read_optional(proto, type, 0, out);
  }
  format::TensorProto proto;
  TENON_OK(onnx::parse_file(path, proto));
  return read_tensor(proto, out);
}

}  // namespace

Result<Datum> read_test_data(const std::string& path, const Type& type) {
  Datum out;
  TENON_OK(read(path, type, out), "reading '", path, "' as ", type);
  return out;
}

Result<void> write_test_data(const std::string& path, const Datum& value, const Type& type, const std::string& name) {
  if (type.is_optional())
    return write_as<format::OptionalProto>(path, name, [&](auto& proto) { return write_optional(value, type, proto); });
  if (value.is_sequence())
    return write_as<format::SequenceProto>(path, name, [&](auto& proto) { return write_sequence(value, type, proto); });
  if (value.is_tensor())
    return write_as<format::TensorProto>(path, name,
                                         [&](auto& proto) { return onnx::write_tensor(value.tensor(), name, proto); });
  return error(Code::invalid_argument, "writing '", path, "': a value of type ", type, " holds nothing");
}

Result<void> write_test_data(const std::string& path, const Tensor& tensor, const std::string& name) {
  return write_test_data(path, Datum(tensor), tensor.type(), name);
}

}  // namespace tenon
