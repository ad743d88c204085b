// Shape rules asked with what the compiler knows.
#pragma once
#include <optional>
#include <vector>

#include <tenon/ir/op_def.hpp>
#include <tenon/support/export.hpp>

namespace tenon {

// Where an inference takes the types of values from. The default: what stands in the graph.
class TENON_API TypeSource {
 public:
  virtual ~TypeSource() = default;
  virtual const Type& type_of(const Value& value) const { return value.type(); }
};

// Operand types from a TypeSource, values of constants, and integer operands traced through short chains of shape
// arithmetic (by the operators' infer_dims rules).
class TENON_API StaticInferContext : public InferContext {
 public:
  // The depth keeps a hostile graph from making each query walk all of it.
  static constexpr int kDimsDepth = 16;
  explicit StaticInferContext(const Op& op, const TypeSource& source, int depth = kDimsDepth)
      : InferContext(op), source_(source), depth_(depth) {}

  const Type& type(size_t i) const override;
  const Tensor* constant(size_t i) const override;
  std::optional<std::vector<Dim>> dims_value(size_t i) const override;
  Type declared(size_t i) const override { return op().result(i)->type(); }

 private:
  const TypeSource& source_;
  int depth_;
};

// An integer tensor of rank 0 or 1 as dims; nullopt for any other.
TENON_API std::optional<std::vector<Dim>> dims_of_tensor(const Tensor& tensor);

// Runs the definition's shape rule, and checks that it gives a type per result. Errors name the operator.
TENON_API Result<std::vector<Type>> infer_types(const InferContext& context);

// Does `op` stand, at any depth, in a region that a run may leave out (Trait::conditional)? Shapes that contradict
// there are no fault of the graph: exporters write `If(Equal(Shape(x)[1], 1))` around a Squeeze of dim 1 whatever that
// dim is. They are a fault of the run that comes there, whose shape rules then say so.
TENON_API bool may_be_left_out(const Op& op);
// What the compiler can say of the results, from the types that stand in the graph. Where a run may leave `op` out and
// its shape rule refuses, the kinds and element types that its signature tells, with open shapes; what its definition
// verifies is no matter of shapes, and an error there, too.
TENON_API Result<std::vector<Type>> infer_types(const Op& op);
// Is `op` one that a run may leave out, and refuses its shape rule? A pass leaves such an operator as it is: the run
// that comes there must find the fault.
TENON_API bool contradicts(const Op& op);
// The type of a result of `op` from what was inferred and what is declared. An error when they contradict; but where a
// run may leave `op` out and only shapes do, what was inferred.
TENON_API Result<Type> merge_at(const Op& op, const Type& inferred, const Type& declared);

}  // namespace tenon
