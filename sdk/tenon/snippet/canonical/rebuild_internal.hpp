// Inside the room: the vocabulary in which the rows of decompose.hpp are written.
#pragma once
#include <initializer_list>
#include <optional>
#include <unordered_map>
#include <vector>

#include <tenon/codegen/register.hpp>
#include <tenon/snippet/canonical/canonical_space_internal.hpp>
#include <tenon/snippet/canonical/decompose.hpp>

namespace tenon::snippet {

// The Scalars of a body by their bits; Scalars of several lane types may have the same bits.
using ScalarNodes = std::unordered_multimap<uint64_t, ValueId>;

// One operator while it is added to a body, whose Scalars so far are `scalars`.
class Rebuild {
 public:
  Rebuild(const Op& op, const DecomposeRow& row, Body& body, ScalarNodes& scalars)
      : op_(op), row_(row), body_(body), scalars_(scalars) {}

  const Op& op() const { return op_; }
  const DecomposeRow& row() const { return row_; }
  // Operand `i` as a lane. A constant of one element is a Scalar.
  ValueId in(size_t i) const { return inputs_[i]; }
  bool has(size_t i) const { return op_.operand(i) != nullptr; }
  ElementType element(size_t i) const { return op_.operand(i)->type().element(); }
  ElementType out(size_t i = 0) const { return op_.result(i)->type().element(); }
  ElementType lane(ValueId id) const { return body_.values[static_cast<size_t>(id)].element; }
  DimSet varies(ValueId id) const { return body_.values[static_cast<size_t>(id)].varies; }
  // The number, where operand `i` is a constant of one element.
  std::optional<double> constant(size_t i) const;
  float real(Name attribute, float fallback) const { return op_.attr<float>(attribute, fallback); }

  // ---- Nodes ----

  // The result has the lane type of the last operand.
  ValueId node(Name name, std::initializer_list<ValueId> operands, Attributes attributes = {});
  ValueId node_of(ElementType lane, Name name, std::vector<ValueId> operands, Attributes attributes = {});
  ValueId compare(Name name, ValueId a, ValueId b) { return node_of(kBool, name, {a, b}); }
  ValueId scalar(ElementType lane, double number);
  ValueId scalar_like(ValueId value, double number) { return scalar(lane(value), number); }
  // Equal Scalars are shared.
  ValueId scalar_bits(ElementType lane, uint64_t bits);
  ValueId convert(ValueId value, ElementType lane);
  // Broadcasts a value to the dims of `like`.
  ValueId spread(ValueId value, ValueId like);

  // ---- Reductions over the reduced dims, if the operator reduces any ----

  ValueId sum(ValueId value) { return reduce("ReduceSum", value, 0); }
  ValueId reduce(Name name, ValueId value, double initial);
  // sum / count, in the sum's lane type.
  ValueId mean(ValueId value) { return node("Div", {sum(value), count(lane(value))}); }
  ValueId count(ElementType lane);

  // ---- Element types ----

  // As ONNX's Cast, from one element type to another.
  ValueId cast(ValueId value, ElementType from, ElementType to);
  // Converts a lane to a value of `element`: rounds to f16 and bf16, wraps narrow integers.
  ValueId fit(ValueId value, ElementType element);

  void set(size_t result, ValueId value) { results_[result] = value; }

 private:
  friend class BodyBuilder;
  ValueId cast_from_float(ValueId value, ElementType from, ElementType to);
  ValueId cast_from_int(ValueId value, ElementType from, ElementType to);
  ValueId sticky(ValueId value, int dropped_bits, int kept_from_bit);

  const Op& op_;
  const DecomposeRow& row_;
  Body& body_;
  ScalarNodes& scalars_;
  std::vector<ValueId> inputs_;
  std::unordered_map<size_t, ValueId> results_;
  bool folds_ = false;
};

// ---- Spaces that many rows share ----

// Operands broadcast to result 0.
Result<Space> broadcast_space(const Op& op);
// Operand 0's shape, of which the axes `folded` are reduced. The space contains only operand 0.
Result<Space> folding_space(const Op& op, const std::vector<size_t>& folded);
// Adds `value`, which broadcasts to `wide`.
Result<void> add_broadcast(Space& space, const Value& value, const ValueAxes& wide, const Shape& shape);

// The ends of the range of an integer type.
double least_of(ElementType element);
double greatest_of(ElementType element);

// Tables of the families, one file each.
using DecomposeRows = std::vector<DecomposeRow>;
DecomposeRows arithmetic_rows();
DecomposeRows logic_rows();
DecomposeRows activation_rows();
DecomposeRows cast_rows();
DecomposeRows reduce_rows();
DecomposeRows normalization_rows();
DecomposeRows quantize_rows();
DecomposeRows view_rows();

}  // namespace tenon::snippet
