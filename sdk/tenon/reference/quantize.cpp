#include <tenon/ops/quantize.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <tenon/reference/carrier.hpp>

namespace tenon {
namespace {

// Elements of x that share one scale, or that have consecutive scales.
struct ScaledRun {
  int64_t first;  // index in x
  int64_t scale;  // index of its scale; element first + i has scale + i * step
  int64_t step;
};

// Calls body(run, count) for all elements, in parallel.
template <class Body>
void for_scaled_runs(ParallelFor& parallel, const ScaleLayout& layout, Body body) {
  // One tensor-wide run is divided by its elements, many rows are divided by rows.
  const int64_t rows = layout.outer * layout.extent;
  const auto run = [&](int64_t row, int64_t begin, int64_t end) {
    const int64_t o = row / layout.extent, d = row % layout.extent;
    const int64_t scale = o * layout.outer_step + d / layout.block * layout.axis_step + begin * layout.inner_step;
    body(ScaledRun{row * layout.inner + begin, scale, layout.inner_step}, end - begin);
  };
  if (rows == 1) {
    parallel.run(layout.inner, kTaskElements, [&](int64_t begin, int64_t end) { run(0, begin, end); });
  } else {
    parallel.run(rows, grain_of(layout.inner), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) run(row, 0, layout.inner);
    });
  }
}

Result<ScaleLayout> layout_of(EvalContext& context) {
  return scale_layout(context.op(), context.tensor(0).dims(), context.tensor(1).dims());
}

// The zero points, or zeros with the shape of the scales.
Result<Tensor> zero_points(EvalContext& context, ElementType element) {
  if (context.has_operand(2)) return to_element(context.tensor(2), element);
  return Tensor::zeros(element, context.tensor(1).dims());
}

// ---- QuantizeLinear ----

// Calls body(round), where round rounds a quotient to the precision of the division.
template <class Body>
void with_rounding(ElementType precision, Body body) {
  if (precision == kF32)
    body([](double x) { return static_cast<double>(static_cast<float>(x)); });
  else if (precision == kF16)
    body([](double x) { return static_cast<double>(static_cast<float>(f16(x))); });
  else if (precision == kBF16)
    body([](double x) { return static_cast<double>(static_cast<float>(bf16(x))); });
  else
    body([](double x) { return x; });
}

ElementType precision_of(EvalContext& context) {
  const Type asked = context.attr<Type>("precision");
  return asked.is_tensor() ? asked.element() : context.tensor(1).element();
}

// out = saturate(round(x / scale) + zero) to integers in [least, greatest].
template <class T, class Out>
void quantize_ints(EvalContext& context, const ScaleLayout& layout, const T* x, const double* scales,
                   const double* zeros, ElementType element, Out* out) {
  const int bits = element.bits();
  const double least = element.is_signed_int() ? -std::ldexp(1.0, bits - 1) : 0;
  const double greatest = std::ldexp(1.0, element.is_signed_int() ? bits - 1 : bits) - 1;
  with_rounding(precision_of(context), [&](auto rounded) {
    for_scaled_runs(context.parallel(), layout, [&](const ScaledRun& run, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        const double scale = scales[run.scale + i * run.step], zero = zeros[run.scale + i * run.step];
        const double quotient = static_cast<double>(x[run.first + i]) / scale;
        const double integer = std::rint(rounded(quotient));
        const double value = std::isnan(integer) ? zero : std::clamp(integer + zero, least, greatest);
        out[run.first + i] = static_cast<Out>(value);
      }
    });
  });
}

template <class T>
Result<void> quantize_to_ints(EvalContext& context, const ScaleLayout& layout, const T* x, const double* scales,
                              const double* zeros, Tensor& y) {
  const auto into = [&]<class Out>(Tensor& out) {
    quantize_ints(context, layout, x, scales, zeros, y.element(), out.mutable_as<Out>().data());
  };
  if (y.element() == kU8) return into.template operator()<uint8_t>(y), Result<void>();
  if (y.element() == kI8) return into.template operator()<int8_t>(y), Result<void>();
  TENON_TRY(wide, Tensor::allocate(kI64, y.dims()));
  into.template operator()<int64_t>(wide);
  return store_converted(y, wide);
}

