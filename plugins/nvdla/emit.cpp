#include "nvdla/emit.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "nvdla/buffer_plan.hpp"
#include "nvdla/operators.hpp"

namespace tenon::nvdla {
namespace {

using Integers = Attribute::Integers;
using Rows = ConvLayer::Rows;

uint32_t word(int64_t value) { return static_cast<uint32_t>(value); }

Result<int64_t> place_of(const Op& op, size_t i) {
  const auto places = op.attr<Integers>("dram");
  if (i < places.size() && places[i] >= 0) return places[i];
  return error(Code::internal, op.describe(), " has no place in DRAM for operand or result ", i);
}
Result<int64_t> result_place(const Op& op) { return place_of(op, op.operand_count()); }

Result<Image> packed_image_of(const Value* value, const Hardware& hardware) {
  const auto dims = value->type().shape().static_dims();
  if (!dims) return error(Code::internal, "value '", value->name(), "' has no static shape");
  return Image::of(*dims, hardware);
}

void set_bounds(const Op& op, const Hardware& hardware, Command& c) {
  const auto low = bound(op, "low"), high = bound(op, "high");
  c.shift = word(op.attr<int64_t>("shift", 0));
  if (hardware.half()) {
    c.low = std::bit_cast<uint32_t>(low.value_or(-INFINITY));
    c.high = std::bit_cast<uint32_t>(high.value_or(INFINITY));
  } else {
    c.low = word(static_cast<int64_t>(low.value_or(-128)));
    c.high = word(static_cast<int64_t>(high.value_or(127)));
  }
}

// ---- CONV ----

class ConvEmitter {
 public:
  ConvEmitter(const Op& op, const Hardware& hardware) : op_(op), h_(hardware) {}

  Result<std::vector<Command>> run() {
    TENON_TRY(layer, ConvLayer::of(op_, h_));
    layer_ = layer;
    TENON_TRY(kind, plan_of_name(op_.attr<std::string>("plan")));
    kind_ = kind;
    band_rows_ = op_.attr<int64_t>("band_rows", 0);
    weight_entry_ = op_.attr<int64_t>("data_banks", 0) * h_.bank_entries;
    if (band_rows_ < 1) return error(Code::internal, op_.describe(), " is not planned");
    TENON_OK(read_places());
    for (int64_t part = 0; part < layer_.parts.count; ++part) emit_part(part);
    return std::move(commands_);
  }

 private:
  Result<void> read_places() {
    TENON_TRY(x, place_of(op_, 0));
    TENON_TRY(w, place_of(op_, 1));
    TENON_TRY(y, result_place(op_));
    x_ = x, w_ = w, y_ = y;
    if (op_.operand(2)) {
      TENON_TRY(bias, place_of(op_, 2));
      bias_ = bias;
    }
    if (op_.operand(3)) {
      TENON_TRY(residual, place_of(op_, 3));
      residual_ = residual;
      TENON_TRY(image, packed_image_of(op_.operand(3), h_));
      residual_image_ = image;
    }
    return {};
  }

  int64_t slots() const {
    if (kind_ == PlanKind::all_all || kind_ == PlanKind::split_all) return 0;
    return kind_ == PlanKind::all_two || kind_ == PlanKind::split_two ? 2 : 1;
  }
  int64_t group_bytes() const { return layer_.group_bytes(std::min(h_.atomic_k, layer_.parts.kernels), h_); }
  int64_t group_entries() const { return group_bytes() / h_.entry_bytes; }

  void emit_part(int64_t part) {
    commands_.push_back({.kind = Kind::begin});
    if (slots() == 0) load_weights(part, 0, layer_.weight_bytes(h_), 0);
    for (int64_t first = 0; first < layer_.output.height; first += band_rows_) {
      const Rows output{first, std::min(first + band_rows_, layer_.output.height)};
      const Rows conv = layer_.conv_rows(output), input = layer_.input_rows(conv);
      if (input.count() > 0) load_rows(part, input);
      if (slots() == 0)
        convolve(part, output, 0, layer_.parts.kernels, 0);
      else
        emit_groups(part, output);
    }
  }

  void emit_groups(int64_t part, Rows output) {
    for (int64_t group = 0; group < layer_.groups(h_); ++group) {
      const int64_t first = group * h_.atomic_k, kernels = std::min(h_.atomic_k, layer_.parts.kernels - first);
      const int64_t slot = group % slots();
      load_weights(part, group * group_bytes(), layer_.group_bytes(kernels, h_), slot);
      convolve(part, output, first, kernels, slot);
    }
  }

