#include "nvdla/evaluate.hpp"

#include <algorithm>

#include <tenon-ext/fused/convolution.hpp>
#include <tenon-ext/fused/dense.hpp>
#include <tenon-ext/fused/elementwise.hpp>
#include <tenon-ext/fused/pooling.hpp>
#include <tenon/ops/pooling.hpp>
#include <tenon/ops/window.hpp>
#include <tenon/reference/interpreter.hpp>

#include "nvdla/operators.hpp"
#include "nvdla/parts.hpp"

namespace tenon::nvdla {
namespace {

Datum operand_or_absent(EvalContext& context, size_t i) {
  return i < context.operand_count() && context.has_operand(i) ? context.datum(i) : Datum();
}

Attributes taken(const Op& op, std::initializer_list<const char*> names) {
  Attributes out;
  for (const char* name : names)
    if (const Attribute* found = op.attributes().find(name)) out.set(name, *found);
  return out;
}

Result<Datum> run_one(EvalContext& context, Name op, const std::vector<Datum>& operands, const Attributes& attributes) {
  TENON_TRY(made, evaluate(op, operands, attributes, 1, context.parallel()));
  return std::move(made[0]);
}

// For i8: the epilogue's clip_min and clip_max.
void set_clip(const Op& op, Attributes& attributes) {
  attributes.set("shift", op.attr<int64_t>("shift", 0));
  attributes.set("clip_min", static_cast<int64_t>(bound(op, "low").value_or(-128)));
  attributes.set("clip_max", static_cast<int64_t>(bound(op, "high").value_or(127)));
}

// For f16: applies the bounds one after the other, like Clip.
Result<void> clip_half(EvalContext& context, const Op& op, Tensor& y) {
  const auto low = bound(op, "low"), high = bound(op, "high");
  if (!low && !high) return {};
  auto values = y.mutable_as<f16>();
  context.parallel().run(y.size(), 4096, [&](int64_t begin, int64_t end) {
    for (f16& value : values.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin))) {
      const float x = static_cast<float>(value);
      if (low && x < *low) value = f16(*low);
      if (high && static_cast<float>(value) > *high) value = f16(*high);
    }
  });
  return {};
}

// ---- f16 products, in the order that operators.hpp states ----

struct HalfConv {
  int64_t channels, height, width;  // of x
  int64_t kernels, rows, columns, taps_y, taps_x;
  int64_t stride[2], dilation[2], pad[2];
  int64_t atomic_c;
  Parts parts;
  std::vector<float> x, w, bias;

  // One row of one output channel. `sums`: `columns` numbers.
  void row(int64_t kernel, int64_t y, float* sums) const {
    std::fill_n(sums, columns, 0.0f);
    const int64_t first = parts.first_channel(kernel), end = first + parts.group_channels;
    for (int64_t block = first / atomic_c * atomic_c; block < end; block += atomic_c)
      for (int64_t r = 0; r < taps_y; ++r)
        for (int64_t s = 0; s < taps_x; ++s)
          for (int64_t c = std::max(block, first); c < std::min(block + atomic_c, end); ++c)
            add_tap(kernel, y, r, s, c, c - first, sums);
    if (bias.empty()) return;
    for (int64_t i = 0; i < columns; ++i) sums[i] += bias[static_cast<size_t>(kernel)];
  }

 private:
  void add_tap(int64_t kernel, int64_t y, int64_t r, int64_t s, int64_t c, int64_t in_group, float* sums) const {
    const float factor = w[static_cast<size_t>(((kernel * parts.group_channels + in_group) * taps_y + r) * taps_x + s)];
    const int64_t from = y * stride[0] - pad[0] + r * dilation[0];
    const bool inside = from >= 0 && from < height;
    const int64_t channel = kernel / parts.kernels * parts.channels + c;
    const float* line = inside ? x.data() + (channel * height + from) * width : nullptr;
    for (int64_t i = 0; i < columns; ++i) {
      const int64_t at = i * stride[1] - pad[1] + s * dilation[1];
      sums[i] += (inside && at >= 0 && at < width ? line[at] : 0.0f) * factor;
    }
  }
};

std::vector<float> floats(const Tensor& tensor) {
  std::vector<float> out;
  out.reserve(static_cast<size_t>(tensor.size()));
  for (const f16 value : tensor.as<f16>()) out.push_back(static_cast<float>(value));
  return out;
}

Result<HalfConv> half_conv(const Op& op, const Tensor& x, const Tensor& w, const Datum& bias) {
  HalfConv conv{};
  const bool image = x.rank() == 4;
  conv.channels = x.dim(1), conv.kernels = w.dim(0);
  conv.height = image ? x.dim(2) : 1, conv.width = image ? x.dim(3) : 1;
  conv.taps_y = image ? w.dim(2) : 1, conv.taps_x = image ? w.dim(3) : 1;
  TENON_TRY(window, Window::of(op, 2, {conv.taps_y, conv.taps_x}));
  for (size_t axis = 0; axis < 2; ++axis) {
    conv.stride[axis] = window.strides[axis], conv.dilation[axis] = window.dilations[axis];
    conv.pad[axis] = window.pads[axis];
  }
  TENON_TRY(rows, window.output_extent(0, conv.height));
  TENON_TRY(columns, window.output_extent(1, conv.width));
  conv.rows = rows.value(), conv.columns = columns.value();
  conv.atomic_c = op.attr<int64_t>("atomic_c", 64);
  conv.parts = Parts::of(conv.channels, conv.kernels, op.attr<int64_t>("group", 1), op.attr<int64_t>("atom", 16));
  conv.x = floats(x), conv.w = floats(w);
  if (bias.is_tensor()) conv.bias = floats(bias.tensor());
  return conv;
}

