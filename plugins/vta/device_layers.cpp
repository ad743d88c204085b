#include <algorithm>

#include <tenon-ext/fused/epilogue.hpp>

#include "vta/device_op_internal.hpp"
#include "vta/pack.hpp"
#include "vta/ranges.hpp"

namespace tenon::vta {
namespace {

constexpr int64_t kMostScale = 6;  // 2^6 is the largest power of two in a weight

// A term that adds the operand times 2^scale.
Term unit_term(size_t operand, const Image& image, int64_t scale, DeviceOp& made) {
  made.weights.push_back({.w = {}, .scale = int64_t{1} << scale});
  return {.operand = operand, .input = image, .rows = {}, .cols = {}, .diagonal = true, .one_weight = true};
}

// Clip and shift. The rounding term becomes an immediate operand where it fits, otherwise a vector; with a bias it is
// part of that vector anyway.
void add_epilogue(const Op& op, Layer& layer, DeviceOp& made) {
  const fused::Epilogue epilogue = fused::Epilogue::of(op);
  layer.shift = epilogue.shift, layer.clip_min = epilogue.clip_min, layer.clip_max = epilogue.clip_max;
  made.rounding = epilogue.shift > 0 ? int64_t{1} << (epilogue.shift - 1) : 0;
  layer.bias = made.bias.valid() || made.rounding > kMostImmediate;
  if (!layer.bias) layer.rounding = made.rounding;
}

// acc = the residual << shift: by the weight as far as possible, and by a left shift after the term for the rest.
void add_residual(size_t operand, const Image& image, int64_t shift, Layer& layer, DeviceOp& made) {
  const int64_t scale = std::min(shift, kMostScale);
  Term term = unit_term(operand, image, scale, made);
  term.left_shift = shift - scale;
  layer.terms.push_back(term);
}

Result<void> add_weights(const Tensor& w, int64_t group, Term& term, const Layer& layer, DeviceOp& made,
                         const Hardware& hardware) {
  const GroupBlocks blocks = GroupBlocks::of(w.dim(1) * group, w.dim(0), group, hardware);
  term.diagonal = blocks.diagonal, term.groups = blocks.groups;
  made.weights.push_back({.w = w, .group = group});
  TENON_OK(check_bytes(term.weight_elements(layer.output.blocks) * hardware.element_bytes(Memory::wgt), "w, packed,",
                       hardware));
  const int64_t row = term.reduce_blocks() * term.taps();
  if (row <= kMostTransfer) return {};
  return refuse(hardware, str("weights of one output block are ", row, " elements, a transfer's stride is at most ",
                              kMostTransfer));
}

// Common to QConv and QDense. `w`: [O, C / group, kernel ...].
Result<DeviceOp> product(const Op& op, const Dims& kernel, const Hardware& hardware) {
  DeviceOp made;
  TENON_TRY(w, constant_operand(op, 1, "w", hardware));
  if (op.operand(2)) {
    TENON_TRY(bias, constant_operand(op, 2, "bias", hardware));
    made.bias = bias;
  }
  Layer layer{.name = op.label(), .terms = {}, .output = {}};
  TENON_TRY(input, image_of_value(op.operand(0), "x", hardware));
  TENON_TRY(output, image_of_value(op.result(), "y", hardware));
  layer.output = output;
  made.operands.push_back(op.operand(0));
  if (op.operand(3)) {
    add_residual(1, output, op.attr<int64_t>("residual_shift", 0), layer, made);
    made.operands.push_back(op.operand(3));
  }
  Term term{.operand = 0, .input = input, .rows = {}, .cols = {}};
  if (!kernel.empty()) {
    TENON_TRY(axes, axes_of(op, kernel, hardware));
    term.rows = axes.rows, term.cols = axes.cols;
  }
  TENON_OK(check_row_stride(input, term.rows, hardware));
  TENON_OK(add_weights(w, op.attr<int64_t>("group", 1), term, layer, made, hardware));
  layer.terms.push_back(term);
  add_epilogue(op, layer, made);
  made.work = std::move(layer);
  return made;
}

}  // namespace

Result<DeviceOp> convolution(const Op& op, const Hardware& hardware) {
  TENON_TRY(w, constant_operand(op, 1, "w", hardware));
  return product(op, Dims(w.dims().begin() + 2, w.dims().end()), hardware);
}
Result<DeviceOp> dense(const Op& op, const Hardware& hardware) { return product(op, {}, hardware); }

// The term of the larger shift comes first; shifts that weights cannot express are applied after each term.
Result<DeviceOp> addition(const Op& op, const Hardware& hardware) {
  DeviceOp made;
  TENON_TRY(output, image_of_value(op.result(), "y", hardware));
  Layer layer{.name = op.label(), .terms = {}, .output = output};
  std::vector<std::pair<int64_t, size_t>> shifts{{op.attr<int64_t>("a_shift", 0), 0},
                                                 {op.attr<int64_t>("b_shift", 0), 1}};
  std::stable_sort(shifts.begin(), shifts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  const int64_t low = std::min(shifts[1].first, kMostScale), behind = shifts[1].first - low;
  for (const auto& [shift, operand] : shifts) {
    TENON_TRY(image, image_of_value(op.operand(operand), "an operand", hardware));
    if (image != output) return refuse(hardware, "operands of different extents");
    const bool last = layer.terms.size() == 1;
    const int64_t scale = last ? low : std::min(shift - behind, kMostScale);
    Term term = unit_term(operand, image, scale, made);
    term.left_shift = last ? behind : shift - behind - scale;
    layer.terms.push_back(term);
  }
  made.operands = {op.operand(0), op.operand(1)};
  add_epilogue(op, layer, made);
  made.work = std::move(layer);
  return made;
}

Result<DeviceOp> average_pool(const Op& op, const Hardware& hardware) {
  DeviceOp made;
  TENON_TRY(input, image_of_value(op.operand(0), "x", hardware));
  TENON_TRY(output, image_of_value(op.result(), "y", hardware));
  TENON_TRY(axes, axes_of(op, op.attr<Attribute::Integers>("kernel_shape"), hardware));
  TENON_OK(check_row_stride(input, axes.rows, hardware));
  Layer layer{.name = op.label(), .terms = {}, .output = output};
  layer.multiplier = op.attr<int64_t>("multiplier", 1);
  if (layer.multiplier > kMostImmediate)
    return refuse(hardware, str("multiplier ", layer.multiplier, " exceeds ", kMostImmediate));
  Term term = unit_term(0, input, 0, made);
  term.rows = axes.rows, term.cols = axes.cols;
  layer.terms.push_back(term);
  made.operands = {op.operand(0)};
  add_epilogue(op, layer, made);
  made.work = std::move(layer);
  return made;
}

Result<DeviceOp> max_pool(const Op& op, const Hardware& hardware) {
  DeviceOp made;
  TENON_TRY(input, image_of_value(op.operand(0), "x", hardware));
  TENON_TRY(output, image_of_value(op.result(), "y", hardware));
  TENON_TRY(axes, axes_of(op, op.attr<Attribute::Integers>("kernel_shape"), hardware));
  axes.rows.skips = false;
  made.operands = {op.operand(0)};
  made.work = PoolLayer{op.label(), input, output, axes.rows, axes.cols};
  return made;
}

// Allowed if batches and channels are the same, with one pixel each.
Result<DeviceOp> view(const Op& op, const Hardware& hardware) {
  TENON_TRY(from, dims_of(op.operand(0), "the operand", hardware));
  TENON_TRY(to, dims_of(op.result(), "the result", hardware));
  const auto one_pixel = [](const Dims& dims) {
    return dims.size() >= 2 && dims.size() <= 4 &&
           std::all_of(dims.begin() + 2, dims.end(), [](int64_t d) { return d == 1; });
  };
  const bool same = one_pixel(from) && one_pixel(to) && from[0] == to[0] && from[1] == to[1];
  if (!same) return refuse(hardware, str(op.name(), " from ", from, " to ", to, " moves values between blocks"));
  DeviceOp made;
  made.operands = {op.operand(0)};
  made.work = DeviceView{};
  return made;
}

}  // namespace tenon::vta
