#include <tenon/onnx/regions_internal.hpp>

namespace tenon::onnx {
namespace {

Type operand_type(const Op& op, size_t i) { return op.operand(i) ? op.operand(i)->type() : Type(); }

// The same kind and element type with any shape: what a value carried through iterations certainly keeps.
Type without_shape(const Type& type) { return type.is_tensor() ? Type(type.element(), Shape()) : type; }

Type loop_input(const Op& op, size_t i) {
  if (i == 0) return Type(kI64, Shape(std::vector<Dim>{}));
  if (i == 1) return Type(kBool, Shape(std::vector<Dim>{}));
  return without_shape(operand_type(op, i));
}

Type scan_input(const Op& op, size_t i) {
  const Type type = operand_type(op, i);
  const auto scanned = static_cast<size_t>(op.attr<int64_t>("num_scan_inputs"));
  if (scanned > op.operand_count() || i < op.operand_count() - scanned) return without_shape(type);
  if (!type.is_tensor() || !type.shape().ranked() || type.shape().rank() == 0) return without_shape(type);
  const auto axes = op.attr<std::vector<int64_t>>("scan_input_axes");
  const size_t k = i - (op.operand_count() - scanned);
  int64_t axis = k < axes.size() ? axes[k] : 0;
  if (axis < 0) axis += type.shape().rank();
  if (axis < 0 || axis >= type.shape().rank()) return without_shape(type);
  std::vector<Dim> dims = type.shape().dims();
  dims.erase(dims.begin() + axis);
  return Type(type.element(), Shape(std::move(dims)));
}

Type sequence_map_input(const Op& op, size_t i) {
  const Type type = operand_type(op, i);
  return type.is_sequence() ? type.inner() : type;
}

constexpr RegionName kBranches[] = {{"then_branch"}, {"else_branch"}};
constexpr RegionName kBody[] = {{"body"}};
constexpr RegionName kModifiers[] = {{"score_mod", true}, {"prob_mod", true}};

struct Row {
  std::string_view op;
  std::span<const RegionName> names;
  Type (*input)(const Op&, size_t);
};
constexpr Row kRows[] = {
    {"If", kBranches, nullptr},
    {"Loop", kBody, loop_input},
    {"Scan", kBody, scan_input},
    {"SequenceMap", kBody, sequence_map_input},
    {"ai.onnx.preview.FlexAttention", kModifiers, nullptr},
};

const Row* row_of(Name op) {
  for (const Row& row : kRows) {
    if (op.view() == row.op) return &row;
  }
  return nullptr;
}

}  // namespace

std::optional<std::span<const RegionName>> region_names(Name op) {
  const Row* row = row_of(op);
  return row ? std::optional(row->names) : std::nullopt;
}

Type region_input_type(const Op& op, size_t i) {
  const Row* row = row_of(op.name());
  return row && row->input ? row->input(op, i) : Type();
}

Type left_out_input_type(const Op& op) {
  // Scores of attention are computed in f32, or in f64 for f64.
  return Type(operand_type(op, 0).is_tensor() && operand_type(op, 0).element() == kF64 ? kF64 : kF32, Shape());
}

}  // namespace tenon::onnx