Result<Datum> half_products(EvalContext& context) {
  const Tensor &x = context.tensor(0), &w = context.tensor(1);
  TENON_TRY(conv, half_conv(context.op(), x, w, operand_or_absent(context, 2)));
  Dims dims{x.dim(0), conv.kernels};
  if (x.rank() == 4) dims.insert(dims.end(), {conv.rows, conv.columns});
  TENON_TRY(y, Tensor::allocate(kF16, dims));
  f16* const out = y.mutable_as<f16>().data();
  context.parallel().run(conv.kernels * conv.rows, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> sums(static_cast<size_t>(conv.columns));
    for (int64_t i = begin; i < end; ++i) {
      conv.row(i / conv.rows, i % conv.rows, sums.data());
      for (int64_t j = 0; j < conv.columns; ++j) out[i * conv.columns + j] = f16(sums[static_cast<size_t>(j)]);
    }
  });
  return Datum(y);
}

Result<Datum> half_layer(EvalContext& context) {
  TENON_TRY(y, half_products(context));
  if (const Datum residual = operand_or_absent(context, 3); residual.is_tensor()) {
    TENON_TRY(sum, run_one(context, "Add", {y, residual}, {}));
    y = sum;
  }
  TENON_OK(clip_half(context, context.op(), y.tensor()));
  return y;
}

Result<Datum> integer_layer(EvalContext& context) {
  const Op& op = context.op();
  const bool image = context.tensor(0).rank() == 4;
  Attributes attributes = image ? taken(op, {"strides", "pads", "dilations", "group"}) : Attributes();
  set_clip(op, attributes);
  attributes.set("residual_shift", op.attr<int64_t>("residual_shift", 0));
  return run_one(context, image ? fused::QConv::name() : fused::QDense::name(),
                 {context.datum(0), context.datum(1), operand_or_absent(context, 2), operand_or_absent(context, 3)},
                 attributes);
}

bool is_half(EvalContext& context) { return context.tensor(0).element() == kF16; }

}  // namespace

Result<void> evaluate_conv(EvalContext& context) {
  const Op& op = context.op();
  TENON_TRY(y, is_half(context) ? half_layer(context) : integer_layer(context));
  if (const auto kernel = op.attr<Attribute::Integers>("pool_kernel"); !kernel.empty()) {
    Attributes pool{{"kernel_shape", kernel}};
    if (const Attribute* strides = op.attributes().find("pool_strides")) pool.set("strides", *strides);
    if (const Attribute* pads = op.attributes().find("pool_pads")) pool.set("pads", *pads);
    TENON_TRY(pooled, run_one(context, MaxPool::name(), {y}, pool));
    y = pooled;
  }
  context.set_output(0, std::move(y));
  return {};
}

Result<void> evaluate_sdp(EvalContext& context) {
  const Datum b = operand_or_absent(context, 1);
  if (!is_half(context)) {
    Attributes attributes = taken(context.op(), {"a_shift", "b_shift"});
    set_clip(context.op(), attributes);
    Datum other = b;
    if (!b.is_tensor()) {
      TENON_TRY(zeros, Tensor::zeros(kI8, context.tensor(0).dims()));
      other = Datum(zeros);
    }
    TENON_TRY(y, run_one(context, fused::QAdd::name(), {context.datum(0), other}, attributes));
    context.set_output(0, std::move(y));
    return {};
  }
  Datum y;
  if (b.is_tensor()) {
    TENON_TRY(sum, run_one(context, "Add", {context.datum(0), b}, {}));
    y = sum;
  } else {
    TENON_TRY(copy, context.tensor(0).clone());
    y = Datum(copy);
  }
  TENON_OK(clip_half(context, context.op(), y.tensor()));
  context.set_output(0, std::move(y));
  return {};
}

Result<void> evaluate_pdp(EvalContext& context) {
  const Op& op = context.op();
  const bool average = op.attr<std::string>("mode", "max") == "average";
  Attributes attributes = taken(op, {"kernel_shape", "strides", "pads"});
  Name generic = MaxPool::name();
  if (average && is_half(context)) {
    generic = AveragePool::name();
    attributes.set("count_include_pad", op.attr<int64_t>("count_include_pad", 0));
  } else if (average) {
    generic = fused::QAvgPool::name();
    set_clip(op, attributes);
    attributes.set("multiplier", op.attr<int64_t>("multiplier", 1));
  }
  TENON_TRY(y, run_one(context, generic, {context.datum(0)}, attributes));
  context.set_output(0, std::move(y));
  return {};
}

}  // namespace tenon::nvdla