  int64_t slot_entry(int64_t slot) const { return weight_entry_ + slot * group_entries(); }

  void load_weights(int64_t part, int64_t offset, int64_t bytes, int64_t slot) {
    commands_.push_back({.kind = Kind::load_weights,
                         .weight_address = word(w_ + part * layer_.weight_bytes(h_) + offset),
                         .weight_bytes = word(bytes),
                         .weight_entry = word(slot_entry(slot))});
  }

  void load_rows(int64_t part, Rows rows) {
    Command c{.kind = Kind::load_data};
    const int64_t surface = part * layer_.parts.channels / h_.atom_channels;
    c.src_address = word(x_ + surface * layer_.input.surface_bytes);
    c.src_line = word(layer_.input.line_bytes), c.src_surface = word(layer_.input.surface_bytes);
    c.width = word(layer_.input.width), c.height = word(layer_.input.height);
    c.surfaces = word(layer_.part_surfaces(h_));
    c.first_row = word(rows.first), c.rows = word(rows.count());
    c.row_entries = word(layer_.row_entries(h_));
    commands_.push_back(c);
  }

  void convolve(int64_t part, Rows output, int64_t first_kernel, int64_t kernels, int64_t slot) {
    Command c{.kind = Kind::convolve};
    const Rows conv = layer_.conv_rows(output), input = layer_.input_rows(conv);
    c.width = word(layer_.input.width), c.height = word(layer_.input.height);
    c.surfaces = word(layer_.part_surfaces(h_));
    c.first_row = word(input.first), c.rows = word(input.count()), c.row_entries = word(layer_.row_entries(h_));
    c.weight_entry = word(slot_entry(slot)), c.group_entries = word(group_entries());
    c.channels = word(layer_.parts.channels), c.kernels = word(kernels);
    set_window(c);
    c.out_first = word(conv.first), c.out_rows = word(conv.count());
    c.out_height = word(layer_.out_height), c.out_width = word(layer_.out_width);
    set_results(part, output, conv, first_kernel, c);
    commands_.push_back(c);
  }

  void set_window(Command& c) const {
    c.kernel_height = word(layer_.rows.kernel), c.kernel_width = word(layer_.cols.kernel);
    c.stride_y = word(layer_.rows.stride), c.stride_x = word(layer_.cols.stride);
    c.dilation_y = word(layer_.rows.dilation), c.dilation_x = word(layer_.cols.dilation);
    c.pad_top = word(layer_.rows.pad), c.pad_left = word(layer_.cols.pad);
  }

  void set_results(int64_t part, Rows output, Rows conv, int64_t first_kernel, Command& c) const {
    const int64_t kernel = part * layer_.parts.kernels + first_kernel;
    const int64_t surface = kernel / h_.atom_channels;
    c.first_kernel = word(kernel % h_.atom_channels);
    if (bias_ >= 0) c.bias = 1, c.bias_address = word(bias_ + kernel * h_.bias_bytes());
    set_bounds(op_, h_, c);
    const Image& y = layer_.output;
    if (residual_ >= 0) {
      const Image& r = residual_image_;
      c.operand_address = word(residual_ + surface * r.surface_bytes + conv.first * r.line_bytes);
      c.operand_line = word(r.line_bytes), c.operand_surface = word(r.surface_bytes);
      c.operand_shift = word(op_.attr<int64_t>("residual_shift", 0));
    }
    c.dst_address = word(y_ + surface * y.surface_bytes + output.first * y.line_bytes);
    c.dst_line = word(y.line_bytes), c.dst_surface = word(y.surface_bytes);
    if (layer_.pooled) set_pool(output, c);
  }

  void set_pool(Rows output, Command& c) const {
    c.pool_kernel_height = word(layer_.pool_rows.kernel), c.pool_kernel_width = word(layer_.pool_cols.kernel);
    c.pool_stride_y = word(layer_.pool_rows.stride), c.pool_stride_x = word(layer_.pool_cols.stride);
    c.pool_pad_top = word(layer_.pool_rows.pad), c.pool_pad_left = word(layer_.pool_cols.pad);
    c.pool_first = word(output.first), c.pool_rows = word(output.count());
    c.pool_width = word(layer_.output.width);
  }

