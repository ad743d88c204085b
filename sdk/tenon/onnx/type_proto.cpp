#include <tenon/onnx/type_proto_internal.hpp>

#include <tenon/onnx/tensor_proto_internal.hpp>

namespace tenon::onnx {
namespace {

// Nesting depth of types; real models have two or three levels.
constexpr int kTypeDepth = 16;

Result<Shape> read_shape(const format::TensorShapeProto& proto) {
  std::vector<Dim> dims;
  for (const auto& dim : proto.dim()) {
    if (dim.has_dim_value()) {
      if (dim.dim_value() < 0)
        return error(Code::invalid_argument, "dim ", dims.size(), " is ", dim.dim_value(), ", below 0");
      dims.emplace_back(dim.dim_value());
    } else if (!dim.dim_param().empty()) {
      if (!is_utf8(dim.dim_param())) return error(Code::parse, "the name of dim ", dims.size(), " is not UTF-8");
      dims.emplace_back(Expr::symbol(dim.dim_param()));
    } else {
      dims.emplace_back();
    }
  }
  return Shape(std::move(dims));
}

Result<Type> read(const format::TypeProto& proto, int depth) {
  if (depth > kTypeDepth) return error(Code::resource_exhausted, "types are nested more than ", kTypeDepth, " deep");
  switch (proto.value_case()) {
    case format::TypeProto::kTensorType: {
      TensorType type;
      if (proto.tensor_type().elem_type() != 0) {
        TENON_TRY(element, element_from_number(proto.tensor_type().elem_type()));
        type.element = element;
      }
      if (proto.tensor_type().has_shape()) {
        TENON_TRY(shape, read_shape(proto.tensor_type().shape()));
        type.shape = std::move(shape);
      }
      return Type(std::move(type));
    }
    case format::TypeProto::kSequenceType: {
      TENON_TRY(element, read(proto.sequence_type().elem_type(), depth + 1));
      return Type::sequence(std::move(element));
    }
    case format::TypeProto::kOptionalType: {
      TENON_TRY(element, read(proto.optional_type().elem_type(), depth + 1));
      return Type::optional(std::move(element));
    }
    case format::TypeProto::kMapType: return error(Code::unsupported, "values of a map type are not supported");
    case format::TypeProto::kSparseTensorType:
      return error(Code::unsupported, "run-time values that are sparse tensors are not supported");
    case format::TypeProto::kOpaqueType: return error(Code::unsupported, "opaque types are not supported");
    case format::TypeProto::VALUE_NOT_SET: break;
  }
  return Type();
}

void write_dim(const Dim& dim, format::TensorShapeProto::Dimension& out) {
  if (dim.is_static()) {
    out.set_dim_value(dim.value());
  } else if (dim.known() && dim.expr().kind() == ExprKind::symbol) {
    out.set_dim_param(std::string(dim.expr().name()));
  }
}

}  // namespace

Result<Type> read_type(const format::TypeProto& proto) { return read(proto, 0); }

Result<void> write_type(const Type& type, format::TypeProto& out) {
  switch (type.kind()) {
    case Type::Kind::unknown: return {};
    case Type::Kind::sequence: return write_type(type.inner(), *out.mutable_sequence_type()->mutable_elem_type());
    case Type::Kind::optional: return write_type(type.inner(), *out.mutable_optional_type()->mutable_elem_type());
    case Type::Kind::tensor: break;
  }
  auto& tensor = *out.mutable_tensor_type();
  if (type.element().valid()) {
    TENON_TRY(number, number_of_element(type.element()));
    tensor.set_elem_type(number);
  }
  if (type.shape().ranked()) {
    auto& shape = *tensor.mutable_shape();
    for (const Dim& dim : type.shape().dims()) write_dim(dim, *shape.add_dim());
  }
  return {};
}

}  // namespace tenon::onnx
