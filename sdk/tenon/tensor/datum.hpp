// A value at run time: a tensor, a sequence, or an optional that may be empty.
#pragma once
#include <memory>
#include <variant>
#include <vector>

#include <tenon/support/export.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon {

// A handle like Tensor: copies share. A default Datum is "absent": an optional operand that was not given, or an empty
// optional.
class TENON_API Datum {
 public:
  Datum() = default;
  Datum(Tensor tensor) : state_(std::move(tensor)) {}
  // All elements must have the same Kind; `element_type` is the type of the empty sequence's elements.
  static Datum sequence(std::vector<Datum> elements, Type element_type);

  bool absent() const { return state_.index() == 0; }
  bool is_tensor() const { return state_.index() == 1; }
  bool is_sequence() const { return state_.index() == 2; }
  const Tensor& tensor() const { return std::get<1>(state_); }  // only for a tensor
  Tensor& tensor() { return std::get<1>(state_); }
  const std::vector<Datum>& elements() const { return std::get<2>(state_)->elements; }  // only for a sequence
  const Type& element_type() const { return std::get<2>(state_)->element_type; }
  // The type, with static shapes; an absent datum has the unknown type. A Datum does not show the optional wrapper.
  Type type() const;

 private:
  struct Sequence {
    std::vector<Datum> elements;
    Type element_type;
  };
  std::variant<std::monostate, Tensor, std::shared_ptr<const Sequence>> state_;
};

}  // namespace tenon
