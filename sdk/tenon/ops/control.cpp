#include <tenon/ops/control.hpp>

#include <algorithm>

#include <tenon/ops/infer_util.hpp>

namespace tenon {
namespace {

// Branches have no inputs: they use outer values.
InferredTypes infer_if(const InferContext& context) {
  const size_t count = context.op().result_count();
  for (const size_t branch : {size_t{0}, size_t{1}}) TENON_OK(check_region(context, branch, {}, count));
  const std::vector<Type> yes = context.region_outputs(0), no = context.region_outputs(1);
  std::vector<Type> types;
  for (size_t i = 0; i < count; ++i) {
    TENON_TRY(joined, join(yes[i], no[i]), "output ", i, " of the branches of ", context.op().describe());
    types.push_back(std::move(joined));
  }
  return types;
}

// The type of a carried value: before the first iteration, or as the body returns it. A body may turn an optional into
// its content; then there is at least one iteration.
Result<Type> carried_type(const Type& before, const Type& after) {
  if (before.is_optional() != after.is_optional()) return after;
  return join(before, after);
}

Type with_axis(const Type& slice, int64_t axis, const Dim& dim) {
  if (!slice.is_tensor() || !slice.shape().ranked()) return slice;
  std::vector<Dim> dims = slice.shape().dims();
  dims.insert(dims.begin() + axis, dim);
  return Type(slice.element(), Shape(std::move(dims)));
}

// An output of a body that a run takes slices of: it must be a tensor, with element type `element` if that is given.
Result<void> check_tensor(const InferContext& context, const Type& output, size_t i, ElementType element = {}) {
  const bool is_fit =
      output.is_tensor() && (!element.valid() || !output.element().valid() || output.element() == element);
  if (!output.known() || is_fit) return {};
  return error(Code::invalid_argument, "output ", i, " of the body of ", context.op().describe(), " must be ",
               element.valid() ? str("one ", element) : "a tensor", ", it is ", output);
}

InferredTypes infer_loop(const InferContext& context) {
  const size_t operands = std::max<size_t>(context.operand_count(), 2), carried = operands - 2;
  const size_t results = context.op().result_count();
  std::vector<Type> given = {Type(kI64, Shape(Dims{})), Type(kBool, Shape(Dims{}))};
  for (size_t i = 2; i < operands; ++i) given.push_back(context.type(i));
  TENON_OK(check_region(context, 0, given, results + 1));
  if (results < carried) {
    return error(Code::invalid_argument, context.op().describe(), " carries ", carried, " values and has ", results,
                 " results");
  }
  const std::vector<Type> outputs = context.region_outputs(0);
  TENON_OK(check_tensor(context, outputs[0], 0, kBool));
  std::vector<Type> types;
  for (size_t i = 0; i < results; ++i) {
    const Type& made = outputs[i + 1];
    if (i < carried) {
      TENON_TRY(type, carried_type(context.type(i + 2), made), "value ", i, " carried by ", context.op().describe());
      types.push_back(std::move(type));
    } else {
      TENON_OK(check_tensor(context, made, i + 1));
      types.push_back(with_axis(made, 0, Dim()));
    }
  }
  return types;
}

int64_t list_at(const Attribute::Integers& list, size_t i) { return i < list.size() ? list[i] : 0; }

Result<size_t> carried_by_scan(const InferContext& context) {
  const auto scanned = context.attr<int64_t>("num_scan_inputs");
  const auto operands = static_cast<int64_t>(context.operand_count());
  if (scanned >= 1 && scanned <= operands) return static_cast<size_t>(operands - scanned);
  return error(Code::invalid_argument, "attribute 'num_scan_inputs' of ", context.op().describe(), " is ", scanned,
               ", it has ", operands, " operands");
}

// Checks number, kinds and element types.
Result<void> scan_body_fits(const InferContext& context) {
  TENON_TRY(carried, carried_by_scan(context));
  const size_t results = context.op().result_count();
  std::vector<Type> given;
  for (size_t i = 0; i < context.operand_count(); ++i) {
    const Type& type = context.type(i);
    given.push_back(i < carried || !type.is_tensor() ? type : Type(type.element(), Shape()));  // a slice of it
  }
  TENON_OK(check_region(context, 0, given, results));
  if (results < carried) {
    return error(Code::invalid_argument, context.op().describe(), " carries ", carried, " values and has ", results,
                 " results");
  }
  const std::vector<Type> outputs = context.region_outputs(0);
  for (size_t i = 0; i < results; ++i) {
    if (i < carried) {
      TENON_OK(carried_type(context.type(i), outputs[i]), "value ", i, " carried by ", context.op().describe());
    } else {
      TENON_OK(check_tensor(context, outputs[i], i));
    }
  }
  return {};
}

InferredTypes infer_scan(const InferContext& context) {
  TENON_OK(scan_body_fits(context));
  TENON_TRY(carried, carried_by_scan(context));
  const auto input_axes = context.attr<Attribute::Integers>("scan_input_axes");
  const auto output_axes = context.attr<Attribute::Integers>("scan_output_axes");
  Dim length;
  for (size_t i = carried; i < context.operand_count(); ++i) {
    TENON_TRY(input, context.tensor(i));
    if (!input.shape.ranked()) continue;
    TENON_TRY(axis, normalize_axis(list_at(input_axes, i - carried), input.shape.rank()),
              "attribute 'scan_input_axes'");
    const Dim& dim = input.shape[static_cast<size_t>(axis)];
    if (certainly_differ(length, dim)) {
      return error(Code::invalid_argument, "scan input ", i - carried, " of ", context.op().describe(), " has ", dim,
                   " slices, those before it ", length);
    }
    if (!length.is_static()) length = dim.known() ? dim : length;
  }
  const std::vector<Type> outputs = context.region_outputs(0);
  std::vector<Type> types;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Type& made = outputs[i];
    if (i < carried) {
      TENON_TRY(type, carried_type(context.type(i), made));
      types.push_back(std::move(type));
      continue;
    }
    int64_t axis = 0;
    if (made.is_tensor() && made.shape().ranked()) {
      TENON_TRY(given, normalize_axis(list_at(output_axes, i - carried), made.shape().rank() + 1),
                "attribute 'scan_output_axes'");
      axis = given;
    }
    types.push_back(with_axis(made, axis, length));
  }
  return types;
}

const OpRegistration kControlRegistered({
    OpDef(If::kName)
        .summary("The outputs of the first region when `cond` is true, else those of the second")
        .operand("cond", "bool")
        .variadic_results("outputs", "V", 1, /*homogeneous=*/false)
        .types("V", kAnyType)
        .traits(Trait::pure | Trait::conditional)
        .regions(2)
        .infer(infer_if)
        .verify(verified_by(infer_if)),
    OpDef(Loop::kName)
        .summary("Runs its region up to `M` times while a condition holds; carries values along and stacks others")
        .optional_operand("M", "i64")
        .optional_operand("cond", "bool")
        .variadic_operands("v_initial", "V", 0, /*homogeneous=*/false)
        .variadic_results("v_final_and_scan_outputs", "V", 1, /*homogeneous=*/false)
        .types("V", kAnyType)
        .regions(1)
        .infer(infer_loop)
        .verify(verified_by(infer_loop)),
    OpDef(Scan::kName)
        .summary("Runs its region for each slice of its scan inputs; carries values along and stacks others")
        .variadic_operands("initial_state_and_scan_inputs", "V", 1, /*homogeneous=*/false)
        .variadic_results("final_state_and_scan_outputs", "V", 1, /*homogeneous=*/false)
        .types("V", kAnyTensor)
        .required_attribute("num_scan_inputs", AttributeKind::integer)
        .optional_attribute("scan_input_axes", AttributeKind::integers)
        .optional_attribute("scan_input_directions", AttributeKind::integers)
        .optional_attribute("scan_output_axes", AttributeKind::integers)
        .optional_attribute("scan_output_directions", AttributeKind::integers)
        .regions(1)
        .infer(infer_scan)
        .verify(verified_by(scan_body_fits)),
});

}  // namespace
}  // namespace tenon