  const Op& op_;
  const Hardware& h_;
  ConvLayer layer_;
  Image residual_image_;
  PlanKind kind_ = PlanKind::all_all;
  int64_t band_rows_ = 0, weight_entry_ = 0;
  int64_t x_ = -1, w_ = -1, bias_ = -1, residual_ = -1, y_ = -1;
  std::vector<Command> commands_;
};

// ---- SDP and PDP ----

Result<Command> image_command(Kind kind, const Op& op, const Hardware& hardware) {
  TENON_TRY(x, packed_image_of(op.operand(0), hardware));
  TENON_TRY(y, packed_image_of(op.result(), hardware));
  TENON_TRY(from, place_of(op, 0));
  TENON_TRY(to, result_place(op));
  Command c{.kind = kind};
  c.src_address = word(from), c.src_line = word(x.line_bytes), c.src_surface = word(x.surface_bytes);
  c.width = word(x.width), c.height = word(x.height), c.surfaces = word(x.surfaces);
  c.dst_address = word(to), c.dst_line = word(y.line_bytes), c.dst_surface = word(y.surface_bytes);
  set_bounds(op, hardware, c);
  return c;
}

Result<std::vector<Command>> sdp_commands(const Op& op, const Hardware& hardware) {
  TENON_TRY(c, image_command(Kind::elementwise, op, hardware));
  c.src_shift = word(op.attr<int64_t>("a_shift", 0));
  if (op.operand(1)) {
    TENON_TRY(operand, place_of(op, 1));
    c.operand_address = word(operand), c.operand_line = c.src_line, c.operand_surface = c.src_surface;
    c.operand_shift = word(op.attr<int64_t>("b_shift", 0));
  }
  return std::vector<Command>{c};
}

Result<std::vector<Command>> pdp_commands(const Op& op, const Hardware& hardware) {
  TENON_TRY(c, image_command(Kind::pool, op, hardware));
  const auto kernel = op.attr<Integers>("kernel_shape");
  const auto at = [&](const char* name, size_t i, int64_t fallback) {
    const auto list = op.attr<Integers>(name);
    return word(i < list.size() ? list[i] : fallback);
  };
  c.pool_kernel_height = word(kernel.at(0)), c.pool_kernel_width = word(kernel.at(1));
  c.pool_stride_y = at("strides", 0, 1), c.pool_stride_x = at("strides", 1, 1);
  c.pool_pad_top = at("pads", 0, 0), c.pool_pad_left = at("pads", 1, 0);
  TENON_TRY(y, packed_image_of(op.result(), hardware));
  c.pool_rows = word(y.height), c.pool_width = word(y.width);
  const bool average = op.attr<std::string>("mode", "max") == "average";
  if (average) c.average = op.attr<int64_t>("count_include_pad", 0) != 0 ? 2 : 1;
  c.multiplier = word(op.attr<int64_t>("multiplier", 1));
  return std::vector<Command>{c};
}

}  // namespace

Result<std::vector<Command>> commands_of(const Op& op, const Hardware& hardware) {
  if (isa<Conv>(op)) return ConvEmitter(op, hardware).run();
  if (isa<Sdp>(op)) return sdp_commands(op, hardware);
  if (isa<Pdp>(op)) return pdp_commands(op, hardware);
  return error(Code::internal, op.describe(), " is no operator of the machine");
}

Result<Tensor> to_tensor(const std::vector<Command>& commands) {
  TENON_TRY(tensor, Tensor::allocate(kU32, {static_cast<int64_t>(commands.size()), int64_t{kCommandWords}}));
  for (size_t i = 0; i < commands.size(); ++i) {
    const Words words = encode(commands[i]);
    std::memcpy(tensor.mutable_data() + i * sizeof words, words.data(), sizeof words);
  }
  return tensor;
}

Result<std::vector<Words>> words_of(const Op& op) {
  const Attribute* found = op.attributes().find("commands");
  const Tensor* tensor = found ? found->get_if<Tensor>() : nullptr;
  if (!tensor || tensor->element() != kU32 || tensor->rank() != 2 || tensor->dim(1) != int64_t{kCommandWords})
    return error(Code::invalid_argument, op.describe(), " has no commands u32[n, ", kCommandWords, "]");
  std::vector<Words> words(static_cast<size_t>(tensor->dim(0)));
  if (!words.empty()) std::memcpy(words.data(), tensor->data(), tensor->bytes());
  return words;
}

}  // namespace tenon::nvdla