template <class T>
Result<void> quantize_to_floats(EvalContext& context, const ScaleLayout& layout, const T* x, const double* scales,
                                Tensor& y) {
  TENON_TRY(quotients, Tensor::allocate(kF64, y.dims()));
  double* out = quotients.mutable_as<double>().data();
  with_rounding(precision_of(context), [&](auto rounded) {
    for_scaled_runs(context.parallel(), layout, [&](const ScaledRun& run, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        out[run.first + i] = rounded(static_cast<double>(x[run.first + i]) / scales[run.scale + i * run.step]);
      }
    });
  });
  TENON_TRY(narrow, convert(quotients, y.element(), {.saturate = context.attr<int64_t>("saturate", 1) != 0}));
  return store_converted(y, narrow);
}

Result<void> quantize_linear(EvalContext& context) {
  TENON_TRY(layout, layout_of(context));
  TENON_TRY(scales, to_element(context.tensor(1), kF64));
  TENON_TRY(zeros, zero_points(context, kF64));
  TENON_TRY(y, context.output(0));
  TENON_TRY(x, to_element(context.tensor(0), context.tensor(0).element() == kF32 ? kF32 : kF64));
  return with_float_carrier(x.element(), [&]<class T>() {
    const double* scale = scales.as<double>().data();
    if (y->element().is_float()) return quantize_to_floats(context, layout, x.as<T>().data(), scale, *y);
    return quantize_to_ints(context, layout, x.as<T>().data(), scale, zeros.as<double>().data(), *y);
  });
}

// ---- DequantizeLinear ----

// out = (x - zero) * scale; X is the storage of x, or a carrier.
template <class X, class T>
void dequantize(EvalContext& context, const ScaleLayout& layout, const X* x, const double* scales, const double* zeros,
                T* out) {
  for_scaled_runs(context.parallel(), layout, [&](const ScaledRun& run, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = run.scale + i * run.step;
      out[run.first + i] = static_cast<T>((static_cast<double>(x[run.first + i]) - zeros[at]) * scales[at]);
    }
  });
}

Result<void> dequantize_linear(EvalContext& context) {
  TENON_TRY(layout, layout_of(context));
  TENON_TRY(scales, to_element(context.tensor(1), kF64));
  TENON_TRY(zeros, zero_points(context, kF64));
  TENON_TRY(y, CarrierOutput::open(context, 0));
  const Tensor& given = context.tensor(0);
  const bool bytes = given.element() == kU8 || given.element() == kI8;
  TENON_TRY(x, bytes ? Result<Tensor>(given) : to_element(given, kF64));
  with_float_carrier(y.carrier(), [&]<class T>() {
    const auto from = [&]<class X>() {
      dequantize(context, layout, x.as<X>().data(), scales.as<double>().data(), zeros.as<double>().data(), y.data<T>());
    };
    if (x.element() == kU8)
      from.template operator()<uint8_t>();
    else if (x.element() == kI8)
      from.template operator()<int8_t>();
    else
      from.template operator()<double>();
  });
  return y.close();
}

// ---- DynamicQuantizeLinear ----

Result<void> dynamic_quantize_linear(EvalContext& context) {
  TENON_TRY(x, to_element(context.tensor(0), kF32));
  float least = 0, greatest = 0;
  for (const float value : x.as<float>()) {
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  const float scale = greatest > least ? (greatest - least) / 255 : 1;
  const float place = std::rint(-least / scale);  // NaN for an infinite range
  const float zero = std::isnan(place) ? 0 : std::clamp(place, 0.0f, 255.0f);
  TENON_TRY(y, context.output(0));
  TENON_TRY(y_scale, context.output(1));
  TENON_TRY(y_zero_point, context.output(2));
  y_scale->mutable_as<float>()[0] = scale;
  y_zero_point->mutable_as<uint8_t>()[0] = static_cast<uint8_t>(zero);
  map_elements(context.parallel(), x.as<float>().data(), y->mutable_as<uint8_t>().data(), x.size(), [=](float value) {
    const float integer = std::rint(value / scale) + zero;
    return static_cast<uint8_t>(std::isnan(integer) ? zero : std::clamp(integer, 0.0f, 255.0f));
  });
  return {};
}

const EvaluatorRegistration kQuantizeRegistered({
    {QuantizeLinear::kName, quantize_linear},
    {DequantizeLinear::kName, dequantize_linear},
    {DynamicQuantizeLinear::kName, dynamic_quantize_linear},
});

}  // namespace
}  // namespace tenon
