#include "vta/device_op.hpp"

#include <algorithm>

#include <tenon-ext/fused/convolution.hpp>
#include <tenon-ext/fused/dense.hpp>
#include <tenon-ext/fused/elementwise.hpp>
#include <tenon-ext/fused/epilogue.hpp>
#include <tenon-ext/fused/pooling.hpp>
#include <tenon/ir/builder.hpp>

#include "vta/dram.hpp"
#include "vta/layer_stream.hpp"
#include "vta/pack.hpp"
#include "vta/pool_stream.hpp"
#include "vta/simulator.hpp"
#include "vta/stream_check.hpp"

namespace tenon::vta {
namespace {

constexpr int64_t kMostPad = 15;           // four bits of a load
constexpr int64_t kMostImmediate = 32767;  // 16 bits, signed
constexpr int64_t kMostScale = 6;          // 2^6 is the largest power of two in a weight

Error refuse(const Hardware& hardware, std::string reason) {
  return error(Code::unsupported, reason, " on target '", hardware.name, "'");
}

// ---- Operands ----

Result<Dims> dims_of(const Value* value, std::string_view what, const Hardware& hardware) {
  if (!value || !value->type().is_tensor()) return refuse(hardware, str(what, " is no tensor"));
  const Type& type = value->type();
  if (type.element() != kI8) return refuse(hardware, str(what, " is ", type.element(), ", not i8"));
  if (auto dims = type.shape().static_dims()) return *dims;
  return refuse(hardware, str(what, " has the shape ", type.shape(), ", which only a run tells: it cannot be tiled"));
}

Result<void> check_bytes(int64_t bytes, std::string_view what, const Hardware& hardware) {
  if (bytes <= dram_window_bytes(hardware)) return {};
  return refuse(hardware, str(what, " takes ", bytes, " bytes, a buffer of the driver ", dram_window_bytes(hardware)));
}

Result<Image> image_of_value(const Value* value, std::string_view what, const Hardware& hardware) {
  TENON_TRY(dims, dims_of(value, what, hardware));
  TENON_TRY(image, image_of(dims, hardware), what);
  TENON_OK(check_bytes(image.elements() * hardware.element_bytes(Memory::inp), what, hardware));
  if (image.width > kMostTransfer)
    return refuse(hardware,
                  str(what, " has rows of ", image.width, " elements, a transfer's stride is at most ", kMostTransfer));
  return image;
}

Result<Tensor> constant_operand(const Op& op, size_t i, std::string_view what, const Hardware& hardware) {
  if (const Tensor* tensor = constant_of(op.operand(i))) return *tensor;
  return refuse(hardware, str(what, " of ", op.name(), " is no constant"));
}

// ---- Windows ----

struct Axes {
  WindowAxis rows, cols;
};

// Of the `rank` - 2 spatial axes; a missing first one is 1 wide.
Result<Axes> axes_of(const Op& op, const Dims& kernel, const Hardware& hardware) {
  const size_t count = kernel.size();
  if (count < 1 || count > 2) return refuse(hardware, str("a window of rank ", count, " is none of 1 and 2"));
  const auto of = [&](Name name, size_t i, int64_t fallback) {
    const auto all = op.attr<Attribute::Integers>(name);
    return i < all.size() ? all[i] : fallback;
  };
  Axes axes;
  for (size_t i = 0; i < count; ++i) {
    WindowAxis& axis = i + 1 == count ? axes.cols : axes.rows;
    axis = {
        .kernel = kernel[i], .stride = of("strides", i, 1), .dilation = of("dilations", i, 1), .pad = of("pads", i, 0)};
    for (const int64_t pad : {axis.pad, of("pads", count + i, 0)}) {
      if (pad < 0 || pad > kMostPad) return refuse(hardware, str("pad ", pad, " is not in 0 to ", kMostPad));
      if (pad >= axis.extent())
        return refuse(hardware, str("pad ", pad, " reaches beyond a window of ", axis.extent(),
                                    ", so that windows of padding only would be"));
    }
  }
  axes.rows.skips = axes.rows.kernel == 1 && axes.rows.stride > 1 && axes.rows.pad == 0;
  return axes;
}

Result<void> check_row_stride(const Image& input, const WindowAxis& rows, const Hardware& hardware) {
  const int64_t stride = input.width * (rows.skips ? rows.stride : 1);
  if (stride <= kMostTransfer) return {};
  return refuse(hardware, str("rows of ", input.width, " elements at stride ", rows.stride, " are ", stride,
                              " elements apart, a transfer's are at most ", kMostTransfer));
}

// ---- Layers ----

// Weights, one element of a one_weight term after the other, then those of the dense or diagonal one.
void append(DeviceOp& made, const std::vector<std::byte>& bytes) {
  made.weights.insert(made.weights.end(), bytes.begin(), bytes.end());
}

// A term that adds the operand as it is, times 2^scale.
Term unit_term(size_t operand, const Image& image, int64_t scale, DeviceOp& made, Layer& layer,
               const Hardware& hardware) {
  append(made, diagonal_element(static_cast<int8_t>(1 << scale), hardware));
  return {.operand = operand,
          .input = image,
          .rows = {},
          .cols = {},
          .diagonal = true,
          .one_weight = true,
          .weights_at = layer.weight_elements++};
}

// clip and shift; the rounding goes where it fits: an immediate operand, or a vector, which a bias is anyway.
void add_epilogue(const Op& op, const Tensor& bias, int64_t channels, Layer& layer, DeviceOp& made,
                  const Hardware& hardware) {
  const fused::Epilogue epilogue = fused::Epilogue::of(op);
  layer.shift = epilogue.shift, layer.clip_min = epilogue.clip_min, layer.clip_max = epilogue.clip_max;
  const int64_t rounding = epilogue.shift > 0 ? int64_t{1} << (epilogue.shift - 1) : 0;
  layer.bias = bias.valid() || rounding > kMostImmediate;
  if (!layer.bias) layer.rounding = rounding;
  if (layer.bias) made.bias = pack_bias(bias, channels, rounding, hardware);
}

// acc = the residual << shift: as far as a weight can say it, the rest behind the term.
void add_residual(size_t operand, const Image& image, int64_t shift, Layer& layer, DeviceOp& made,
                  const Hardware& hardware) {
  const int64_t scale = std::min(shift, kMostScale);
  Term term = unit_term(operand, image, scale, made, layer, hardware);
  term.left_shift = shift - scale;
  layer.terms.push_back(term);
}

// What QConv and QDense have in common. `w`: [O, C / group, kernel ...].
Result<DeviceOp> product(const Op& op, const Dims& kernel, const Hardware& hardware) {
  DeviceOp made;
  TENON_TRY(w, constant_operand(op, 1, "w", hardware));
  Tensor bias;
  if (op.operand(2)) {
    TENON_TRY(constant, constant_operand(op, 2, "bias", hardware));
    bias = constant;
  }
  Layer layer{.name = op.label(), .terms = {}, .output = {}};
  TENON_TRY(input, image_of_value(op.operand(0), "x", hardware));
  TENON_TRY(output, image_of_value(op.result(), "y", hardware));
  layer.output = output;
  made.operands.push_back(op.operand(0));
  if (op.operand(3)) {
    add_residual(1, output, op.attr<int64_t>("residual_shift", 0), layer, made, hardware);
    made.operands.push_back(op.operand(3));
  }
  Term term{.operand = 0, .input = input, .rows = {}, .cols = {}};
  if (!kernel.empty()) {
    TENON_TRY(axes, axes_of(op, kernel, hardware));
    term.rows = axes.rows, term.cols = axes.cols;
  }
  TENON_OK(check_row_stride(input, term.rows, hardware));
  const int64_t group = op.attr<int64_t>("group", 1);
  const GroupBlocks blocks = GroupBlocks::of(w.dim(1) * group, w.dim(0), group, hardware);
  term.diagonal = blocks.diagonal, term.groups = blocks.groups, term.weights_at = layer.weight_elements;
  append(made, pack_weights(w, group, blocks, hardware));
  TENON_OK(check_bytes(static_cast<int64_t>(made.weights.size()), "w, packed,", hardware));
  layer.weight_elements = static_cast<int64_t>(made.weights.size()) / hardware.element_bytes(Memory::wgt);
  const int64_t row = term.reduce_blocks() * term.taps();
  if (row > kMostTransfer)
    return refuse(hardware, str("weights of one output block are ", row, " elements, a transfer's stride is at most ",
                                kMostTransfer));
  layer.terms.push_back(term);
  add_epilogue(op, bias, w.dim(0), layer, made, hardware);
  made.work = std::move(layer);
  return made;
}

Result<DeviceOp> convolution(const Op& op, const Hardware& hardware) {
  TENON_TRY(w, constant_operand(op, 1, "w", hardware));
  return product(op, Dims(w.dims().begin() + 2, w.dims().end()), hardware);
}
Result<DeviceOp> dense(const Op& op, const Hardware& hardware) { return product(op, {}, hardware); }

// The term of the larger shift first; what weights cannot say is shifted behind each.
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
    Term term = unit_term(operand, image, scale, made, layer, hardware);
    term.left_shift = last ? behind : shift - behind - scale;
    layer.terms.push_back(term);
  }
  made.operands = {op.operand(0), op.operand(1)};
  add_epilogue(op, {}, output.blocks * hardware.block, layer, made, hardware);
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
  Term term = unit_term(0, input, 0, made, layer, hardware);
  term.rows = axes.rows, term.cols = axes.cols;
  layer.terms.push_back(term);
  made.operands = {op.operand(0)};
  add_epilogue(op, {}, output.blocks * hardware.block, layer, made, hardware);
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

// The same channels for the same batches, one pixel each.
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

// Addresses of buffers of their own for each segment, where there is no driver yet.
std::vector<uint64_t> separate_addresses() {
  std::vector<uint64_t> addresses;
  for (uint64_t segment = 0; segment < 8; ++segment) addresses.push_back(segment * 2 * Dram::kMaxBufferBytes);
  return addresses;
}

// Of the likely tilings the one that the simulator's clock likes best, by the same score as the model's.
Result<Stream> best_stream(const Layer& layer, const Hardware& hardware, const TilingOptions& options) {
  TENON_TRY(candidates, tile_candidates(layer, hardware, options));
  Stream best;
  int64_t least = 0;
  for (const Tiling& tiling : candidates) {
    TENON_TRY(stream, stream_of(layer, tiling, hardware));
    if (candidates.size() == 1) return stream;
    TENON_TRY(bound, stream.bound(separate_addresses(), hardware));
    TENON_TRY(counters, time_stream(bound, hardware));
    const TilingCost cost{.dram_cycles = counters.dram_cycles, .cycles = counters.cycles};
    if (!best.commands.empty() && cost.score() >= least) continue;
    least = cost.score();
    best = std::move(stream);
  }
  return best;
}

struct Row {
  std::string_view op;
  Result<DeviceOp> (*make)(const Op&, const Hardware&);
};
constexpr Row kRows[] = {
    {fused::QConv::kName, convolution},
    {fused::QDense::kName, dense},
    {fused::QAdd::kName, addition},
    {fused::QMaxPool::kName, max_pool},
    {fused::QAvgPool::kName, average_pool},
    {"Reshape", view},
    {"Flatten", view},
    {"Squeeze", view},
    {"Unsqueeze", view},
};

}  // namespace

