// A few operators of domain "test", for tests of rooms below the generic operators.
#pragma once
#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>

namespace tenon::testing {
namespace detail {

// The halves of operand 0 along `axis`.
inline Result<std::vector<Type>> infer_split(const InferContext& context) {
  TENON_TRY(type, context.tensor(0));
  if (!type.shape.ranked()) return std::vector<Type>(context.op().result_count(), Type(type.element, Shape()));
  TENON_TRY(axis, normalize_axis(context.attr<int64_t>("axis", 0), type.shape.rank()));
  Dim& dim = type.shape[static_cast<size_t>(axis)];
  dim = floordiv(dim, Dim(static_cast<int64_t>(context.op().result_count())));
  return std::vector<Type>(context.op().result_count(), Type(type));
}

// The common types of both branches.
inline Result<std::vector<Type>> infer_if(const InferContext& context) {
  const auto taken = context.region_outputs(0), otherwise = context.region_outputs(1);
  if (taken.size() != otherwise.size()) {
    return error(Code::invalid_argument, "branches with ", taken.size(), " and ", otherwise.size(), " outputs");
  }
  std::vector<Type> types;
  for (size_t i = 0; i < taken.size(); ++i) {
    TENON_TRY(merged, merge(taken[i], otherwise[i]), "output ", i, " of the branches");
    types.push_back(std::move(merged));
  }
  return types;
}

inline Result<std::vector<Type>> infer_constant(const InferContext& context) {
  const Attribute* value = context.op().attributes().find("value");
  const Tensor* tensor = value ? value->get_if<Tensor>() : nullptr;
  if (!tensor) return error(Code::invalid_argument, "a constant without a tensor");
  return std::vector<Type>{Type(tensor->type())};
}

inline Result<void> verify_not_nine(const Op& op) {
  if (op.attr<int64_t>("times") == 9) return error(Code::invalid_argument, "nine times is too often");
  return {};
}

}  // namespace detail

// May be called repeatedly. "Constant" is defined only if the generic operators have not done so.
inline void register_test_ops() {
  if (find_op("test.Neg")) return;
  OpDefs defs = {
      OpDef("test.Neg").operand("x", "T").result("y", "T").types("T", kNumberTypes).infer(same_as_operand(0)),
      OpDef("test.Add")
          .operand("a", "T")
          .operand("b", "T")
          .result("y", "T")
          .types("T", kNumberTypes)
          .traits(Trait::pure | Trait::elementwise | Trait::broadcasting | Trait::commutative)
          .infer(broadcast_operands()),
      OpDef("test.Less")
          .operand("a", "T")
          .operand("b", "T")
          .result("y", "bool")
          .types("T", kNumberTypes)
          .infer(broadcast_operands_to(kBool)),
      OpDef("test.Clip")
          .operand("x", "T")
          .optional_operand("low", "T")
          .optional_operand("high", "T")
          .result("y", "T")
          .types("T", kNumberTypes)
          .infer(same_as_operand(0)),
      OpDef("test.Sum")
          .variadic_operands("terms", "T", 1)
          .result("y", "T")
          .types("T", kNumberTypes)
          .infer(broadcast_operands()),
      OpDef("test.Split")
          .operand("x", "T")
          .variadic_results("parts", "T", 1)
          .types("T", kAnyTensor)
          .attribute("axis", int64_t{0})
          .infer(detail::infer_split),
      OpDef("test.Repeat")
          .operand("x", "T")
          .result("y", "T")
          .types("T", kAnyTensor)
          .required_attribute("times", AttributeKind::integer)
          .attribute("mode", Attribute("wrap"))
          .one_of({"wrap", "mirror"})
          .infer(same_as_operand(0))
          .verify(detail::verify_not_nine),
      OpDef("test.If")
          .operand("condition", "bool")
          .variadic_results("results", "V", 0, false)
          .types("V", kAnyType)
          .regions(2)
          .infer(detail::infer_if),
      OpDef("test.Log").operand("x", "T").types("T", kAnyTensor).traits(Trait::none),
  };
  if (!find_op("Constant")) {
    defs.push_back(OpDef("Constant")
                       .result("y", "T")
                       .types("T", kAnyTensor)
                       .required_attribute("value", AttributeKind::tensor)
                       .infer(detail::infer_constant));
  }
  auto registered = register_ops(std::move(defs));
  TENON_CHECK(registered.ok(), registered.error().to_string());
}

}  // namespace tenon::testing
