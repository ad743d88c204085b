#include <algorithm>

#include <tenon-ext/fused/convolution.hpp>
#include <tenon-ext/fused/dense.hpp>
#include <tenon-ext/fused/epilogue.hpp>
#include <tenon-ext/quant/accumulator_internal.hpp>
#include <tenon-ext/quant/float_forms_internal.hpp>
#include <tenon-ext/quant/operators.hpp>
#include <tenon-ext/quant/scales.hpp>
#include <tenon/ops/convolution.hpp>
#include <tenon/ops/matmul.hpp>
#include <tenon/ops/window.hpp>

namespace tenon::quant {
namespace {

using Found = Result<std::optional<Accumulator>>;

Found nothing(std::string* why, const char* reason) {
  if (why) *why = reason;
  return std::optional<Accumulator>();
}

// A residual of 8 bits is then below 2^28 in the accumulator: half of what products and a bias may use.
constexpr int64_t kMostResidualShift = 20;

// Adds the weights, their exponent, and the bias with the exponent of the products. `bias` may be null.
Result<void> put_weights(Builder& builder, Accumulator& accumulator, const Quantised& x, const Tensor& weights,
                         const Tensor* bias, const std::string& name) {
  const int64_t exponent = weights_exponent(weights);
  TENON_TRY(integers, as_i8(weights, exponent));
  accumulator.x = x.value;
  accumulator.exponent = x.exponent + exponent;
  accumulator.w = builder.constant(std::move(integers), name);
  if (!bias) return {};
  TENON_TRY(sums, as_i32(*bias, accumulator.exponent));
  accumulator.bias = builder.constant(std::move(sums), name.empty() ? "" : str(name, ".bias"));
  return {};
}

Found of_convolution(Builder& builder, Op& op, std::string* why) {
  const auto x = quantised(op.operand(0));
  const Tensor *weights = float_constant(op.operand(1)), *bias = float_constant(op.operand(2));
  if (!x) return nothing(why, "its operand is not quantised");
  if (!weights || (op.operand(2) && !bias)) return nothing(why, "its weights or its bias are no f32 constants");
  std::vector<Dim> kernel;
  for (size_t d = 2; d < weights->dims().size(); ++d) kernel.emplace_back(weights->dim(d));
  TENON_TRY(window, explicit_window(op, std::move(kernel), op.operand(0)->type().shape(), op.result()->type().shape()));
  if (!window) return nothing(why, "its padding depends on extents that are not known");
  Accumulator accumulator{.op = fused::QConv::name(), .window = *std::move(window)};
  accumulator.window.set("group", op.attr<int64_t>("group", 1));
  TENON_OK(put_weights(builder, accumulator, *x, *weights, bias, op.operand(1)->name()));
  return std::optional<Accumulator>(std::move(accumulator));
}

// [K, M] as [M, K], or unchanged, times `factor`.
Result<Tensor> dense_weights(const Tensor& weights, bool transpose, float factor) {
  TENON_TRY(out, Tensor::allocate(kF32, transpose ? Dims{weights.dim(1), weights.dim(0)} : weights.dims()));
  const auto from = weights.as<float>();
  const auto to = out.mutable_as<float>();
  const int64_t rows = out.dim(0), columns = out.dim(1);
  for (int64_t i = 0; i < rows * columns; ++i) {
    to[i] = factor * from[transpose ? i % columns * rows + i / columns : i];
  }
  return out;
}

// One number per output of `outputs`, times `factor`; nullopt for a bias that differs between rows.
Result<std::optional<Tensor>> dense_bias(const Tensor& bias, int64_t outputs, float factor) {
  const bool is_row = bias.size() == outputs && (bias.rank() == 0 || bias.dims().back() == outputs);
  if (!is_row && bias.size() != 1) return std::optional<Tensor>();
  TENON_TRY(out, Tensor::allocate(kF32, {outputs}));
  for (int64_t i = 0; i < outputs; ++i) out.mutable_as<float>()[i] = factor * bias.as<float>()[is_row ? i : 0];
  return std::optional<Tensor>(std::move(out));
}

Found of_product(Builder& builder, Op& op, std::string* why) {
  const bool is_gemm = isa<Gemm>(op);
  const auto x = quantised(op.operand(0));
  const Tensor *given = float_constant(op.operand(1)), *given_bias = float_constant(op.operand(2));
  if (!x) return nothing(why, "its operand is not quantised");
  if (!given || (op.operand(2) && !given_bias)) return nothing(why, "its weights or its bias are no f32 constants");
  const Shape& shape = op.operand(0)->type().shape();
  if (!shape.ranked() || shape.rank() != 2 || given->rank() != 2) return nothing(why, "its operands are no matrices");
  if (op.attr<int64_t>("transA", 0) != 0) return nothing(why, "its first operand is transposed");
  const bool transpose = !is_gemm || op.attr<int64_t>("transB", 0) == 0;
  TENON_TRY(weights, dense_weights(*given, transpose, op.attr<float>("alpha", 1)));
  std::optional<Tensor> bias;
  if (given_bias) {
    TENON_TRY(row, dense_bias(*given_bias, weights.dim(0), op.attr<float>("beta", 1)));
    if (!row) return nothing(why, "its bias is no row");
    bias = std::move(row);
  }
  Accumulator accumulator{.op = fused::QDense::name()};
  TENON_OK(put_weights(builder, accumulator, *x, weights, bias ? &*bias : nullptr, op.operand(1)->name()));
  return std::optional<Accumulator>(std::move(accumulator));
}

// For MatMul + a constant row.
Found of_biased_product(Builder& builder, Op& op, std::string* why) {
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const Tensor* bias = float_constant(op.operand(1 - side));
    if (!bias || !op.operand(side)->has_one_use()) continue;
    const auto product = producer_as<MatMul>(op.operand(side));
    if (!product) continue;
    TENON_TRY(found, of_product(builder, product.op(), why));
    if (!found) return found;
    TENON_TRY(row, dense_bias(*bias, found->w->type().shape()[0].value(), 1));
    if (!row) return nothing(why, "its bias is no row");
    TENON_TRY(sums, as_i32(*row, found->exponent));
    found->bias = builder.constant(std::move(sums));
    return found;
  }
  return nothing(why, "it is no sum of a product and a constant");
}

// The one reader of `value` reads it as operand 0.
bool is_clean(const Op& op) {
  const auto epilogue = fused::Epilogue::of(op);
  return !op.operand(3) && epilogue.clip_min == -128 && epilogue.clip_max == 127;
}

std::optional<Accumulator> reopened(const Value* real) {
  const auto integers = quantised(real);
  const Op* op = integers && integers->value->has_one_use() ? integers->value->producer() : nullptr;
  if (!op || (!isa<fused::QConv>(op) && !isa<fused::QDense>(op)) || !is_clean(*op)) return std::nullopt;
  Accumulator accumulator{op->name(),     op->operand(0),   op->operand(1),
                          op->operand(2), op->attributes(), integers->exponent - fused::Epilogue::of(*op).shift};
  accumulator.window.erase("shift");
  return accumulator;
}

}  // namespace

