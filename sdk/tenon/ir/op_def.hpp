// OpDef: everything known about one operator, in one place. The registry, verifier, parser, printer, generated
// documentation, ONNX import and tests all read it, so nothing about an operator is written twice.
//
//   const OpRegistration kRegistered({
//       OpDef("Softmax").summary("exp(x) / sum(exp(x)) along `axis`")
//           .operand("input", "T").result("output", "T").types("T", kFloatTypes)
//           .attribute("axis", int64_t{-1}).traits(Trait::pure | Trait::layout_aware)
//           .infer(same_as_operand(0)),
//   });
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tenon/ir/attribute.hpp>
#include <tenon/ir/bounds_rule.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/name.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

enum class Trait : uint32_t {
  none = 0,
  pure = 1,          // no side effects: unused results may be removed, equal operators merged, constants folded
  elementwise = 2,   // result element i depends on operand elements i only (after broadcasting)
  broadcasting = 4,  // operands broadcast as NumPy does
  commutative = 8,   // op(a, b) = op(b, a)
  associative = 16,  // exactly, in the element type's arithmetic: integers and booleans; passes must check the type
  reduction = 32,    // folds one or more axes
  layout_oblivious = 64,   // works in any layout that all operands share
  layout_aware = 128,      // defined by logical dims; kernels exist per layout
  layout_dependent = 256,  // depends on the order of bytes: a barrier to layout changes
  random = 512,            // two runs may differ; not pure
  data_dependent = 1024,   // a result's shape depends on operand values
  movement = 2048,         // moves or copies elements without arithmetic
  view = 4096,             // result 0 has the bytes of operand 0 in the same order, under another shape
  // a run might not execute its regions: contradicting shapes in them are errors only when they are executed
  conditional = 8192,
};
constexpr Trait operator|(Trait a, Trait b) {
  return static_cast<Trait>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}
constexpr bool has(Trait set, Trait one) { return (static_cast<uint32_t>(set) & static_cast<uint32_t>(one)) != 0; }

// Which types a type variable ("T") may stand for.
class TENON_API TypeSet {
 public:
  using Test = bool (*)(ElementType);
  // `text` is for messages and documentation: "float tensors".
  constexpr TypeSet(const char* text, Test test, bool sequences = false, bool optionals = false, bool tensors = true)
      : text_(text), test_(test), sequences_(sequences), optionals_(optionals), tensors_(tensors) {}
  const char* text() const { return text_; }
  bool contains(const Type& type) const;

 private:
  const char* text_;
  Test test_;
  bool sequences_, optionals_, tensors_;
};
TENON_API extern const TypeSet kAnyTensor;      // every element type
TENON_API extern const TypeSet kAnyType;        // tensors, sequences, optionals
TENON_API extern const TypeSet kFloatTypes;     // every floating-point type
TENON_API extern const TypeSet kIntTypes;       // signed and unsigned integers
TENON_API extern const TypeSet kNumberTypes;    // floats and integers
TENON_API extern const TypeSet kBoolType;
TENON_API extern const TypeSet kStringType;
TENON_API extern const TypeSet kIndexTypes;     // i32, i64
TENON_API extern const TypeSet kI64Type;
TENON_API extern const TypeSet kSequenceTypes;
TENON_API extern const TypeSet kOptionalTypes;

// What a shape rule sees: the operator, its operands' types, and operand values as far as they are known. The compiler
// provides static knowledge, a run provides actual tensors: one rule serves both.
class TENON_API InferContext {
 public:
  virtual ~InferContext() = default;
  explicit InferContext(const Op& op) : op_(op) {}
  const Op& op() const { return op_; }
  template <class T>
  T attr(Name name, T fallback = T()) const { return op_.attr<T>(name, fallback); }

  size_t operand_count() const { return op_.operand_count(); }
  bool has_operand(size_t i) const { return op_.operand(i) != nullptr; }
  // Unknown type for an absent operand.
  virtual const Type& type(size_t i) const = 0;
  // The operand's elements if all of them are known, else null.
  virtual const Tensor* constant(size_t i) const = 0;
  // An integer operand of rank 0 or 1 as dims: known numbers, expressions, or unknown; nullopt when not even the count
  // is known.
  virtual std::optional<std::vector<Dim>> dims_value(size_t i) const = 0;
  // The declared type of result `i` (from import or text); unknown when there is none.
  virtual Type declared(size_t i) const = 0;
  // Types of the outputs of region `i`, when its operators have types.
  std::vector<Type> region_outputs(size_t i) const;

  // Shorthands: an error naming the operand when it is not a tensor.
  Result<TensorType> tensor(size_t i) const;

 private:
  const Op& op_;
};
using InferFn = std::function<Result<std::vector<Type>>(const InferContext&)>;
// For operators on shape vectors (Shape, Gather, Concat, Add ...): the result's elements as dims, where they can be
// determined.
using InferDimsFn = std::function<std::optional<std::vector<Dim>>(const InferContext&)>;
// Checks beyond counts, kinds and type variables, which follow from the definition.
using VerifyFn = std::function<Result<void>(const Op&)>;

// A place at which decompositions, gradients and passes create operators: see builder.hpp.
class Builder;
// Rebuilds the operator from simpler ones: one value per result (null for an unused result).
using DecomposeFn = std::function<Result<std::vector<Value*>>(Builder&, const Op&)>;
// Given d(loss)/d(result) per result (null: zero), d(loss)/d(operand) per operand (null: zero or not differentiable).
using GradientFn = std::function<Result<std::vector<Value*>>(Builder&, const Op&, std::span<Value* const>)>;

