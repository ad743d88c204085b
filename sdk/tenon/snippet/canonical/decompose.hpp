// Operators of the graph in terms of the dialect's (body.hpp, docs/snippets.md): one table, one row an operator.
//
//   {"LeakyRelu", broadcast_space, [](Rebuild& r) -> Result<ValueId> {
//      const ValueId x = r.in(0);
//      const ValueId below = r.node("Mul", {x, r.scalar_like(x, r.real("alpha", 0.01f))});
//      return r.node("Where", {r.compare("GreaterOrEqual", x, r.scalar_like(x, 0)), x, below});
//    }}
//
// An operator without a row has no form in the dialect. A row's functions may still refuse: attributes, types and
// shapes that they do not cover are Code::unsupported.
#pragma once
#include <initializer_list>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tenon/codegen/register.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/snippet/body/body.hpp>
#include <tenon/snippet/canonical/canonical_space.hpp>
#include <tenon/support/export.hpp>

namespace tenon::snippet {

class Rebuild;

struct DecomposeRow {
  std::string_view op;
  // How its dims hang together. Operands that the space has no axes for are read when the graph is compiled (axes,
  // shapes), or not at all.
  Result<Space> (*space)(const Op& op) = nullptr;
  // Result 0 as a lane; of the others Rebuild::set() tells. None: the operator of the dialect has the same name, or
  // `dialect`, and the same operands.
  Result<ValueId> (*rebuild)(Rebuild& r) = nullptr;
  std::string_view dialect = {};
  // Are results already of their element type? Else f16 and bf16 are rounded, and narrow integers cut.
  bool exact = false;
  // Only shows the elements of operand 0 under another shape.
  bool view = false;
  // The operand whose value the space depends on (axes), and a value that it may have: whatever it has at a run, the
  // body has no other operators of the dialect. None: the space depends on types and attributes alone.
  size_t value_operand = kNoOperand;
  Tensor (*usual_value)(const Op& op) = nullptr;
  static constexpr size_t kNoOperand = SIZE_MAX;
};
TENON_API const DecomposeRow* find_decomposition(Name op);
// By family, for documentation and tests.
TENON_API std::vector<const DecomposeRow*> all_decompositions();

// ---- What rows are made of ----

// The Scalars of a body by their bits; those of several lane types may have the same.
using ScalarNodes = std::unordered_multimap<uint64_t, ValueId>;

// One operator as it is put into a body, whose Scalars so far are `scalars`.
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
  // One Scalar stands for all that are alike.
  ValueId scalar_bits(ElementType lane, uint64_t bits);
  ValueId convert(ValueId value, ElementType lane);
  // What only stands for itself, but varies over the dims of `like`.
  ValueId spread(ValueId value, ValueId like);

  // ---- Reductions over the folded dims, if the operator folds any ----

  ValueId sum(ValueId value) { return reduce("ReduceSum", value, 0); }
  ValueId reduce(Name name, ValueId value, double initial);
  // sum / count, in the sum's lane type.
  ValueId mean(ValueId value) { return node("Div", {sum(value), count(lane(value))}); }
  ValueId count(ElementType lane);

  // ---- Element types ----

  // As ONNX's Cast, from one element type to another.
  ValueId cast(ValueId value, ElementType from, ElementType to);
  // Brings a lane to a value of `element`: rounds to f16 and bf16, wraps narrow integers.
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
// Operand 0's shape; `folded` axes of it are folded. The space has operand 0 alone.
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
