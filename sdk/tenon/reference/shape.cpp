#include <tenon/ops/shape.hpp>

#include <algorithm>

#include <tenon/reference/elements.hpp>
#include <tenon/reference/evaluator.hpp>

namespace tenon {
namespace {

Result<void> shape_of(EvalContext& context) {
  TENON_TRY(out, context.output(0));
  const Dims& dims = context.tensor(0).dims();
  const int64_t start = context.attr<int64_t>("start", 0);
  const int64_t rank = static_cast<int64_t>(dims.size());
  const int64_t begin = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
  std::copy_n(dims.begin() + begin, out->size(), out->mutable_as<int64_t>().begin());
  return {};
}

Result<void> size(EvalContext& context) {
  TENON_TRY(out, context.output(0));
  out->mutable_as<int64_t>()[0] = context.tensor(0).size();
  return {};
}

// Reshape, Flatten, Squeeze, Unsqueeze: operand 0 under another shape.
Result<void> view(EvalContext& context) {
  TENON_TRY(dims, context.result_dims(0));
  TENON_TRY(viewed, context.tensor(0).reshaped(std::move(dims)));
  context.set_output(0, std::move(viewed));
  return {};
}

Result<void> expand(EvalContext& context) {
  TENON_TRY(in, spread(context.tensor(0)));
  TENON_TRY(out, SpreadOutput::open(context, 0));
  const Dims own = row_major_strides(in.dims());
  Dims strides(out.dims().size(), 0);
  const size_t added = strides.size() - own.size();
  for (size_t d = 0; d < own.size(); ++d) strides[added + d] = in.dim(d) == 1 ? 0 : own[d];
  copy_elements(context.parallel(), in, {0, strides}, out.tensor(), {0, row_major_strides(out.dims())}, out.dims());
  return out.close();
}

Result<void> constant_of_shape(EvalContext& context) {
  const Attribute* attribute = context.op().attributes().find("value");
  const Tensor* given = attribute ? attribute->get_if<Tensor>() : nullptr;
  TENON_TRY(value, spread(given ? *given : Tensor::scalar(0.0f)));
  TENON_TRY(out, SpreadOutput::open(context, 0));
  fill_elements(context.parallel(), value, 0, out.tensor());
  return out.close();
}

Result<void> range(EvalContext& context) {
  TENON_TRY(out, context.output(0));
  const Tensor &start = context.tensor(0), &delta = context.tensor(2);
  if (out->element().is_int()) {
    // Unsigned, so that the integers of every width wrap around.
    const uint64_t first = static_cast<uint64_t>(start.int_at(0)), step = static_cast<uint64_t>(delta.int_at(0));
    for (int64_t i = 0; i < out->size(); ++i) {
      out->set_int(i, static_cast<int64_t>(first + static_cast<uint64_t>(i) * step));
    }
  } else {
    const double first = start.double_at(0), step = delta.double_at(0);
    for (int64_t i = 0; i < out->size(); ++i) out->set_double(i, first + static_cast<double>(i) * step);
  }
  return {};
}

Result<void> eye_like(EvalContext& context) {
  TENON_TRY(out, context.output(0));
  if (out->element().is_string() || out->element().is_complex()) {
    return error(Code::unsupported, "EyeLike in ", out->element(), ": there are numbers and booleans only");
  }
  const int64_t rows = out->dim(0), columns = out->dim(1), k = context.attr<int64_t>("k", 0);
  std::fill_n(out->mutable_data(), out->bytes(), std::byte{0});
  for (int64_t i = 0; i < rows; ++i) {
    // In this form, a k near the limit of int64_t does not overflow.
    const bool inside = k >= -i && k < columns - i;
    if (inside) out->set_double(i * columns + i + k, 1);
  }
  return {};
}

const EvaluatorRegistration kShapeRegistered({
    {ShapeOf::kName, shape_of},
    {Size::kName, size},
    {Reshape::kName, view},
    {Flatten::kName, view},
    {Squeeze::kName, view},
    {Unsqueeze::kName, view},
    {Expand::kName, expand},
    {ConstantOfShape::kName, constant_of_shape},
    {Range::kName, range},
    {EyeLike::kName, eye_like},
});

}  // namespace
}  // namespace tenon
