// Writes ONNX files field by field, so that tests can make malformed as well as well-formed files. A Protocol Buffers
// message is a list of (field number * 8 + wire type, value), see https://protobuf.dev/programming-guides/encoding.
#pragma once
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::wire {

class Message {
 public:
  Message& number(int field, int64_t value) {
    return varint(static_cast<uint64_t>(field) << 3), varint(static_cast<uint64_t>(value));
  }
  Message& real(int field, float value) {
    varint(static_cast<uint64_t>(field) << 3 | 5);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Message& text(int field, std::string_view value) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& add(int field, const Message& value) { return text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }
  std::span<const std::byte> span() const { return std::as_bytes(std::span(bytes_)); }

 private:
  Message& varint(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
    return *this;
  }
  std::string bytes_;
};

using Names = std::vector<std::string_view>;

inline Message int_attribute(std::string_view name, int64_t value) {
  return Message().text(1, name).number(20, 2).number(3, value);
}
inline Message float_attribute(std::string_view name, float value) {
  return Message().text(1, name).number(20, 1).real(2, value);
}
inline Message string_attribute(std::string_view name, std::string_view value) {
  return Message().text(1, name).number(20, 3).text(4, value);
}
inline Message graph_attribute(std::string_view name, const Message& graph) {
  return Message().text(1, name).number(20, 5).add(6, graph);
}
inline Message tensor_attribute(std::string_view name, const Message& tensor) {
  return Message().text(1, name).number(20, 4).add(5, tensor);
}
inline Message ref_attribute(std::string_view name, std::string_view of, int type) {
  return Message().text(1, name).text(21, of).number(20, type);
}
inline Message ints_attribute(std::string_view name, const std::vector<int64_t>& values) {
  Message out = Message().text(1, name).number(20, 7);
  for (const int64_t value : values) out.number(8, value);
  return out;
}
inline Message strings_attribute(std::string_view name, const Names& values) {
  Message out = Message().text(1, name).number(20, 8);
  for (const auto value : values) out.text(9, value);
  return out;
}

inline Message node(std::string_view op, const Names& inputs, const Names& outputs,
                    const std::vector<Message>& attributes = {}, std::string_view domain = "",
                    std::string_view name = "") {
  Message out;
  for (const auto input : inputs) out.text(1, input);
  for (const auto output : outputs) out.text(2, output);
  if (!name.empty()) out.text(3, name);
  out.text(4, op);
  for (const Message& attribute : attributes) out.add(5, attribute);
  if (!domain.empty()) out.text(7, domain);
  return out;
}

// A dim given as text is a symbol.
struct Extent {
  int64_t value = 0;
  std::string_view symbol = {};
  Extent(int64_t number) : value(number) {}
  Extent(int number) : value(number) {}
  Extent(const char* name) : symbol(name) {}
};
inline Message tensor_type(int element, const std::vector<Extent>& dims) {
  Message shape;
  for (const Extent& dim : dims)
    shape.add(1, dim.symbol.empty() ? Message().number(1, dim.value) : Message().text(2, dim.symbol));
  return Message().add(1, Message().number(1, element).add(2, shape));
}
inline Message info(std::string_view name, const Message& type) { return Message().text(1, name).add(2, type); }
inline Message info(std::string_view name, int element, const std::vector<Extent>& dims) {
  return info(name, tensor_type(element, dims));
}
inline Message info(std::string_view name) { return Message().text(1, name); }

template <class T>
Message tensor(std::string_view name, int element, const std::vector<int64_t>& dims, const std::vector<T>& values) {
  Message out;
  for (const int64_t dim : dims) out.number(1, dim);
  return out.number(2, element)
      .text(8, name)
      .text(9, std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)));
}

struct GraphParts {
  std::vector<Message> nodes, inputs, outputs, initializers = {}, value_infos = {};
};
inline Message graph(const GraphParts& parts, std::string_view name = "g") {
  Message out;
  for (const Message& item : parts.nodes) out.add(1, item);
  out.text(2, name);
  for (const Message& item : parts.initializers) out.add(5, item);
  for (const Message& item : parts.inputs) out.add(11, item);
  for (const Message& item : parts.outputs) out.add(12, item);
  for (const Message& item : parts.value_infos) out.add(13, item);
  return out;
}

inline Message opset(std::string_view domain, int64_t version) { return Message().text(1, domain).number(2, version); }
inline Message function(std::string_view name, const Names& inputs, const Names& outputs,
                        const std::vector<Message>& nodes, std::string_view domain = "local", int64_t version = 13) {
  Message out = Message().text(1, name).text(10, domain);
  for (const auto input : inputs) out.text(4, input);
  for (const auto output : outputs) out.text(5, output);
  for (const Message& item : nodes) out.add(7, item);
  return out.add(9, opset("", version)).add(9, opset("local", 1));
}
inline Message model(const Message& graph, int64_t version = 13, const std::vector<Message>& functions = {},
                     int64_t ir_version = 8) {
  Message out = Message().number(1, ir_version).add(7, graph).add(8, opset("", version));
  if (!functions.empty()) out.add(8, opset("local", 1));
  for (const Message& item : functions) out.add(25, item);
  return out;
}

constexpr int kFloatElement = 1, kInt64Element = 7, kBoolElement = 9;

}  // namespace tenon::wire
