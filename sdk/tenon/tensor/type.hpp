// The static type of a value: a tensor, a sequence of values, an optional value, or nothing.
#pragma once
#include <memory>
#include <string>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/element_type.hpp>
#include <tenon/tensor/shape.hpp>

namespace tenon {

struct TENON_API TensorType {
  ElementType element;  // none: not known yet
  Shape shape;
  bool operator==(const TensorType&) const = default;
  std::string to_string() const;  // "f32[2,N]"
};

class TENON_API Type {
 public:
  enum class Kind : uint8_t { unknown, tensor, sequence, optional };

  Type() = default;  // unknown: not inferred yet
  Type(TensorType tensor) : kind_(Kind::tensor), tensor_(std::move(tensor)) {}
  Type(ElementType element, Shape shape) : Type(TensorType{element, std::move(shape)}) {}
  static Type sequence(Type element);
  static Type optional(Type element);

  Kind kind() const { return kind_; }
  bool known() const { return kind_ != Kind::unknown; }
  bool is_tensor() const { return kind_ == Kind::tensor; }
  bool is_sequence() const { return kind_ == Kind::sequence; }
  bool is_optional() const { return kind_ == Kind::optional; }
  const TensorType& tensor() const { return tensor_; }  // only for a tensor
  ElementType element() const { return tensor_.element; }
  const Shape& shape() const { return tensor_.shape; }
  const Type& inner() const { return *inner_; }  // of a sequence or an optional
  bool operator==(const Type& other) const;

  // "f32[2,N]", "seq(f32[?])", "optional(i64[])", "?".
  std::string to_string() const;

 private:
  Kind kind_ = Kind::unknown;
  TensorType tensor_;
  std::shared_ptr<const Type> inner_;
};

// Parses the output of to_string.
TENON_API Result<Type> parse_type(std::string_view text);
// The combined knowledge of both; different kinds, element types or numbers are an error naming both.
TENON_API Result<Type> merge(const Type& a, const Type& b);

}  // namespace tenon
