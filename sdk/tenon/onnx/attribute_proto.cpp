#include <tenon/onnx/attribute_proto_internal.hpp>

#include <tenon/onnx/type_proto_internal.hpp>

namespace tenon::onnx {

using format::AttributeProto;

AttributeProto::AttributeType type_of(const AttributeProto& proto) {
  if (proto.type() != AttributeProto::UNDEFINED) return proto.type();
  if (proto.has_f()) return AttributeProto::FLOAT;
  if (proto.has_i()) return AttributeProto::INT;
  if (proto.has_s()) return AttributeProto::STRING;
  if (proto.has_t()) return AttributeProto::TENSOR;
  if (proto.has_g()) return AttributeProto::GRAPH;
  if (proto.floats_size()) return AttributeProto::FLOATS;
  if (proto.ints_size()) return AttributeProto::INTS;
  if (proto.strings_size()) return AttributeProto::STRINGS;
  if (proto.tensors_size()) return AttributeProto::TENSORS;
  if (proto.graphs_size()) return AttributeProto::GRAPHS;
  return AttributeProto::UNDEFINED;
}

bool holds_graphs(const AttributeProto& proto) {
  const auto type = type_of(proto);
  return type == AttributeProto::GRAPH || type == AttributeProto::GRAPHS;
}

Result<Attribute> read_attribute(const AttributeProto& proto, const TensorSource& source) {
  switch (type_of(proto)) {
    case AttributeProto::FLOAT: return Attribute(proto.f());
    case AttributeProto::INT: return Attribute(proto.i());
    case AttributeProto::STRING: return Attribute(proto.s());
    case AttributeProto::TENSOR: {
      TENON_TRY(tensor, source.tensor(proto.t()));
      return Attribute(std::move(tensor));
    }
    case AttributeProto::SPARSE_TENSOR: {
      TENON_TRY(tensor, source.sparse(proto.sparse_tensor()));
      return Attribute(std::move(tensor));
    }
    case AttributeProto::TYPE_PROTO: {
      TENON_TRY(type, read_type(proto.tp()));
      return Attribute(std::move(type));
    }
    case AttributeProto::FLOATS: return Attribute(Attribute::Reals(proto.floats().begin(), proto.floats().end()));
    case AttributeProto::INTS: return Attribute(Attribute::Integers(proto.ints().begin(), proto.ints().end()));
    case AttributeProto::STRINGS: return Attribute(Attribute::Texts(proto.strings().begin(), proto.strings().end()));
    case AttributeProto::TENSORS: {
      Attribute::Tensors tensors;
      for (const auto& item : proto.tensors()) {
        TENON_TRY(tensor, source.tensor(item));
        tensors.push_back(std::move(tensor));
      }
      return Attribute(std::move(tensors));
    }
    default: break;
  }
  return error(Code::unsupported, "an attribute of kind ", static_cast<int>(type_of(proto)), " cannot be read");
}

}  // namespace tenon::onnx
