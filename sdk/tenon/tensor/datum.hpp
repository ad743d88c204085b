// What a value holds at run time: a tensor, a sequence, or an optional that may be empty.
#pragma once
#include <memory>
#include <variant>
#include <vector>

#include <tenon/support/export.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon {

// A handle like Tensor: copies share. A default Datum is "absent": an optional operand that was not given, or an
// optional value that holds nothing.
class TENON_API Datum {
 public:
  Datum() = default;
  Datum(Tensor tensor) : state_(std::move(tensor)) {}
  // All elements must have the same Kind; `element_type` types the empty sequence.
  static Datum sequence(std::vector<Datum> elements, Type element_type);

  bool absent() const { return state_.index() == 0; }
  bool is_tensor() const { return state_.index() == 1; }
  bool is_sequence() const { return state_.index() == 2; }
  const Tensor& tensor() const { return std::get<1>(state_); }  // only of a tensor
  Tensor& tensor() { return std::get<1>(state_); }
  const std::vector<Datum>& elements() const { return std::get<2>(state_)->elements; }  // only of a sequence
  const Type& element_type() const { return std::get<2>(state_)->element_type; }
  // The type with static shapes; an absent datum has the unknown type. The optional wrapper is not visible here.
  Type type() const;

 private:
  struct Sequence {
    std::vector<Datum> elements;
    Type element_type;
  };
  std::variant<std::monostate, Tensor, std::shared_ptr<const Sequence>> state_;
};

}  // namespace tenon
