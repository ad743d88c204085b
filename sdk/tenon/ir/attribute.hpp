// Attribute: a constant parameter of an operator. Floats are f32, as in ONNX: their shortest text reads back bit for
// bit.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <tenon/support/export.hpp>
#include <tenon/support/name.hpp>
#include <tenon/tensor/tensor.hpp>
#include <tenon/tensor/type.hpp>

namespace tenon {

// In the order of Attribute's variant.
enum class AttributeKind : uint8_t { integer, real, text, tensor, type, integers, reals, texts, tensors };
TENON_API std::string_view attribute_kind_name(AttributeKind kind);

class TENON_API Attribute {
 public:
  using Integers = std::vector<int64_t>;
  using Reals = std::vector<float>;
  using Texts = std::vector<std::string>;
  using Tensors = std::vector<Tensor>;

  template <std::integral T>
  Attribute(T value) : state_(static_cast<int64_t>(value)) {}
  template <std::floating_point T>
  Attribute(T value) : state_(static_cast<float>(value)) {}
  Attribute(std::string value) : state_(std::move(value)) {}
  Attribute(std::string_view value) : state_(std::string(value)) {}
  Attribute(const char* value) : state_(std::string(value)) {}
  Attribute(Tensor value) : state_(std::move(value)) {}
  Attribute(Type value) : state_(std::move(value)) {}
  Attribute(Integers value) : state_(std::move(value)) {}
  Attribute(Reals value) : state_(std::move(value)) {}
  Attribute(Texts value) : state_(std::move(value)) {}
  Attribute(Tensors value) : state_(std::move(value)) {}

  AttributeKind kind() const { return static_cast<AttributeKind>(state_.index()); }
  // T: int64_t, float, std::string, Tensor, Type, or a vector of one of the first four. Null for another kind.
  template <class T>
  const T* get_if() const { return std::get_if<T>(&state_); }

  // Compares tensors by element type, shape and bits, and floats by bits, so that NaN equals itself.
  bool operator==(const Attribute& other) const;
  uint64_t hash() const;

 private:
  std::variant<int64_t, float, std::string, Tensor, Type, Integers, Reals, Texts, Tensors> state_;
};

// A small map, sorted by the text of the names.
class TENON_API Attributes {
 public:
  using Entry = std::pair<Name, Attribute>;
  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries);

  const Attribute* find(Name name) const;
  bool has(Name name) const { return find(name) != nullptr; }
  void set(Name name, Attribute value);
  void erase(Name name);
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  bool operator==(const Attributes&) const = default;

 private:
  std::vector<Entry> entries_;
};

}  // namespace tenon