Result<DeviceOp> device_op(const Op& op, const Hardware& hardware) {
  for (const Row& row : kRows) {
    if (op.name() != Name(row.op)) continue;
    TENON_TRY(made, row.make(op, hardware));
    made.op = row.op;
    made.label = op.label();
    made.result = op.result();
    return made;
  }
  return refuse(hardware, str(op.name(), " has no form of sums and windows"));
}

Result<Stream> stream_of(const DeviceOp& op, const Hardware& hardware, const StreamOptions& options) {
  Stream stream;
  if (const auto* layer = std::get_if<Layer>(&op.work)) {
    TENON_TRY(made, best_stream(*layer, hardware, options.tiling));
    stream = std::move(made);
  } else if (const auto* pool = std::get_if<PoolLayer>(&op.work)) {
    TENON_TRY(made, stream_of(*pool, hardware));
    stream = std::move(made);
  }
  if (options.check) TENON_OK(check_races(stream, hardware), "the stream of ", op.op, " ", quote(op.label));
  return stream;
}

Result<void> check_tiling(const DeviceOp& op, const Hardware& hardware) {
  if (const auto* layer = std::get_if<Layer>(&op.work)) TENON_OK(tile_layer(*layer, hardware));
  if (const auto* pool = std::get_if<PoolLayer>(&op.work)) TENON_OK(tile_pool(*pool, hardware));
  return {};
}

Result<void> check_races(const Stream& stream, const Hardware& hardware) {
  TENON_TRY(bound, stream.bound(separate_addresses(), hardware));
  CheckOptions options;
  options.micro_op = [&](int64_t element) -> Result<uint32_t> {
    if (element < 0 || static_cast<size_t>(element) >= stream.micro_ops.size())
      return error(Code::invalid_argument, "there is no micro-op ", element);
    return stream.micro_ops[static_cast<size_t>(element)];
  };
  TENON_TRY(findings, check_stream(bound, hardware, options));
  if (findings.empty()) return {};
  std::string list;
  for (const Finding& finding : findings) list += str("\n", finding.to_string(bound));
  return error(Code::internal, "the stream has races:", list);
}

}  // namespace tenon::vta
