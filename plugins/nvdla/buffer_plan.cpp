#include "nvdla/buffer_plan.hpp"

#include <algorithm>

#include <tenon/ir/builder.hpp>
#include <tenon/ops/window.hpp>

#include "nvdla/operators.hpp"

namespace tenon::nvdla {
namespace {

using Integers = Attribute::Integers;

Result<Dims> static_dims(const Value* value, const Hardware& hardware) {
  if (value && value->type().is_tensor() && value->type().element() == hardware.element)
    if (auto dims = value->type().shape().static_dims()) return *dims;
  return error(Code::unsupported, value ? value->type().to_string() : "an absent operand", " is no tensor of ",
               hardware.element, " of known extents on target ", hardware.name);
}

Result<Image> image_of(const Value* value, const Hardware& hardware) {
  TENON_TRY(dims, static_dims(value, hardware));
  TENON_TRY(image, Image::of(dims, hardware));
  if (image.bytes <= hardware.dram_bytes) return image;
  return error(Code::unsupported, value->type(), " takes ", image.bytes, " bytes of DRAM, ", hardware.dram_bytes,
               " are there on target ", hardware.name);
}

int64_t at(const Integers& list, size_t i, int64_t fallback) { return i < list.size() ? list[i] : fallback; }

WindowAxis axis_of(const Op& op, size_t axis, int64_t kernel, const char* strides, const char* pads) {
  return {.kernel = kernel,
          .stride = at(op.attr<Integers>(strides), axis, 1),
          .dilation = 1,
          .pad = at(op.attr<Integers>(pads), axis, 0)};
}

void read_windows(const Op& op, const Dims& w, ConvLayer& layer) {
  const auto dilations = op.attr<Integers>("dilations");
  if (w.size() == 4) {
    layer.rows = axis_of(op, 0, w[2], "strides", "pads"), layer.cols = axis_of(op, 1, w[3], "strides", "pads");
    layer.rows.dilation = at(dilations, 0, 1), layer.cols.dilation = at(dilations, 1, 1);
  }
  const auto kernel = op.attr<Integers>("pool_kernel");
  layer.pooled = kernel.size() == 2;
  if (!layer.pooled) return;
  layer.pool_rows = axis_of(op, 0, kernel[0], "pool_strides", "pool_pads");
  layer.pool_cols = axis_of(op, 1, kernel[1], "pool_strides", "pool_pads");
}

// The extents before the pool.
void read_extents(const Op& op, ConvLayer& layer) {
  const auto pads = op.attr<Integers>("pads");
  const auto extent = [&](int64_t in, const WindowAxis& axis, size_t i) {
    return (in + axis.pad + at(pads, i + 2, 0) - axis.extent()) / axis.stride + 1;
  };
  layer.out_height = extent(layer.input.height, layer.rows, 0);
  layer.out_width = extent(layer.input.width, layer.cols, 1);
}

// The rows that windows [first, end) cover, within [0, limit).
ConvLayer::Rows covered(ConvLayer::Rows windows, const WindowAxis& axis, int64_t limit) {
  return {std::clamp<int64_t>(windows.first * axis.stride - axis.pad, 0, limit),
          std::clamp<int64_t>((windows.end - 1) * axis.stride - axis.pad + axis.extent(), 0, limit)};
}

int64_t most_covered(int64_t windows, const WindowAxis& axis, int64_t limit) {
  return std::min(limit, (windows - 1) * axis.stride + axis.extent());
}

struct KindRow {
  PlanKind kind;
  std::string_view name;
  bool split;
  int64_t slots;  // 0: all weights
};
// In the order in which they are tried.
constexpr KindRow kPlanRows[kPlanKinds] = {
    {PlanKind::all_all, "all data, all weights", false, 0},    {PlanKind::all_two, "all data, 2K kernels", false, 2},
    {PlanKind::split_all, "split rows, all weights", true, 0}, {PlanKind::split_two, "split rows, 2K kernels", true, 2},
    {PlanKind::all_one, "all data, K kernels", false, 1},      {PlanKind::split_one, "split rows, K kernels", true, 1},
};

int64_t data_banks(const ConvLayer& layer, int64_t input_rows, const Hardware& hardware) {
  return hardware.banks_of(input_rows * layer.row_entries(hardware));
}

int64_t slot_entries(const ConvLayer& layer, const Hardware& hardware) {
  return layer.group_bytes(std::min(hardware.atomic_k, layer.parts.kernels), hardware) / hardware.entry_bytes;
}

int64_t weight_banks(const ConvLayer& layer, int64_t slots, const Hardware& hardware) {
  return hardware.banks_of(slots == 0 ? layer.weight_bytes(hardware) / hardware.entry_bytes
                                      : slots * slot_entries(layer, hardware));
}

// The most output rows of a band whose data fits `banks`; 0: not even one row fits.
int64_t most_band_rows(const ConvLayer& layer, int64_t banks, const Hardware& hardware) {
  int64_t least = 0, most = layer.output.height;
  while (least < most) {
    const int64_t middle = (least + most + 1) / 2;
    if (data_banks(layer, layer.most_input_rows(middle), hardware) <= banks)
      least = middle;
    else
      most = middle - 1;
  }
  return least;
}

std::optional<BufferPlan> try_kind(const KindRow& row, const ConvLayer& layer, const Hardware& hardware) {
  const int64_t weights = weight_banks(layer, row.slots, hardware), left = hardware.banks - weights;
  if (row.slots == 2 && layer.groups(hardware) < 2) return std::nullopt;  // a single group needs no second slot
  const int64_t rows = row.split ? most_band_rows(layer, left, hardware) : layer.output.height;
  const int64_t input = row.split ? layer.most_input_rows(rows) : layer.input.height;
  if (rows < 1 || data_banks(layer, input, hardware) > left) return std::nullopt;
  return BufferPlan{row.kind, rows, data_banks(layer, input, hardware), weights, row.slots};
}

}  // namespace

Result<ConvLayer> ConvLayer::of(const Op& op, const Hardware& hardware) {
  ConvLayer layer;
  layer.label = op.label();
  TENON_TRY(input, image_of(op.operand(0), hardware));
  TENON_TRY(output, image_of(op.result(), hardware));
  TENON_TRY(w, static_dims(op.operand(1), hardware));
  if (op.operand(3)) TENON_OK(image_of(op.operand(3), hardware));
  layer.input = input, layer.output = output;
  layer.parts = Parts::of(input.channels, w[0], op.attr<int64_t>("group", 1), hardware.atom_channels);
  read_windows(op, w, layer);
  read_extents(op, layer);
  return layer;
}

int64_t ConvLayer::row_entries(const Hardware& hardware) const {
  return ceil_div(input.width * part_surfaces(hardware) * hardware.atom_bytes, hardware.entry_bytes);
}

int64_t ConvLayer::group_bytes(int64_t kernels, const Hardware& hardware) const {
  return round_up(kernels * parts.channels * rows.kernel * cols.kernel * hardware.element_bytes,
                  hardware.weight_atom_bytes);
}

int64_t ConvLayer::weight_bytes(const Hardware& hardware) const {
  const int64_t whole = parts.kernels / hardware.atomic_k, rest = parts.kernels % hardware.atomic_k;
  return whole * group_bytes(hardware.atomic_k, hardware) + (rest > 0 ? group_bytes(rest, hardware) : 0);
}

ConvLayer::Rows ConvLayer::conv_rows(Rows output) const {
  return pooled ? covered(output, pool_rows, out_height) : output;
}
ConvLayer::Rows ConvLayer::input_rows(Rows conv) const { return covered(conv, rows, input.height); }

int64_t ConvLayer::most_input_rows(int64_t output_rows) const {
  const int64_t conv = pooled ? most_covered(output_rows, pool_rows, out_height) : output_rows;
  return most_covered(conv, rows, input.height);
}

std::string_view plan_name(PlanKind kind) { return kPlanRows[static_cast<size_t>(kind)].name; }

Result<PlanKind> plan_of_name(std::string_view name) {
  const auto* row = std::ranges::find(kPlanRows, name, &KindRow::name);
  if (row == std::end(kPlanRows)) return error(Code::invalid_argument, "there is no plan ", quote(name));
  return row->kind;
}

Result<BufferPlan> plan_buffer(const ConvLayer& layer, const Hardware& hardware) {
  for (const KindRow& row : kPlanRows)
    if (auto plan = try_kind(row, layer, hardware)) return *plan;
  const int64_t rows = layer.most_input_rows(1), data = data_banks(layer, rows, hardware);
  const int64_t kernels = std::min(hardware.atomic_k, layer.parts.kernels), weights = weight_banks(layer, 1, hardware);
  return error(Code::unsupported, "convolution ", quote(layer.label), " needs ", data + weights,
               " banks of the convolution buffer (", data, " for ", rows, rows == 1 ? " row" : " rows", " of data, ",
               weights, " for ", kernels, kernels == 1 ? " kernel" : " kernels", "), ", hardware.banks,
               " are there on target ", hardware.name);
}

Result<void> check_fits(const Op& op, const Hardware& hardware) {
  if (isa<Conv>(op)) {
    TENON_TRY(layer, ConvLayer::of(op, hardware));
    TENON_OK(plan_buffer(layer, hardware));
    return {};
  }
  for (size_t i = 0; i < op.operand_count(); ++i)
    if (op.operand(i)) TENON_OK(image_of(op.operand(i), hardware));
  TENON_OK(image_of(op.result(), hardware));
  return {};
}

}  // namespace tenon::nvdla
