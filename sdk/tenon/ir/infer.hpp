// Shape inference with what the compiler knows statically.
#pragma once
#include <optional>
#include <vector>

#include <tenon/ir/op_def.hpp>
#include <tenon/support/export.hpp>

namespace tenon {

// Where inference gets the types of values from. By default, from the graph.
class TENON_API TypeSource {
 public:
  virtual ~TypeSource() = default;
  virtual const Type& type_of(const Value& value) const { return value.type(); }
};

// Operand types from a TypeSource, values of constants, and integer operands traced through short chains of shape
// arithmetic (by the operators' infer_dims rules).
class TENON_API StaticInferContext : public InferContext {
 public:
  // A limit on the depth, so that a hostile graph cannot make each query traverse all of it.
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

// The elements of an integer tensor of rank 0 or 1 as dims; nullopt for any other.
TENON_API std::optional<std::vector<Dim>> dims_of_tensor(const Tensor& tensor);

// Runs the definition's shape rule and checks that it gives one type per result. Errors name the operator.
TENON_API Result<std::vector<Type>> infer_types(const InferContext& context);

// Whether `op` is, at any depth, in a region that a run might not execute (Trait::conditional). Contradicting shapes
// there are not an error of the graph: exporters write `If(Equal(Shape(x)[1], 1))` around a Squeeze of dim 1 whatever
// that dim is. A run that executes the region reports them through the shape rules.
TENON_API bool may_be_left_out(const Op& op);
// What the compiler can infer about the results from the types in the graph. If a run might not execute `op` and its
// shape rule fails: the kinds and element types given by its signature, with open shapes. Violations of the
// definition's verify rule are errors in either case, as they do not concern shapes.
TENON_API Result<std::vector<Type>> infer_types(const Op& op);
// Whether a run might not execute `op` and its shape rule fails. Passes leave such an operator unchanged, so that a run
// that executes it reports the error.
TENON_API bool contradicts(const Op& op);
// The type of a result of `op` from the inferred and the declared type. A contradiction is an error, except that the
// inferred type wins where a run might not execute `op` and only shapes differ.
TENON_API Result<Type> merge_at(const Op& op, const Type& inferred, const Type& declared);

}  // namespace tenon
