#include <tenon/ops/window_bounds.hpp>

#include <algorithm>

namespace tenon {
namespace {

bool is_same(const Window& window) {
  return window.auto_pad == AutoPad::same_upper || window.auto_pad == AutoPad::same_lower;
}

// Whether no window ever covers anything outside the input.
bool never_padded(const Window& window, size_t axis) {
  return !is_same(window) && !window.ceil_mode && window.pads[axis] <= 0 && window.pads[axis + window.rank()] <= 0;
}

// Whether windows skip no input, so that after clamping to the border the range ends at an input that is read.
bool gapless(const Window& window, size_t axis) {
  const Dim& kernel = window.kernel[axis];
  return window.dilations[axis] == 1 && kernel.is_static() && window.strides[axis] <= kernel.value();
}

}  // namespace

DimBounds window_reads(const Window& window, size_t axis, const BoundsQuery& query, const Dim& in) {
  const Dim kernel = window.effective_kernel(axis);
  if (!in.known() || !kernel.known()) return whole_dim(in, false);
  const Expr begin = window.pad_begin(axis, in.expr()), stride(window.strides[axis]);
  const BoxRange& out = query.box[axis + 2];
  const BoxRange range{out.min * stride - begin, out.max * stride - begin + kernel.expr() - Expr(1)};
  const bool exact = never_padded(window, axis) || gapless(window, axis);
  return clamped(range, in, exact);
}

DimBounds window_taps(const Window& window, size_t axis) {
  return whole_dim(window.kernel[axis], never_padded(window, axis));
}

Result<void> set_window_pads(const Window& window, const SubBoxQuery& query, size_t operand, SubBoxOp& op) {
  TENON_OK(require_elements(op, operand));
  Attribute::Integers pads(2 * window.rank());
  // With ceil_mode, the last window may end after the stated padding. What is there has no effect, and may as well be
  // padding, except for a mean that counts the padding.
  const bool rounds = window.ceil_mode && !is_same(window) &&
                      query.context.op().attr<int64_t>("count_include_pad", 0) != 0;
  bool rounds_up = false;
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    const int64_t in = query.context.type(operand).shape()[axis + 2].value();
    const int64_t kernel = window.effective_kernel(axis).value();
    const int64_t first = query.box[axis + 2].min * window.strides[axis] - window.pad_begin(axis, in);
    const int64_t last = query.box[axis + 2].max * window.strides[axis] - window.pad_begin(axis, in) + kernel - 1;
    const StaticRange& crop = op.operands[operand][axis + 2];
    pads[axis] = crop.min - first;
    pads[axis + window.rank()] = last - crop.max;
    const int64_t stated = in - 1 + window.pads[axis + window.rank()];
    if (!rounds || last <= stated) continue;
    if (stated - first + 1 < kernel)
      return error(Code::unsupported, "the part is one window of ", kernel, " at spatial axis ", axis, ", of which ",
                   last - stated, " lie behind the padding that the mean counts");
    pads[axis + window.rank()] = std::max<int64_t>(0, stated - crop.max);
    rounds_up = true;
  }
  op.attributes.set("auto_pad", "NOTSET");
  op.attributes.set("pads", pads);
  if (op.attributes.has("ceil_mode")) op.attributes.set("ceil_mode", rounds_up ? 1 : 0);
  return {};
}

}  // namespace tenon
