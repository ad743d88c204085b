#include "vta/operators.hpp"

#include <algorithm>

#include <tenon/ir/op_def.hpp>

#include "vta/operators_internal.hpp"

namespace tenon::vta {
namespace {

const TypeSet kAccumulators("32-bit accumulators", [](ElementType e) { return e == kI32; });
const TypeSet kBytes("8-bit integers", [](ElementType e) { return e == kI8; });
const TypeSet kTiles("8-bit integers and accumulators", [](ElementType e) { return e == kI8 || e == kI32; });

OpDef& window(OpDef& def) {
  return def.required_attribute("kernel", AttributeKind::integers)
      .optional_attribute("strides", AttributeKind::integers)
      .optional_attribute("dilations", AttributeKind::integers)
      .optional_attribute("pads", AttributeKind::integers);
}
OpDef& micro_ops(OpDef& def) { return def.optional_attribute("uops", AttributeKind::integers); }

OpDef kernel() {
  OpDef def{Kernel::name()};
  def.summary("y = what its body gives: one operator of the model, on the device")
      .variadic_operands("in", "T", 0, false)
      .result("y", "Y")
      .types("T", kAnyTensor)
      .types("Y", kBytes)
      .required_attribute("of", AttributeKind::text)
      .optional_attribute("slots", AttributeKind::integer)
      .optional_attribute("weight_slots", AttributeKind::integer)
      .optional_attribute("tile", AttributeKind::integers)
      .optional_attribute("reduce", AttributeKind::integer)
      .attribute("keep_input", int64_t{0})
      .attribute("keep_weights", int64_t{0})
      .attribute("outer", "blocks")
      .one_of({"blocks", "places"})
      .optional_attribute("dram", AttributeKind::integers)
      .regions(1)
      .infer([](const InferContext& context) -> Result<std::vector<Type>> { return context.region_outputs(0); })
      .verify(verify_kernel);
  return def;
}

OpDef zero() {
  OpDef def{ZeroOp::name()};
  def.summary("accumulators of 0, in slot `slot` of ACC")
      .result("y", "A")
      .types("A", kAccumulators)
      .required_attribute("shape", AttributeKind::integers)
      .optional_attribute("slot", AttributeKind::integer)
      .optional_attribute("at", AttributeKind::integer)
      .traits(Trait::none)
      .infer([](const InferContext& context) -> Result<std::vector<Type>> {
        return std::vector<Type>{Type(kI32, Shape(context.attr<Attribute::Integers>("shape")))};
      })
      .verify(verify_zero);
  return micro_ops(def);
}

OpDef gemm() {
  OpDef def{GemmOp::name()};
  def.summary("y = acc + the sum over the window of x of products with w; without w, of x times `scale`")
      .operand("acc", "A")
      .operand("x", "B")
      .optional_operand("w", "B")
      .result("y", "A")
      .types("A", kAccumulators)
      .types("B", kBytes)
      .attribute("group", int64_t{1})
      .attribute("scale", int64_t{1})
      .optional_attribute("form", AttributeKind::text)
      .one_of({"dense", "diagonal", "uniform"})
      .attribute("groups", int64_t{1})
      .attribute("x_block", int64_t{0})
      .attribute("w_block", int64_t{0})
      .optional_attribute("blocks", AttributeKind::integer)
      .infer(same_as_operand(0))
      .verify(verify_gemm);
  return micro_ops(window(def));
}

OpDef alu() {
  OpDef def{Name(AluOpView::kName)};
  def.summary(
         "y = op(acc, immediate), or op(acc, the element of `vector` for its channel); a negative shift is to the left")
      .operand("acc", "A")
      .optional_operand("vector", "A")
      .result("y", "A")
      .types("A", kAccumulators)
      .required_attribute("op", AttributeKind::text)
      .one_of({std::begin(kAluNames), std::end(kAluNames)})
      .optional_attribute("immediate", AttributeKind::integer)
      .attribute("vector_block", int64_t{0})
      .infer(same_as_operand(0))
      .verify(verify_alu);
  return micro_ops(def);
}

OpDef max() {
  OpDef def{MaxOp::name()};
  def.summary("y = max(acc, the largest element of each window of x); padding is none")
      .operand("acc", "A")
      .operand("x", "B")
      .result("y", "A")
      .types("A", kAccumulators)
      .types("B", kBytes)
      .infer(same_as_operand(0))
      .verify(verify_max);
  return micro_ops(window(def));
}

OpDef narrow() {
  OpDef def{NarrowOp::name()};
  def.summary(
         "y = clip(acc >> shift, min, max) as 8 bits: OUT, where ACC is; without limits as it is, and no instruction")
      .operand("acc", "A")
      .result("y", "B")
      .types("A", kAccumulators)
      .types("B", kBytes)
      .attribute("shift", int64_t{0})
      .optional_attribute("min", AttributeKind::integer)
      .optional_attribute("max", AttributeKind::integer)
      .infer([](const InferContext& context) -> Result<std::vector<Type>> {
        TENON_TRY(acc, context.tensor(0));
        return std::vector<Type>{Type(kI8, std::move(acc.shape))};
      })
      .verify(verify_narrow);
  return micro_ops(def);
}

OpDef finish() {
  OpDef def{FinishOp::name()};
  def.summary("y, once all of it is stored: the end of a kernel's commands")
      .operand("y", "B")
      .result("done", "B")
      .types("B", kBytes)
      .infer(same_as_operand(0));
  return def;
}

OpDef view() {
  OpDef def{ViewOp::name()};
  def.summary("y = x under another shape with the same blocks")
      .operand("x", "B")
      .result("y", "B")
      .types("B", kBytes)
      .required_attribute("shape", AttributeKind::integers)
      .traits(Trait::pure | Trait::view)
      .infer([](const InferContext& context) -> Result<std::vector<Type>> {
        return std::vector<Type>{Type(kI8, Shape(context.attr<Attribute::Integers>("shape")))};
      })
      .verify(verify_view);
  return def;
}

OpDef stream() {
  OpDef def{StreamOp::name()};
  def.summary("y = what a stream of instructions stores; operands and y lie at the addresses `dram`")
      .variadic_operands("in", "T", 3, false)
      .result("y", "B")
      .types("T", kAnyTensor)
      .types("B", kBytes)
      .required_attribute("of", AttributeKind::text)
      .required_attribute("machine", AttributeKind::text)
      .required_attribute("dram", AttributeKind::integers)
      .required_attribute("shape", AttributeKind::integers)
      .infer([](const InferContext& context) -> Result<std::vector<Type>> {
        return std::vector<Type>{Type(kI8, Shape(context.attr<Attribute::Integers>("shape")))};
      })
      .verify(verify_stream);
  return def;
}

}  // namespace

Result<void> register_operators() {
  static const Result<void> done =
      register_ops({kernel(), zero(), gemm(), alu(), max(), narrow(), finish(), view(), stream()});
  return done;
}

const AttributeNames& names() {
  static const AttributeNames all;
  return all;
}

const Attribute::Integers& integers_of(const Attributes& attributes, Name name) {
  static const Attribute::Integers none;
  const Attribute* found = attributes.find(name);
  const auto* numbers = found ? found->get_if<Attribute::Integers>() : nullptr;
  return numbers ? *numbers : none;
}

int64_t integer_of(const Attributes& attributes, Name name, int64_t fallback) {
  const Attribute* found = attributes.find(name);
  const auto* number = found ? found->get_if<int64_t>() : nullptr;
  return number ? *number : fallback;
}

Extents extents_of(const Dims& dims) {
  Extents extents{.n = dims[0], .c = dims[1]};
  if (dims.size() > 2) extents.w = dims.back();
  if (dims.size() > 3) extents.h = dims[2];
  return extents;
}

WindowAttributes window_of(const Attributes& attributes) {
  const auto& kernel = integers_of(attributes, names().kernel);
  const auto& strides = integers_of(attributes, names().strides);
  const auto& dilations = integers_of(attributes, names().dilations);
  const auto& pads = integers_of(attributes, names().pads);
  const auto at = [](const Attribute::Integers& all, size_t i, int64_t fallback) {
    return i < all.size() ? all[i] : fallback;
  };
  const auto axis = [&](size_t i) {
    return WindowAxis{.kernel = at(kernel, i, 1),
                      .stride = at(strides, i, 1),
                      .dilation = at(dilations, i, 1),
                      .pad = at(pads, i, 0)};
  };
  return {axis(0), axis(1), at(pads, 2, 0), at(pads, 3, 0)};
}

void set_window(Attributes& attributes, const WindowAxis& rows, const WindowAxis& cols, const Extents& x,
                const Extents& y) {
  const auto behind = [](const WindowAxis& axis, int64_t input, int64_t output) {
    return std::max<int64_t>(0, (output - 1) * axis.stride + axis.extent() - axis.pad - input);
  };
  using Integers = Attribute::Integers;
  attributes.set(names().kernel, Integers{rows.kernel, cols.kernel});
  if (rows.stride != 1 || cols.stride != 1) attributes.set(names().strides, Integers{rows.stride, cols.stride});
  if (rows.dilation != 1 || cols.dilation != 1)
    attributes.set(names().dilations, Integers{rows.dilation, cols.dilation});
  const Integers pads{rows.pad, cols.pad, behind(rows, x.h, y.h), behind(cols, x.w, y.w)};
  if (pads != Integers(4, 0)) attributes.set(names().pads, pads);
}

}  // namespace tenon::vta