enum class Arity : uint8_t { required, optional, variadic };

struct OperandDef {
  std::string name;
  std::string type_var;  // "T", or a fixed type's text such as "i64"
  Arity arity = Arity::required;
  bool homogeneous = true;  // variadic: all of the same type
};
struct AttributeDef {
  Name name;
  AttributeKind kind = AttributeKind::integer;
  bool required = false;
  std::optional<Attribute> fallback;
  std::vector<std::string> one_of;  // allowed texts; empty: any
};

class TENON_API OpDef {
 public:
  explicit OpDef(Name name) : name_(name) {}

  // Building; each returns *this.
  OpDef& summary(std::string text);  // one sentence, the formula first
  OpDef& operand(std::string name, std::string type_var, Arity arity = Arity::required);
  OpDef& optional_operand(std::string name, std::string type_var) {
    return operand(std::move(name), std::move(type_var), Arity::optional);
  }
  OpDef& variadic_operands(std::string name, std::string type_var, size_t at_least, bool homogeneous = true);
  OpDef& result(std::string name, std::string type_var, Arity arity = Arity::required);
  OpDef& variadic_results(std::string name, std::string type_var, size_t at_least, bool homogeneous = true);
  OpDef& types(std::string type_var, const TypeSet& set);
  OpDef& attribute(std::string_view name, Attribute fallback);                  // optional, with a default
  OpDef& optional_attribute(std::string_view name, AttributeKind kind);         // optional, absence has a meaning
  OpDef& required_attribute(std::string_view name, AttributeKind kind);
  OpDef& one_of(std::vector<std::string> texts);                                // for the attribute added last
  OpDef& regions(size_t count) { return regions_ = count, *this; }
  OpDef& traits(Trait traits) { return traits_ = traits, *this; }
  OpDef& infer(InferFn fn) { return infer_ = std::move(fn), *this; }
  OpDef& infer_dims(InferDimsFn fn) { return infer_dims_ = std::move(fn), *this; }
  // What parts of results read (bounds_rule.hpp); without it, the operator cannot be a stage of a pipeline.
  OpDef& bounds(BoundsRule rule) { return bounds_ = std::move(rule), *this; }
  OpDef& verify(VerifyFn fn) { return verify_ = std::move(fn), *this; }
  OpDef& decompose(DecomposeFn fn) { return decompose_ = std::move(fn), *this; }
  OpDef& gradient(GradientFn fn) { return gradient_ = std::move(fn), *this; }

  // Access.
  Name name() const { return name_; }
  // "" for the generic operators of ai.onnx, else what stands before the last dot: "ai.onnx.ml", "vta".
  std::string_view domain() const;
  const std::string& summary() const { return summary_; }
  const std::vector<OperandDef>& operands() const { return operands_; }
  const std::vector<OperandDef>& results() const { return results_; }
  size_t min_operands() const { return min_operands_; }
  size_t max_operands() const;  // SIZE_MAX when the last is variadic
  size_t min_results() const { return min_results_; }
  size_t max_results() const;
  const std::vector<AttributeDef>& attributes() const { return attributes_; }
  const AttributeDef* attribute(Name name) const;
  const std::map<std::string, TypeSet>& type_vars() const { return type_vars_; }
  size_t region_count() const { return regions_; }
  Trait traits() const { return traits_; }
  bool has(Trait trait) const { return tenon::has(traits_, trait); }
  const InferFn& infer_fn() const { return infer_; }
  const InferDimsFn& infer_dims_fn() const { return infer_dims_; }
  const BoundsRule& bounds_rule() const { return bounds_; }
  const BoundsFn& bounds_fn() const { return bounds_.bounds; }
  const VerifyFn& verify_fn() const { return verify_; }
  const DecomposeFn& decompose_fn() const { return decompose_; }
  const GradientFn& gradient_fn() const { return gradient_; }

 private:
  Name name_;
  std::string summary_;
  std::vector<OperandDef> operands_, results_;
  size_t min_operands_ = 0, min_results_ = 0;
  std::vector<AttributeDef> attributes_;
  std::map<std::string, TypeSet> type_vars_;
  size_t regions_ = 0;
  Trait traits_ = Trait::pure;
  InferFn infer_;
  InferDimsFn infer_dims_;
  BoundsRule bounds_;
  VerifyFn verify_;
  DecomposeFn decompose_;
  GradientFn gradient_;
};
using OpDefs = std::vector<OpDef>;

// The operators known to this process. Any thread. Definitions are never removed.
TENON_API const OpDef* find_op(Name name);
TENON_API std::vector<const OpDef*> all_ops();  // by name
// An error naming the operator when it is already registered, or when the definition is inconsistent (a type variable
// without types, an optional operand before a required one, an attribute twice).
TENON_API Result<void> register_op(OpDef def);
TENON_API Result<void> register_ops(OpDefs defs);

// Registers at load time: each family's file ends with one such object. A definition that is refused is a bug of ours
// and aborts; plugins call register_ops and report the error.
struct TENON_API OpRegistration {
  explicit OpRegistration(OpDefs defs);
};

// Shape rules shared by many operators.
TENON_API InferFn same_as_operand(size_t i);        // every result: the operand's type
TENON_API InferFn broadcast_operands();             // element of operand 0, all shapes broadcast
TENON_API InferFn broadcast_operands_to(ElementType element);

}  // namespace tenon
