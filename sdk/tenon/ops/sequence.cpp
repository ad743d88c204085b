#include <tenon/ops/sequence.hpp>

#include <tenon/ops/infer_util.hpp>

namespace tenon {
namespace {

// The type of the elements of sequence operand `i`; unknown if the sequence is.
Type element_of(const InferContext& context, size_t i) {
  const Type& type = context.type(i);
  return type.is_sequence() ? type.inner() : Type();
}

// Elements may differ in shape, so an inserted element reduces the known shape to what is common.
InferredTypes infer_construct(const InferContext& context) {
  Type element = context.type(0);
  for (size_t i = 1; i < context.operand_count(); ++i) {
    TENON_TRY(joined, join(element, context.type(i)), "operand ", i, " of ", context.op().describe(),
              " beside those before it");
    element = std::move(joined);
  }
  return std::vector<Type>{Type::sequence(std::move(element))};
}

InferredTypes infer_empty(const InferContext& context) {
  return std::vector<Type>{Type::sequence(Type(context.attr<Type>("dtype", Type(kF32, Shape())).element(), Shape()))};
}

InferredTypes infer_at(const InferContext& context) { return std::vector<Type>{element_of(context, 0)}; }

InferredTypes infer_insert(const InferContext& context) {
  TENON_TRY(element, join(element_of(context, 0), context.type(1)), "the tensor that ", context.op().describe(),
            " inserts");
  return std::vector<Type>{Type::sequence(std::move(element))};
}

InferredTypes infer_map(const InferContext& context) {
  std::vector<Type> given, types;
  for (size_t i = 0; i < context.operand_count(); ++i)
    given.push_back(context.type(i).is_sequence() ? context.type(i).inner() : context.type(i));
  TENON_OK(check_region(context, 0, given, context.op().result_count()));
  for (Type& element : context.region_outputs(0)) types.push_back(Type::sequence(std::move(element)));
  return types;
}

InferredTypes infer_split_to_sequence(const InferContext& context) {
  TENON_TRY(input, context.tensor(0));
  if (!input.shape.ranked()) return std::vector<Type>{Type::sequence(Type(input.element, Shape()))};
  TENON_TRY(axis, axis_attribute(context, "axis", 0, input.shape.rank()));
  if (context.has_operand(1)) {
    input.shape[axis] = Dim();
  } else if (context.attr<int64_t>("keepdims", 1) != 0) {
    input.shape[axis] = 1;
  } else {
    std::vector<Dim> dims = input.shape.dims();
    dims.erase(dims.begin() + static_cast<int64_t>(axis));
    input.shape = Shape(std::move(dims));
  }
  return std::vector<Type>{Type::sequence(Type(std::move(input)))};
}

InferredTypes infer_concat_from_sequence(const InferContext& context) {
  const Type element = element_of(context, 0);
  if (!element.is_tensor() || !element.shape().ranked()) return std::vector<Type>{Type(element.element(), Shape())};
  std::vector<Dim> dims = element.shape().dims();
  const bool stacks = context.attr<int64_t>("new_axis", 0) != 0;
  TENON_TRY(axis, axis_attribute(context, "axis", 0, element.shape().rank() + (stacks ? 1 : 0)));
  if (stacks) dims.insert(dims.begin() + static_cast<int64_t>(axis), Dim());
  dims[axis] = Dim();
  return one_type(element.element(), Shape(std::move(dims)));
}

InferredTypes infer_optional(const InferContext& context) {
  const Type held = context.has_operand(0) ? context.type(0) : context.attr<Type>("type");
  return std::vector<Type>{Type::optional(held)};
}

Result<void> verify_optional(const Op& op) {
  if (op.operand(0) || op.attributes().has("type")) return {};
  return error(Code::invalid_argument, op.describe(), " has neither an operand nor an attribute 'type'");
}

InferredTypes infer_get(const InferContext& context) {
  const Type& type = context.type(0);
  return std::vector<Type>{type.is_optional() ? type.inner() : type};
}

InferredTypes infer_one(ElementType element) { return one_type(element, Shape(Dims{})); }

const OpRegistration kSequenceRegistered({
    OpDef(SequenceConstruct::kName)
        .summary("The sequence of the operands")
        .variadic_operands("inputs", "T", 1)
        .result("output_sequence", "S")
        .types("T", kAnyTensor)
        .types("S", kSequenceTypes)
        .infer(infer_construct),
    OpDef(SequenceEmpty::kName)
        .summary("A sequence without elements, of tensors of `dtype`")
        .result("output", "S")
        .types("S", kSequenceTypes)
        .optional_attribute("dtype", AttributeKind::type)
        .infer(infer_empty),
    OpDef(SequenceAt::kName)
        .summary("The element at `position`")
        .operand("input_sequence", "S")
        .operand("position", "I")
        .result("tensor", "T")
        .types("S", kSequenceTypes)
        .types("I", kIndexTypes)
        .types("T", kAnyTensor)
        .infer(infer_at),
    OpDef(SequenceInsert::kName)
        .summary("The sequence with `tensor` put before the element at `position`, or at the end")
        .operand("input_sequence", "S")
        .operand("tensor", "T")
        .optional_operand("position", "I")
        .result("output_sequence", "S")
        .types("S", kSequenceTypes)
        .types("T", kAnyTensor)
        .types("I", kIndexTypes)
        .infer(infer_insert),
    OpDef(SequenceErase::kName)
        .summary("The sequence without the element at `position`, or without the last")
        .operand("input_sequence", "S")
        .optional_operand("position", "I")
        .result("output_sequence", "S")
        .types("S", kSequenceTypes)
        .types("I", kIndexTypes)
        .infer(same_as_operand(0)),
    OpDef(SequenceLength::kName)
        .summary("The number of elements")
        .operand("input_sequence", "S")
        .result("length", "i64")
        .types("S", kSequenceTypes)
        .infer([](const InferContext&) { return infer_one(kI64); }),
    OpDef(SequenceMap::kName)
        .summary("The sequences of what the region gives for each element of `input_sequence`")
        .operand("input_sequence", "S")
        .variadic_operands("additional_inputs", "V", 0, /*homogeneous=*/false)
        .variadic_results("out_sequence", "R", 1, /*homogeneous=*/false)
        .types("S", kSequenceTypes)
        .types("V", kAnyType)
        .types("R", kSequenceTypes)
        .regions(1)
        .infer(infer_map)
        .verify(verified_by(infer_map)),
    OpDef(SplitToSequence::kName)
        .summary("`input` cut along `axis` into parts of the lengths `split`, or of length 1")
        .operand("input", "T")
        .optional_operand("split", "I")
        .result("output_sequence", "S")
        .types("T", kAnyTensor)
        .types("I", kIndexTypes)
        .types("S", kSequenceTypes)
        .attribute("axis", int64_t{0})
        .attribute("keepdims", int64_t{1})
        .infer(infer_split_to_sequence),
    OpDef(ConcatFromSequence::kName)
        .summary("The elements end to end along `axis`, or stacked along a new one")
        .operand("input_sequence", "S")
        .result("concat_result", "T")
        .types("S", kSequenceTypes)
        .types("T", kAnyTensor)
        .required_attribute("axis", AttributeKind::integer)
        .attribute("new_axis", int64_t{0})
        .infer(infer_concat_from_sequence),
    OpDef(Optional::kName)
        .summary("An optional that holds `input`, or nothing")
        .optional_operand("input", "V")
        .result("output", "O")
        .types("V", kAnyType)
        .types("O", kOptionalTypes)
        .optional_attribute("type", AttributeKind::type)
        .infer(infer_optional)
        .verify(verify_optional),
    OpDef(OptionalGetElement::kName)
        .summary("What an optional holds")
        .operand("input", "O")
        .result("output", "V")
        .types("O", kAnyType)
        .types("V", kAnyType)
        .infer(infer_get),
    OpDef(OptionalHasElement::kName)
        .summary("Does the optional hold something?")
        .optional_operand("input", "O")
        .result("output", "bool")
        .types("O", kAnyType)
        .infer([](const InferContext&) { return infer_one(kBool); }),
});

}  // namespace
}  // namespace tenon