std::optional<Quantised> quantised(const Value* real) {
  const auto back = producer_as<Dequantize>(real);
  if (!back) return std::nullopt;
  return Quantised{back.input(), back.exponent()};
}

std::optional<ClipRange> clip_of(const Op& op) {
  if (op.is("Relu")) return ClipRange{.least = 0};
  if (!op.is("Clip")) return std::nullopt;
  ClipRange clip;
  const auto end = [&](size_t operand, double& to) {
    const Tensor* tensor = constant_of(op.operand(operand));
    if (tensor && tensor->size() == 1) to = tensor->double_at(0);
    return !op.operand(operand) || tensor;
  };
  if (!end(1, clip.least) || !end(2, clip.greatest)) return std::nullopt;
  return clip;
}

void set_epilogue(Attributes& attributes, int64_t shift, const ClipRange& clip, int64_t exponent) {
  const double step = std::ldexp(1.0, static_cast<int>(exponent));
  const auto integer = [&](double real) {
    return static_cast<int64_t>(std::clamp(std::nearbyint(real / step), -128.0, 127.0));
  };
  const int64_t least = integer(clip.least), greatest = std::max(least, integer(clip.greatest));
  if (shift != 0) attributes.set("shift", shift);
  if (least != -128) attributes.set("clip_min", least);
  if (greatest != 127) attributes.set("clip_max", greatest);
}

Result<std::optional<Accumulator>> accumulator_of(Builder& builder, Value* real, std::string* why) {
  if (!real->producer()) return nothing(why, "it is an input");
  if (!real->has_one_use()) return nothing(why, "several read its result before it is rounded");
  TENON_TRY(made, accumulator_under(builder, *real->producer(), why));
  return made ? made : reopened(real);
}

Result<std::optional<Accumulator>> accumulator_under(Builder& builder, Op& op, std::string* why) {
  if (isa<Conv>(op)) return of_convolution(builder, op, why);
  if (isa<Gemm>(op) || isa<MatMul>(op)) return of_product(builder, op, why);
  if (op.is("Add")) return of_biased_product(builder, op, why);
  return nothing(why, "it is no product");
}

bool takes_residual(const Accumulator& accumulator, const Quantised& residual) {
  const int64_t shift = residual.exponent - accumulator.exponent;
  return shift >= 0 && shift <= kMostResidualShift;
}

Result<Quantised> finish(Builder& builder, const Accumulator& accumulator, const std::optional<Quantised>& residual,
                         const ClipRange& clip, int64_t exponent) {
  const int64_t shift = std::clamp<int64_t>(exponent - accumulator.exponent, 0, fused::kMostShift);
  exponent = accumulator.exponent + shift;
  Attributes attributes = accumulator.window;
  std::vector<Value*> operands{accumulator.x, accumulator.w};
  if (accumulator.bias || residual) operands.push_back(accumulator.bias);
  if (residual) {
    operands.push_back(residual->value);
    attributes.set("residual_shift", residual->exponent - accumulator.exponent);
  }
  set_epilogue(attributes, shift, clip, exponent);
  TENON_TRY(y, builder.op(accumulator.op, operands, std::move(attributes)));
  return Quantised{y, exponent};
}

Result<std::optional<Attributes>> explicit_window(const Op& op, std::vector<Dim> kernel, const Shape& x,
                                                  const Shape& y) {
  const size_t rank = kernel.size();
  TENON_TRY(window, Window::of(op, rank, std::move(kernel)));
  Attribute::Integers pads = window.pads;
  if (window.auto_pad != AutoPad::notset || window.ceil_mode) {
    if (!x.static_dims() || !y.static_dims()) return std::optional<Attributes>();
    for (size_t axis = 0; axis < rank; ++axis) {
      const int64_t in = x[axis + 2].value(), out = y[axis + 2].value();
      const int64_t reach = (out - 1) * window.strides[axis] + window.effective_kernel(axis).value();
      pads[axis] = window.pad_begin(axis, in);
      pads[axis + rank] = std::max<int64_t>(0, reach - pads[axis] - in);
    }
  }
  return std::optional<Attributes>(
      Attributes{{"strides", window.strides}, {"pads", pads}, {"dilations", window.dilations}});
}

}  // namespace tenon::quant
