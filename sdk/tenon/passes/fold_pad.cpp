#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <tenon/ir/builder.hpp>
#include <tenon/ops/convolution.hpp>
#include <tenon/ops/movement.hpp>
#include <tenon/ops/pooling.hpp>
#include <tenon/ops/window.hpp>
#include <tenon/passes/rewrite.hpp>

namespace tenon {
namespace {

// What a Pad adds around the spatial axes: begins, then ends. Nothing if it pads other axes as well, or crops.
std::optional<Dims> spatial_pads(const Op& op, size_t rank) {
  const auto pads = constant_ints_of(op.operand(1));
  if (op.attr<std::string>("mode", "constant") != "constant" || !pads || pads->size() % 2 != 0 || rank < 2) {
    return std::nullopt;
  }
  std::vector<int64_t> axes(rank);
  for (size_t i = 0; i < rank; ++i) axes[i] = static_cast<int64_t>(i);
  if (op.operand(3)) {
    const auto given = constant_ints_of(op.operand(3));
    if (!given) return std::nullopt;
    axes = *given;
  }
  if (pads->size() != 2 * axes.size()) return std::nullopt;
  const size_t spatial = rank - 2;
  Dims out(2 * spatial, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t begin = pads->at(i), end = pads->at(i + axes.size());
    const int64_t axis = axes[i] < 0 ? axes[i] + static_cast<int64_t>(rank) : axes[i];
    if (begin < 0 || end < 0 || (axis < 2 && begin + end > 0)) return std::nullopt;
    if (axis < 2) continue;
    out[static_cast<size_t>(axis) - 2] += begin;
    out[static_cast<size_t>(axis) - 2 + spatial] += end;
  }
  return out;
}

// The element with which a Pad pads; nothing if it is known only at run time.
std::optional<double> pad_value(const Op& op) {
  if (!op.operand(2)) return 0;
  const Tensor* tensor = constant_of(op.operand(2));
  if (!tensor || tensor->size() != 1 || !tensor->element().is_number()) return std::nullopt;
  return tensor->double_at(0);
}

// The operator's window, if its pads are numbers.
std::optional<Window> window_of(const Op& op, size_t rank) {
  if (rank < 3) return std::nullopt;
  const size_t spatial = rank - 2;
  std::vector<Dim> kernel(spatial);
  if (isa<Conv>(op)) {
    const Type& weights = op.operand(1)->type();
    if (!weights.is_tensor() || !weights.shape().ranked() || weights.shape().dims().size() != rank) return std::nullopt;
    kernel.assign(weights.shape().dims().begin() + 2, weights.shape().dims().end());
  }
  auto window = Window::of(op, spatial, std::move(kernel));
  if (!window.ok() || window->ceil_mode) return std::nullopt;
  if (window->auto_pad != AutoPad::notset && window->auto_pad != AutoPad::valid) return std::nullopt;
  return *std::move(window);
}

bool is_least(double value, ElementType element) {
  if (element == kF64 || element == kF32 || element == kF16 || element == kBF16) {
    return value == -std::numeric_limits<double>::infinity();
  }
  if (element.is_unsigned_int()) return value == 0;
  return element.is_signed_int() && element.bits() <= 32 && value == -std::ldexp(1.0, element.bits() - 1);
}

// Whether pads of the operator itself can replace padding with `value`. Changes attributes that must change with them.
bool takes_padding(const Op& op, const Window& window, const Dims& pads, double value, Attributes& attributes) {
  if (isa<Conv>(op)) return value == 0;
  const bool none_so_far = std::all_of(window.pads.begin(), window.pads.end(), [](int64_t pad) { return pad == 0; });
  if (isa<AveragePool>(op)) {
    // The zeros were counted and must still be; so must the pool's own padding.
    if (value != 0 || !(none_so_far || op.attr<int64_t>("count_include_pad", 0) != 0)) return false;
    attributes.set("count_include_pad", 1);
    return true;
  }
  if (!is_least(value, op.operand(0)->type().element()) || (op.result_count() > 1 && op.result(1)->used()))
    return false;
  // A window that is completely in the padding has no maximum.
  for (size_t i = 0; i < window.rank(); ++i) {
    const Dim kernel = window.effective_kernel(i);
    if (!kernel.is_static()) return false;
    for (const size_t side : {i, i + window.rank()}) {
      if (pads[side] >= kernel.value() - window.pads[side]) return false;
    }
  }
  return true;
}

Result<std::vector<Value*>> take_padding(Builder& builder, const Match& match) {
  const std::vector<Value*> declined;
  const Op& op = match.root();
  const Op& pad = match.op("pad");
  const Type& type = match.value("x")->type();
  if (!type.is_tensor() || !type.shape().ranked()) return declined;
  const auto rank = static_cast<size_t>(type.shape().rank());
  const auto pads = spatial_pads(pad, rank);
  const auto value = pad_value(pad);
  const auto window = window_of(op, rank);
  Attributes attributes = op.attributes();
  if (!pads || !value || !window) return declined;
  // Far from any overflow, and within the limits of a window.
  const auto large = [](int64_t pad) { return pad <= -(1 << 30) || pad >= 1 << 30; };
  if (std::ranges::any_of(*pads, large) || std::ranges::any_of(window->pads, large)) return declined;
  if (!takes_padding(op, *window, *pads, *value, attributes)) return declined;
  Dims sum = *pads;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += window->pads[i];
  attributes.set("pads", sum);
  attributes.erase("auto_pad");
  std::vector<Value*> operands = op.operands();
  operands[0] = match.value("x");
  return builder.ops(op.name(), operands, op.result_count(), std::move(attributes));
}

Result<Change> fold_pad(Graph& graph) {
  using namespace pattern;
  static const std::vector<Rewrite> rewrites = {
      Rewrite("pad")
          .match(op({Conv::name(), AveragePool::name(), MaxPool::name()},
                    {op(Pad::name(), {any("x"), constant()}).and_more().as("pad").shared()})
                     .and_more())
          .with_all(take_padding),
  };
  return apply_rewrites(graph, rewrites);
}

const PassRegistration kFoldPadRegistered({{
    .name = "fold-pad",
    .contract = "Padding with zeros goes into Conv and AveragePool, with the least value into MaxPool.\n"
                "Needs inferred types; the same results for finite weights. Other users of the Pad keep it.",
    .run = fold_pad,
    .needs = {"infer-types"},
}});

}  // namespace
}  // namespace tenon
