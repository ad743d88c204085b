#include <tenon/onnx/test_data.hpp>

#include <tenon/onnx/model_file_internal.hpp>
#include <tenon/onnx/tensor_proto_internal.hpp>

namespace tenon {
namespace {

namespace format = onnx_format;

// Values inside each other; the format's own cases have two levels.
constexpr int kDepth = 16;

// The readers fill `out`, which starts as the absent datum.
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

Result<void> write_test_data(const std::string& path, const Tensor& tensor, const std::string& name) {
  format::TensorProto proto;
  TENON_OK(onnx::write_tensor(tensor, name, proto), "writing '", path, "'");
  return onnx::write_file(path, proto);
}

}  // namespace tenon
