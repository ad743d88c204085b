#include <tenon/onnx/upgrade_internal.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <tenon/ir/op_def.hpp>
#include <tenon/onnx/tensor_proto_internal.hpp>

namespace tenon::onnx {
namespace {

using Integers = Attribute::Integers;
using Reals = Attribute::Reals;
using Texts = Attribute::Texts;

// For rules that apply to nodes of any version: they normalise forms that the newest version still allows.
constexpr int64_t kAlways = INT64_MAX;

using RuleFn = Result<void> (*)(UpgradeNode&);
struct Rule {
  std::string_view op;
  int64_t before;  // the first version of the operator set with the later form
  RuleFn apply;
};

// ---- What rules are made of ----

Result<int64_t> rank_of(const UpgradeNode& node, size_t i, std::string_view why) {
  const Value* value = node.operand(i);
  if (value && value->type().is_tensor() && value->type().shape().ranked()) return value->type().shape().rank();
  return error(Code::unsupported, "the rank of operand ", i, " is not known; version ", node.version,
               " of the operator needs it ", why);
}

Result<ElementType> element_of(const UpgradeNode& node, size_t i) {
  const Value* value = node.operand(i);
  if (value && value->type().is_tensor() && value->type().element().valid()) return value->type().element();
  return error(Code::unsupported, "the element type of operand ", i, " is not known; version ", node.version,
               " of the operator needs it");
}

Result<void> keep(Result<Value*> made, Value*& out) {
  if (!made.ok()) return std::move(made).error();
  out = *made;
  return {};
}

// Moves an integers attribute to operand `i`.
Result<void> integers_to_operand(UpgradeNode& node, Name attribute, size_t i) {
  if (const auto values = node.take<Integers>(attribute)) node.set_operand(i, node.builder.constant_ints(*values));
  return {};
}

// Moves a real attribute to operand `i`, as a scalar of the element type of operand 0.
Result<void> real_to_operand(UpgradeNode& node, Name attribute, size_t i) {
  const auto value = node.take<float>(attribute);
  if (!value) return {};
  TENON_TRY(element, element_of(node, 0));
  node.set_operand(i, node.builder.constant_scalar(element, *value));
  return {};
}

Result<void> axes_to_operand(UpgradeNode& node) { return integers_to_operand(node, "axes", 1); }

template <size_t N>
struct Text {
  char value[N];
  constexpr Text(const char (&text)[N]) { std::copy_n(text, N, value); }
};
template <Text kAttribute>
Result<void> drop(UpgradeNode& node) {
  node.attributes.erase(kAttribute.value);
  return {};
}

// ---- Broadcasting before opset 7 ----

// With `broadcast`, operand 1 matched the dims of operand 0 from `axis` on (default: its last dims).
Result<void> explicit_broadcast(UpgradeNode& node) {
  const bool broadcast = node.take<int64_t>("broadcast").value_or(0) != 0;
  const auto axis = node.take<int64_t>("axis");
  if (!broadcast || !axis) return {};
  TENON_TRY(rank_a, rank_of(node, 0, "to place 'axis'"));
  TENON_TRY(rank_b, rank_of(node, 1, "to place 'axis'"));
  TENON_TRY(from, normalize_axis(*axis, rank_a), "'axis' of the broadcast");
  const int64_t behind = rank_a - from - rank_b;
  if (behind < 0) {
    return error(Code::invalid_argument, "operand 1 of rank ", rank_b, " at axis ", from,
                 " reaches beyond operand 0 of rank ", rank_a);
  }
  if (behind == 0) return {};
  Integers axes;
  for (int64_t i = 0; i < behind; ++i) axes.push_back(rank_b + i);
  return keep(node.builder.op("Unsqueeze", {node.operand(1), node.builder.constant_ints(axes)}), node.operands[1]);
}

// One slope per channel, where the channel is dim 1.
Result<void> prelu_per_channel(UpgradeNode& node) {
  TENON_TRY(rank, rank_of(node, 0, "to place the slope"));
  TENON_TRY(slope_rank, rank_of(node, 1, "to place the slope"));
  if (slope_rank != 1 || rank <= 2 || node.operand(1)->type().shape()[0] == Dim(1)) return {};
  Integers axes;
  for (int64_t i = 1; i < rank - 1; ++i) axes.push_back(i);
  return keep(node.builder.op("Unsqueeze", {node.operand(1), node.builder.constant_ints(axes)}), node.operands[1]);
}

// ---- Elementwise ----

constexpr std::array<std::string_view, 17> kTypeNames = {
    "UNDEFINED", "FLOAT",   "UINT8",  "INT8",   "UINT16", "INT16",     "INT32",      "INT64",   "STRING",
    "BOOL",      "FLOAT16", "DOUBLE", "UINT32", "UINT64", "COMPLEX64", "COMPLEX128", "BFLOAT16"};

Result<void> cast_to_number(UpgradeNode& node) {
  const auto to = node.take<std::string>("to");
  if (!to) return {};
  const auto found = std::find(kTypeNames.begin(), kTypeNames.end(), *to);
  if (found == kTypeNames.end())
    return error(Code::invalid_argument, "'to' is ", quote(*to), ", which is no element type");
  node.attributes.set("to", static_cast<int64_t>(found - kTypeNames.begin()));
  return {};
}

Result<void> clip_limits(UpgradeNode& node) {
  TENON_OK(real_to_operand(node, "min", 1));
  return real_to_operand(node, "max", 2);
}

// Version 1 stated its two constants with fewer digits.
Result<void> selu_constants(UpgradeNode& node) {
  if (!node.attributes.has("alpha")) node.attributes.set("alpha", 1.6732f);
  if (!node.attributes.has("gamma")) node.attributes.set("gamma", 1.0507f);
  return {};
}

// ---- Softmax and its kind before opset 13 ----

// These operators used to work on the matrix that Flatten(axis) gives.
Result<void> flattened(UpgradeNode& node) {
  const int64_t axis = node.take<int64_t>("axis").value_or(1);
  Value* x = node.operand(0);
  if (!x) return error(Code::invalid_argument, "operand 0 is absent");
  const Type& type = x->type();
  if (type.is_tensor() && type.shape().ranked()) {
    const auto& dims = type.shape().dims();
    const auto rank = static_cast<int64_t>(dims.size());
    const int64_t from = axis < 0 ? axis + rank : axis;
    // If all extents after the axis are 1, a row of the matrix is that axis.
    if (from >= 0 && from < rank &&
        std::all_of(dims.begin() + from + 1, dims.end(), [](const Dim& dim) { return dim == Dim(1); })) {
      node.attributes.set("axis", from);
      return {};
    }
  }
  Builder& b = node.builder;
  TENON_TRY(shape, b.op("Shape", {x}));
  TENON_TRY(matrix, b.op("Flatten", {x}, {{"axis", axis}}));
  TENON_TRY(done, b.op(node.op, {matrix}, {{"axis", -1}}));
  TENON_TRY(y, b.op("Reshape", {done, shape}));
  node.made = {y};
  return {};
}

// ---- Shapes and movement ----

Result<void> concat_axis(UpgradeNode& node) {
  if (!node.attributes.has("axis")) node.attributes.set("axis", 1);
  return {};
}

Result<void> reshape_shape(UpgradeNode& node) { return integers_to_operand(node, "shape", 1); }

Result<void> slice_operands(UpgradeNode& node) {
  TENON_OK(integers_to_operand(node, "starts", 1));
  TENON_OK(integers_to_operand(node, "ends", 2));
  return integers_to_operand(node, "axes", 3);
}

Result<void> split_operand(UpgradeNode& node) { return integers_to_operand(node, "split", 1); }
Result<void> split_count(UpgradeNode& node) {
  if (!node.operand(1) && !node.attributes.has("num_outputs")) node.attributes.set("num_outputs", node.outputs);
  return {};
}

Result<void> pad_paddings(UpgradeNode& node) {
  if (auto pads = node.take<Integers>("paddings")) node.attributes.set("pads", std::move(*pads));
  return {};
}
Result<void> pad_operands(UpgradeNode& node) {
  TENON_OK(integers_to_operand(node, "pads", 1));
  return real_to_operand(node, "value", 2);
}

Result<void> top_k_operand(UpgradeNode& node) {
  if (const auto k = node.take<int64_t>("k")) node.set_operand(1, node.builder.constant_ints({*k}));
  return {};
}

// The operands were the number of copies and the axis, both scalars.
Result<void> tile_repeats(UpgradeNode& node) {
  const auto tiles = constant_ints_of(node.operand(1)), axis = constant_ints_of(node.operand(2));
  if (!tiles || !axis || tiles->size() != 1 || axis->size() != 1) {
    return error(Code::unsupported, "version 1 of Tile is read only with constant 'tiles' and 'axis'");
  }
  TENON_TRY(rank, rank_of(node, 0, "to place 'axis'"));
  TENON_TRY(at, normalize_axis((*axis)[0], rank));
  Integers repeats(static_cast<size_t>(rank), 1);
  repeats[static_cast<size_t>(at)] = (*tiles)[0];
  node.operands = {node.operand(0), node.builder.constant_ints(repeats)};
  return {};
}

Result<void> scatter_elements(UpgradeNode& node) {
  node.op = "ScatterElements";
  return {};
}

Result<void> dft_axis(UpgradeNode& node) {
  node.set_operand(2, node.builder.constant_int(node.take<int64_t>("axis").value_or(1)));
  return {};
}

// ---- Constants ----

Result<void> constant_value(UpgradeNode& node) {
  const auto set = [&](Tensor tensor) { node.attributes.set("value", std::move(tensor)); };
  const auto length = [](const auto& list) { return Dims{static_cast<int64_t>(list.size())}; };
  if (auto sparse = node.take<Tensor>("sparse_value")) set(*std::move(sparse));
  if (auto v = node.take<float>("value_float")) set(Tensor::scalar<float>(*v));
  if (auto v = node.take<int64_t>("value_int")) set(Tensor::scalar<int64_t>(*v));
  if (auto v = node.take<std::string>("value_string")) set(Tensor::scalar<std::string>(*v));
  if (auto v = node.take<Reals>("value_floats")) set(Tensor::of<float>(length(*v), *v));
  if (auto v = node.take<Integers>("value_ints")) set(Tensor::of<int64_t>(length(*v), *v));
  if (auto v = node.take<Texts>("value_strings")) set(Tensor::of<std::string>(length(*v), *v));
  return {};
}

// ---- Networks' layers ----

Result<void> power_to_integer(UpgradeNode& node) {
  const auto p = node.take<float>("p");
  if (!p) return {};
  if (*p != std::floor(*p) || std::fabs(*p) > 1e6f)
    return error(Code::unsupported, "p = ", *p, "; only whole numbers are supported");
  node.attributes.set("p", static_cast<int64_t>(*p));
  return {};
}

// spatial = 0: scale, bias, mean and variance for each element of a sample instead of each channel.
Result<void> batch_norm_per_activation(UpgradeNode& node) {
  const int64_t spatial = node.take<int64_t>("spatial").value_or(1);
  if (spatial != 0) return {};
  if (node.results > 1) return error(Code::unsupported, "training with spatial = 0 is not supported");
  TENON_TRY(element, element_of(node, 0));
  Builder& b = node.builder;
  Value* epsilon = b.constant_scalar(element, node.attr<float>("epsilon", 1e-5f));
  TENON_TRY(centred, b.op("Sub", {node.operand(0), node.operand(3)}));
  TENON_TRY(variance, b.op("Add", {node.operand(4), epsilon}));
  TENON_TRY(deviation, b.op("Sqrt", {variance}));
  TENON_TRY(normal, b.op("Div", {centred, deviation}));
  TENON_TRY(scaled, b.op("Mul", {normal, node.operand(1)}));
  TENON_TRY(y, b.op("Add", {scaled, node.operand(2)}));
  node.made = {y};
  return {};
}

// More than one output meant training; the statistics of the batch alone (outputs 3 and 4) no longer exist.
Result<void> batch_norm_training(UpgradeNode& node) {
  node.attributes.erase("is_test");
  if (node.results > 3)
    return error(Code::unsupported, "outputs saved_mean and saved_var exist before version 14 only");
  if (node.results > 1) node.attributes.set("training_mode", 1);
  return {};
}

// Before version 10 the mask had the element type of the data.
Result<void> dropout_operands(UpgradeNode& node) {
  const bool mask_as_data = node.version < 10;
  // Before version 7, an attribute stated whether this is training; from then on, training was not possible.
  const bool training = node.take<int64_t>("is_test").value_or(node.version < 7 ? 0 : 1) == 0;
  Builder& b = node.builder;
  node.set_operand(1, b.constant_scalar(kF32, node.take<float>("ratio").value_or(0.5f)));
  if (training) node.set_operand(2, b.constant(Tensor::scalar<bool>(true)));
  if (!mask_as_data || node.results < 2) return {};
  TENON_TRY(made, b.ops("Dropout", node.operands, 2, node.attributes));
  TENON_TRY(mask, b.op("CastLike", {made[1], node.operand(0)}));
  node.made = {made[0], mask};
  return {};
}

// One scale and bias per group became one per channel.
Result<void> group_norm_channels(UpgradeNode& node) {
  const int64_t groups = node.attr<int64_t>("num_groups");
  Builder& b = node.builder;
  if (groups < 1) return error(Code::invalid_argument, "'num_groups' is ", groups);
  TENON_TRY(channels, b.op("Shape", {node.operand(0)}, {{"start", 1}, {"end", 2}}));
  TENON_TRY(per_group, b.op("Div", {channels, b.constant_ints({groups})}));
  TENON_TRY(expanded, b.op("Concat", {b.constant_ints({groups}), per_group}, {{"axis", 0}}));
  for (const size_t i : {size_t{1}, size_t{2}}) {
    TENON_TRY(column, b.op("Reshape", {node.operand(i), b.constant_ints({-1, 1})}));
    TENON_TRY(repeated, b.op("Expand", {column, expanded}));
    TENON_OK(keep(b.op("Reshape", {repeated, b.constant_ints({-1})}), node.operands[i]));
  }
  return {};
}

Result<void> grid_sample_modes(UpgradeNode& node) {
  const std::string mode = node.attr<std::string>("mode", "bilinear");
  node.attributes.set("mode", mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode);
  return {};
}

Result<void> roi_align_mode(UpgradeNode& node) {
  node.attributes.set("coordinate_transformation_mode", "output_half_pixel");
  return {};
}

Result<void> mean_variance_axes(UpgradeNode& node) {
  const bool across = node.take<int64_t>("across_channels").value_or(0) != 0;
  const bool variance = node.take<int64_t>("normalize_variance").value_or(1) != 0;
  const Integers axes = across ? Integers{0, 1, 2, 3} : Integers{0, 2, 3};
  node.attributes.set("axes", axes);
  if (variance) return {};
  Builder& b = node.builder;
  TENON_TRY(mean, b.op("ReduceMean", {node.operand(0), b.constant_ints(axes)}));
  TENON_TRY(y, b.op("Sub", {node.operand(0), mean}));
  node.made = {y};
  return {};
}

// ---- ai.onnx.ml ----

// One list of classes was used in both directions: from strings to their positions, or from positions to strings.
Result<void> label_encoder_lists(UpgradeNode& node) {
  auto classes = node.take<Texts>("classes_strings");
  if (!classes) return {};
  Integers places(classes->size());
  std::iota(places.begin(), places.end(), int64_t{0});
  TENON_TRY(element, element_of(node, 0));
  const bool from_strings = element.is_string();
  node.attributes.set(from_strings ? "keys_strings" : "values_strings", *std::move(classes));
  node.attributes.set(from_strings ? "values_int64s" : "keys_int64s", std::move(places));
  return {};
}

// ---- Resize ----

// Versions 7 and 9 of Upsample, and 10 of Resize: positions are divided by the scale, and rounded down for nearest.
Result<void> resize_asymmetric(UpgradeNode& node) {
  const std::string mode = node.attr<std::string>("mode", "nearest");
  node.operands = {node.operand(0), nullptr, node.operand(1)};
  node.attributes.set("mode", mode == "bilinear" ? "linear" : mode);
  node.attributes.set("coordinate_transformation_mode", "asymmetric");
  node.attributes.set("nearest_mode", "floor");
  node.version = kNewestOpset;
  node.op = "Resize";
  return {};
}

Result<void> upsample_scales(UpgradeNode& node) {
  const auto height = node.take<float>("height_scale"), width = node.take<float>("width_scale");
  auto scales = node.take<Reals>("scales");
  if (height && width) scales = Reals{1, 1, *height, *width};
  if (!scales) return error(Code::invalid_argument, "it has no scales");
  node.set_operand(1, node.builder.constant(Tensor::of<float>({static_cast<int64_t>(scales->size())}, *scales)));
  return {};
}

// (x + 0.5) / scale, rounded, is half_pixel's (x + 0.5) / scale - 0.5 with another rounding: floor(v) is the nearest
// integer of v - 0.5 with ties up, and the nearest integer of v with ties down is ceil(v - 0.5).
Result<void> resize_half_pixel_for_nn(UpgradeNode& node) {
  if (node.attr<std::string>("coordinate_transformation_mode", "half_pixel") != "tf_half_pixel_for_nn") return {};
  const std::string mode = node.attr<std::string>("mode", "nearest"),
                    nearest = node.attr<std::string>("nearest_mode", "round_prefer_floor");
  if (mode != "nearest" || (nearest != "floor" && nearest != "round_prefer_floor")) {
    return error(Code::unsupported, "tf_half_pixel_for_nn with mode ", mode, " and nearest_mode ", nearest,
                 " has no newer form");
  }
  node.attributes.set("coordinate_transformation_mode", "half_pixel");
  node.attributes.set("nearest_mode", nearest == "floor" ? "round_prefer_ceil" : "ceil");
  return {};
}

// An operand without elements means an absent one.
Result<void> resize_absent(UpgradeNode& node) {
  for (const size_t i : {size_t{1}, size_t{2}, size_t{3}}) {
    const Value* operand = node.operand(i);
    const bool known = operand && operand->type().is_tensor() && operand->type().shape().ranked() &&
                       operand->type().shape().rank() == 1;
    if (known && operand->type().shape()[0] == Dim(0)) node.operands[i] = nullptr;
  }
  return {};
}

// ---- The table ----

// By operator, then by version. A rule that renames continues with the rules of the new name; one that produces a later
// form than that of the next version raises the node's version.
constexpr Rule kRules[] = {
    {"Add", 7, explicit_broadcast},
    {"And", 7, explicit_broadcast},
    {"BatchNormalization", 9, batch_norm_per_activation},
    {"BatchNormalization", 14, batch_norm_training},
    {"Cast", 6, cast_to_number},
    {"Clip", 11, clip_limits},
    {"Concat", 4, concat_axis},
    {"Constant", kAlways, constant_value},
    {"DFT", 20, dft_axis},
    {"Div", 7, explicit_broadcast},
    {"Dropout", 12, dropout_operands},
    {"Equal", 7, explicit_broadcast},
    {"GRU", 7, drop<"output_sequence">},
    {"Gemm", 7, drop<"broadcast">},
    {"GlobalLpPool", 2, power_to_integer},
    {"Greater", 7, explicit_broadcast},
    {"GridSample", 20, grid_sample_modes},
    {"GroupNormalization", 21, group_norm_channels},
    {"Hardmax", 13, flattened},
    {"LSTM", 7, drop<"output_sequence">},
    {"Less", 7, explicit_broadcast},
    {"LogSoftmax", 13, flattened},
    {"LpPool", 2, power_to_integer},
    {"MeanVarianceNormalization", 9, mean_variance_axes},
    {"Mul", 7, explicit_broadcast},
    {"Or", 7, explicit_broadcast},
    {"PRelu", 7, prelu_per_channel},
    {"Pad", 2, pad_paddings},
    {"Pad", 11, pad_operands},
    {"Pow", 7, explicit_broadcast},
    {"RNN", 7, drop<"output_sequence">},
    {"ReduceL1", 18, axes_to_operand},
    {"ReduceL2", 18, axes_to_operand},
    {"ReduceLogSum", 18, axes_to_operand},
    {"ReduceLogSumExp", 18, axes_to_operand},
    {"ReduceMax", 18, axes_to_operand},
    {"ReduceMean", 18, axes_to_operand},
    {"ReduceMin", 18, axes_to_operand},
    {"ReduceProd", 18, axes_to_operand},
    {"ReduceSum", 13, axes_to_operand},
    {"ReduceSumSquare", 18, axes_to_operand},
    {"Reshape", 5, reshape_shape},
    {"Resize", 11, resize_asymmetric},
    {"Resize", 13, resize_half_pixel_for_nn},
    {"Resize", kAlways, resize_absent},
    {"RoiAlign", 16, roi_align_mode},
    {"Scatter", 11, scatter_elements},
    {"Selu", 6, selu_constants},
    {"Slice", 10, slice_operands},
    {"Softmax", 13, flattened},
    {"Split", 13, split_operand},
    {"Split", 18, split_count},
    {"Squeeze", 13, axes_to_operand},
    {"Sub", 7, explicit_broadcast},
    {"Tile", 6, tile_repeats},
    {"TopK", 10, top_k_operand},
    {"Unsqueeze", 13, axes_to_operand},
    {"Upsample", 9, upsample_scales},
    {"Upsample", 10, resize_asymmetric},
    {"Xor", 7, explicit_broadcast},
    {"ai.onnx.ml.LabelEncoder", 2, label_encoder_lists},
};

struct Renamed {
  std::string_view old, now;
};
constexpr Renamed kRenamed[] = {{"Scatter", "ScatterElements"}, {"Upsample", "Resize"}};

constexpr auto by_op = [](const Rule& a, const Rule& b) {
  return a.op < b.op || (a.op == b.op && a.before < b.before);
};
static_assert(std::is_sorted(std::begin(kRules), std::end(kRules), by_op));

const Rule* first_rule(std::string_view op) {
  return std::lower_bound(std::begin(kRules), std::end(kRules), op,
                          [](const Rule& rule, std::string_view name) { return rule.op < name; });
}

}  // namespace

Result<void> upgrade(UpgradeNode& node) {
  // A hint about in-place execution that opset 6 removed.
  if (node.version < 6) node.attributes.erase("consumed_inputs");
  const Rule* rule = first_rule(node.op.view());
  while (rule != std::end(kRules) && rule->op == node.op.view()) {
    if (node.version < rule->before) {
      TENON_OK(rule->apply(node));
      if (!node.made.empty()) return {};
      if (rule->op != node.op.view()) {
        rule = first_rule(node.op.view());
        continue;
      }
    }
    ++rule;
  }
  return {};
}

std::string_view newest_name(std::string_view op) {
  const auto found =
      std::find_if(std::begin(kRenamed), std::end(kRenamed), [&](const auto& row) { return row.old == op; });
  return found == std::end(kRenamed) ? op : found->now;
}

Result<void> numbers_to_types(Name op, Attributes& attributes) {
  const OpDef* def = find_op(op);
  if (!def) return {};
  for (const AttributeDef& wanted : def->attributes()) {
    const Attribute* given = wanted.kind == AttributeKind::type ? attributes.find(wanted.name) : nullptr;
    const int64_t* number = given ? given->get_if<int64_t>() : nullptr;
    if (!number) continue;
    if (*number == 0) {
      attributes.erase(wanted.name);
      continue;
    }
    if (*number != static_cast<int32_t>(*number)) {
      return error(Code::invalid_argument, "attribute '", wanted.name, "' is ", *number, ", which is no element type");
    }
    TENON_TRY(element, element_from_number(static_cast<int32_t>(*number)), "attribute '", wanted.name, "'");
    attributes.set(wanted.name, Type(element, Shape()));
  }
  return {};
}

}  // namespace tenon::onnx
