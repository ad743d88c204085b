#include <tenon-ext/quant/qlinear.hpp>

#include <algorithm>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/quantize.hpp>

namespace tenon::quant {
namespace {

constexpr std::string_view kDomain = "com.microsoft.";
constexpr TypeSet kBytes("i8 and u8", [](ElementType e) { return e == kI8 || e == kU8; });
constexpr TypeSet kSums("i32", [](ElementType e) { return e == kI32; });
constexpr TypeSet kScales("f32", [](ElementType e) { return e == kF32; });
constexpr TypeSet kResults("i8, u8 and f32", [](ElementType e) { return e == kI8 || e == kU8 || e == kF32; });

using Values = Result<std::vector<Value*>>;

// Operand `i` as reals, by the two operands after it.
Result<Value*> reals(Builder& builder, const Op& op, size_t i, int64_t axis = 1) {
  return builder.op(DequantizeLinear::name(), {op.operand(i), op.operand(i + 1), op.operand(i + 2)}, {{"axis", axis}});
}

// Converts back to integers, of the type of `like` if there is no zero point.
Values integers(Builder& builder, Value* real, Value* scale, Value* zero_point, const Value* like) {
  if (!zero_point) zero_point = builder.constant_scalar(like->type().element(), 0);
  TENON_TRY(y, builder.op(QuantizeLinear::name(), {real, scale, zero_point}));
  return std::vector<Value*>{y};
}

// The attributes that the float operator also has.
Attributes without_layout(const Op& op) {
  Attributes attributes = op.attributes();
  attributes.erase("channels_last");
  return attributes;
}

Values decompose_binary(const char* of_reals, Builder& builder, const Op& op) {
  TENON_TRY(a, reals(builder, op, 0));
  TENON_TRY(b, reals(builder, op, 3));
  TENON_TRY(c, builder.op(of_reals, {a, b}));
  return integers(builder, c, op.operand(6), op.operand(7), op.operand(0));
}

Values decompose_unary(const char* of_reals, Builder& builder, const Op& op) {
  TENON_TRY(x, reals(builder, op, 0));
  TENON_TRY(y, builder.op(of_reals, {x}, without_layout(op)));
  return integers(builder, y, op.operand(3), op.operand(4), op.operand(0));
}

Values decompose_concat(Builder& builder, const Op& op) {
  std::vector<Value*> parts;
  for (size_t i = 2; i + 2 < op.operand_count(); i += 3) {
    TENON_TRY(part, reals(builder, op, i));
    parts.push_back(part);
  }
  TENON_TRY(y, builder.op("Concat", parts, op.attributes()));
  return integers(builder, y, op.operand(0), op.operand(1), op.operand(2));
}

Values decompose_gemm(Builder& builder, const Op& op) {
  TENON_TRY(a, reals(builder, op, 0));
  TENON_TRY(b, reals(builder, op, 3, op.attr<int64_t>("transB", 0) != 0 ? 0 : 1));
  Value* c = nullptr;
  if (op.operand(6)) {
    TENON_TRY(scale, builder.op("Mul", {op.operand(1), op.operand(4)}));
    TENON_TRY(bias, builder.op(DequantizeLinear::name(), {op.operand(6), scale}, {{"axis", int64_t{0}}}));
    c = bias;
  }
  TENON_TRY(y, builder.op("Gemm", {a, b, c}, op.attributes()));
  if (!op.operand(7)) return std::vector<Value*>{y};
  return integers(builder, y, op.operand(7), op.operand(8), op.operand(0));
}

// The result's type is that of the decomposition, which is built in a separate graph.
InferFn as_decomposed(const DecomposeFn& decompose) {
  return [decompose](const InferContext& context) -> Result<std::vector<Type>> {
    if (const VerifyFn& verify = context.op().def()->verify_fn()) TENON_OK(verify(context.op()));
    Graph scratch("scratch");
    std::vector<Value*> operands;
    for (size_t i = 0; i < context.operand_count(); ++i) {
      operands.push_back(context.has_operand(i) ? scratch.body().add_input(str("x", i), context.type(i)) : nullptr);
      if (operands.back() && !context.type(i).is_tensor()) return std::vector<Type>{Type()};
    }
    Builder builder(scratch.body());
    const Op& op = builder.create(context.op().name(), operands, 1, context.op().attributes());
    TENON_TRY(results, decompose(builder, op));
    return std::vector<Type>{results[0]->type()};
  };
}

// Checks required operands that follow optional ones.
Result<void> require(const Op& op, std::initializer_list<size_t> operands) {
  for (const size_t i : operands) {
    if (!op.operand(i)) return error(Code::invalid_argument, "operand ", i, " of ", op.describe(), " is not there");
  }
  return {};
}

Result<void> verify_pool(const Op& op) {
  TENON_OK(require(op, {3}));
  if (op.attr<int64_t>("channels_last", 0) == 0) return {};
  return error(Code::unsupported, op.describe(), " has channels_last; images are [N, C, ...]");
}

Result<void> verify_triples(const Op& op) {
  if (op.operand_count() % 3 == 2) return {};
  return error(Code::invalid_argument, op.describe(), " has ", op.operand_count(),
               " operands; 2 and three for each part are wanted");
}

OpDef qlinear(const char* name, const char* summary, const DecomposeFn& decompose) {
  OpDef def{Name(str(kDomain, name))};
  def.summary(summary)
      .traits(Trait::pure)
      .infer(as_decomposed(decompose))
      .bounds({[](const BoundsQuery& query) -> Result<Bounds> { return all_whole(query, false); }, runs_as_it_is()})
      .decompose(decompose);
  return def;
}
DecomposeFn bound_to(Values (*decompose)(const char*, Builder&, const Op&), const char* of_reals) {
  return [decompose, of_reals](Builder& builder, const Op& op) { return decompose(of_reals, builder, op); };
}

OpDef binary(const char* name, const char* summary, const char* of_reals) {
  return qlinear(name, summary, bound_to(decompose_binary, of_reals))
      .operand("A", "T")
      .operand("A_scale", "TS")
      .optional_operand("A_zero_point", "T")
      .optional_operand("B", "T")
      .optional_operand("B_scale", "TS")
      .optional_operand("B_zero_point", "T")
      .optional_operand("C_scale", "TS")
      .optional_operand("C_zero_point", "T")
      .result("C", "T")
      .verify([](const Op& op) {
        return require(op, {3, 4, 6});
      })
      .types("T", kBytes)
      .types("TS", kScales);
}
OpDef unary(const char* name, const char* summary, const char* of_reals) {
  return qlinear(name, summary, bound_to(decompose_unary, of_reals))
      .operand("X", "T")
      .operand("X_scale", "TS")
      .optional_operand("X_zero_point", "T")
      .optional_operand("Y_scale", "TS")
      .optional_operand("Y_zero_point", "T")
      .result("Y", "T")
      .verify([](const Op& op) { return require(op, {3}); })
      .types("T", kBytes)
      .types("TS", kScales);
}
OpDef pool(const char* name, const char* summary, const char* of_reals) {
  return unary(name, summary, of_reals).attribute("channels_last", int64_t{0}).verify(verify_pool);
}

OpDef average_pool() {
  return pool("QLinearAveragePool", "Y = the means of windows of quantised X, quantised again", "AveragePool")
      .attribute("auto_pad", "NOTSET")
      .attribute("ceil_mode", int64_t{0})
      .attribute("count_include_pad", int64_t{0})
      .required_attribute("kernel_shape", AttributeKind::integers)
      .optional_attribute("pads", AttributeKind::integers)
      .optional_attribute("strides", AttributeKind::integers);
}

OpDef concat() {
  return qlinear("QLinearConcat", "Y = quantised parts one behind the other along axis, quantised alike",
                 decompose_concat)
      .operand("Y_scale", "TS")
      .operand("Y_zero_point", "T")
      .variadic_operands("inputs", "V", 3, false)
      .result("Y", "T")
      .types("T", kBytes)
      .types("V", kAnyType)
      .types("TS", kScales)
      .required_attribute("axis", AttributeKind::integer)
      .verify(verify_triples);
}

OpDef gemm() {
  return qlinear("QGemm", "Y = alpha * A * B + C of quantised A and B, quantised again where there is y_scale",
                 decompose_gemm)
      .operand("A", "TA")
      .operand("a_scale", "TS")
      .operand("a_zero_point", "TA")
      .operand("B", "TB")
      .operand("b_scale", "TS")
      .operand("b_zero_point", "TB")
      .optional_operand("C", "TC")
      .optional_operand("y_scale", "TS")
      .optional_operand("y_zero_point", "TY")
      .result("Y", "TR")
      .types("TA", kBytes)
      .types("TB", kBytes)
      .types("TC", kSums)
      .types("TY", kBytes)
      .types("TR", kResults)
      .types("TS", kScales)
      .attribute("alpha", 1.0f)
      .attribute("transA", int64_t{0})
      .attribute("transB", int64_t{0});
}

const OpRegistration kQlinearRegistered({
    binary("QLinearAdd", "C = A + B of quantised numbers, quantised again", "Add"),
    binary("QLinearMul", "C = A * B of quantised numbers, quantised again", "Mul"),
    unary("QLinearSigmoid", "Y = 1 / (1 + exp(-X)) of quantised X, quantised again", "Sigmoid"),
    unary("QLinearLeakyRelu", "Y = X, or alpha * X below 0, of quantised X, quantised again", "LeakyRelu")
        .attribute("alpha", 0.01f),
    pool("QLinearGlobalAveragePool", "Y = the mean of each image of quantised X, quantised again", "GlobalAveragePool"),
    average_pool(),
    concat(),
    gemm(),
});

}  // namespace

bool is_qlinear(const Op& op) {
  return op.name().str().starts_with(kDomain) && op.def() && op.def()->decompose_fn() &&
         op.name().str()[kDomain.size()] == 'Q';
}

}  // namespace tenon::quant
