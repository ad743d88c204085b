#include <tenon/ops/window.hpp>

#include <algorithm>

namespace tenon {
namespace {

Result<AutoPad> auto_pad_of(const Op& op) {
  const auto text = op.attr<std::string>("auto_pad", "NOTSET");
  if (text == "NOTSET" || text.empty()) return AutoPad::notset;
  if (text == "SAME_UPPER") return AutoPad::same_upper;
  if (text == "SAME_LOWER") return AutoPad::same_lower;
  if (text == "VALID") return AutoPad::valid;
  return error(Code::invalid_argument, "auto_pad of ", op.describe(), " is '", text,
               "', it must be NOTSET, SAME_UPPER, SAME_LOWER or VALID");
}

// The bound on a window's numbers, so that products and sums of them fit int64_t.
constexpr int64_t kMostOfWindow = INT32_MAX;

Result<void> within_bounds(const Op& op, const Window& window) {
  const auto check = [&](const char* what, int64_t value, int64_t least) -> Result<void> {
    if (value >= least && value <= kMostOfWindow) return {};
    return error(Code::invalid_argument, what, " of ", op.describe(), " holds ", value, ", which is outside [", least,
                 ", ", kMostOfWindow, "]");
  };
  for (const int64_t value : window.strides) TENON_OK(check("strides", value, 1));
  for (const int64_t value : window.dilations) TENON_OK(check("dilations", value, 1));
  for (const int64_t value : window.pads) TENON_OK(check("pads", value, -kMostOfWindow));
  for (const Dim& extent : window.kernel) {
    if (extent.is_static()) TENON_OK(check("the window", extent.value(), 0));
  }
  return {};
}

Dim smaller(const Dim& a, const Dim& b) {
  if (!a.known() || !b.known()) return {};
  return Dim(min(a.expr(), b.expr()));
}

}  // namespace

Result<Dims> integers_attribute(const Op& op, Name name, size_t count, int64_t fallback, int64_t least) {
  auto values = op.attr<Attribute::Integers>(name);
  if (values.empty()) values.assign(count, fallback);
  if (values.size() != count) {
    return error(Code::invalid_argument, name, " of ", op.describe(), " has ", values.size(),
                 " numbers, its input needs ", count);
  }
  for (const int64_t value : values) {
    if (value < least) {
      return error(Code::invalid_argument, name, " of ", op.describe(), " holds ", value, ", the least is ", least);
    }
  }
  return values;
}

Result<Window> Window::of(const Op& op, size_t spatial_rank, std::vector<Dim> kernel) {
  Window window;
  TENON_TRY(auto_pad, auto_pad_of(op));
  TENON_TRY(strides, integers_attribute(op, "strides", spatial_rank, 1, 1));
  TENON_TRY(dilations, integers_attribute(op, "dilations", spatial_rank, 1, 1));
  TENON_TRY(pads, integers_attribute(op, "pads", 2 * spatial_rank, 0, INT64_MIN));
  window.auto_pad = auto_pad;
  window.ceil_mode = op.attr<int64_t>("ceil_mode", 0) != 0;
  window.strides = std::move(strides);
  window.dilations = std::move(dilations);
  window.pads = std::move(pads);
  if (auto_pad != AutoPad::notset) std::fill(window.pads.begin(), window.pads.end(), 0);
  window.kernel = std::move(kernel);
  if (op.attributes().has("kernel_shape")) {
    TENON_TRY(stated, integers_attribute(op, "kernel_shape", spatial_rank, 1, 1));
    for (size_t i = 0; i < spatial_rank; ++i) {
      Dim& extent = window.kernel[i];
      if (extent.is_static() && extent.value() != stated[i]) {
        return error(Code::invalid_argument, "kernel_shape of ", op.describe(), " says ", stated[i], " at axis ", i,
                     ", its weights are ", extent.value(), " there");
      }
      extent = Dim(stated[i]);
    }
  }
  TENON_OK(within_bounds(op, window));
  return window;
}

Result<Window> Window::of(const Op& op, size_t spatial_rank) {
  if (op.attr<Attribute::Integers>("kernel_shape").empty() && spatial_rank > 0) {
    return error(Code::invalid_argument, op.describe(), " needs the attribute kernel_shape");
  }
  return of(op, spatial_rank, std::vector<Dim>(spatial_rank));
}

Dim Window::effective_kernel(size_t axis) const { return (kernel[axis] - Dim(1)) * Dim(dilations[axis]) + Dim(1); }

Result<Dim> Window::output_extent(size_t axis, const Dim& in) const {
  const Dim stride(strides[axis]);
  if (auto_pad == AutoPad::same_upper || auto_pad == AutoPad::same_lower) return ceildiv(in, stride);
  const Dim padded = in + Dim(pads[axis]) + Dim(pads[axis + rank()]);
  const Dim room = padded - effective_kernel(axis);
  if (room.is_static() && room.value() < 0) {
    if (in.is_static() && in.value() == 0) return Dim(0);
    return error(Code::invalid_argument, "a window of ", effective_kernel(axis), " at spatial axis ", axis,
                 " is larger than its padded input of ", padded, " (input ", in, ")");
  }
  if (!ceil_mode) return floordiv(room, stride) + Dim(1);
  return smaller(ceildiv(room, stride) + Dim(1), ceildiv(in + Dim(pads[axis]), stride));
}

Expr Window::pad_begin(size_t axis, const Expr& in) const {
  if (auto_pad != AutoPad::same_upper && auto_pad != AutoPad::same_lower) return pads[axis];
  const Expr stride(strides[axis]);
  const Expr last = max(Expr(0), floordiv(in - Expr(1), stride)) * stride;  // where the last window begins
  const Expr total = max(Expr(0), last - in + effective_kernel(axis).expr());
  const Expr half = floordiv(total, Expr(2));
  return auto_pad == AutoPad::same_upper ? half : total - half;
}

Result<Shape> window_output_shape(const Window& window, const Shape& in, Dim channels) {
  if (!in.ranked()) return Shape();
  std::vector<Dim> dims{in[0], std::move(channels)};
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    TENON_TRY(extent, window.output_extent(axis, in[axis + 2]));
    dims.push_back(std::move(extent));
  }
  return Shape(std::move(dims));
}

}  // namespace tenon
