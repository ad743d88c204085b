// Operators over padded extents, as blocked kernels compute them: padding takes part. A sum over channels, for example,
// is correct only if padding is zero.
#include <algorithm>
#include <map>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/reference/elements.hpp>
#include <tenon/reference/interpreter_internal.hpp>

namespace tenon::interpreter {

// ---- Which extents ----

namespace {

using Extents = std::optional<std::vector<Dims>>;
using Rule = Extents (*)(const Op& op, const PaddedExtents& extents);

// x [N, C, ...], w [O, I, ...], bias [O]: over all channels that both have.
Extents convolution(const Op& op, const PaddedExtents& extents) {
  if (op.attr<int64_t>("group", 1) != 1) return std::nullopt;
  std::vector<Dims> to = extents.logical;
  if (to.size() < 2 || to[0].size() < 3 || to[0].size() != to[1].size()) return std::nullopt;
  const Dims &x = extents.boxes[0], &w = extents.boxes[1];
  to[0][0] = x[0];
  to[0][1] = to[1][1] = std::min(x[1], w[1]);
  to[1][0] = w[0];
  if (to.size() > 2 && !to[2].empty()) to[2][0] = w[0];
  return to;
}

// [..., M, K] times [..., K, N].
Extents matmul(const Op&, const PaddedExtents& extents) {
  std::vector<Dims> to = extents.logical;
  if (to.size() != 2 || to[0].size() < 2 || to[0].size() != to[1].size()) return std::nullopt;
  const size_t last = to[0].size() - 1;
  const Dims &a = extents.boxes[0], &b = extents.boxes[1];
  to[0][last - 1] = a[last - 1];
  to[0][last] = to[1][last - 1] = std::min(a[last], b[last - 1]);
  to[1][last] = b[last];
  return to;
}

Extents gemm(const Op& op, const PaddedExtents& extents) {
  std::vector<Dims> to = extents.logical;
  if (to.size() < 2 || to[0].size() != 2 || to[1].size() != 2) return std::nullopt;
  const size_t k_of_a = op.attr<int64_t>("transA", 0) != 0 ? 0 : 1, k_of_b = op.attr<int64_t>("transB", 0) != 0 ? 1 : 0;
  const Dims &a = extents.boxes[0], &b = extents.boxes[1];
  const int64_t m = a[1 - k_of_a], n = b[1 - k_of_b];
  to[0][1 - k_of_a] = m;
  to[0][k_of_a] = to[1][k_of_b] = std::min(a[k_of_a], b[k_of_b]);
  to[1][1 - k_of_b] = n;
  if (to.size() < 3) return to;
  Dims& c = to[2];
  if (!c.empty() && c.back() != 1) c.back() = n;
  if (c.size() == 2 && c[0] != 1) c[0] = m;
  return to;
}

// All of operand 0. Its padding must hold the neutral element of the operator.
Extents reduction(const Op&, const PaddedExtents& extents) {
  std::vector<Dims> to = extents.logical;
  to[0] = extents.boxes[0];
  return to;
}

// x [N, C, ...] and values per channel: spatial dims keep their extents.
// Further results (positions of maxima, statistics) count elements.
Extents channelwise(const Op& op, const PaddedExtents& extents) {
  std::vector<Dims> to = extents.logical;
  if (to[0].size() < 2 || op.result_count() > 1) return std::nullopt;
  to[0][0] = extents.boxes[0][0];
  to[0][1] = extents.boxes[0][1];
  for (size_t i = 1; i < to.size(); ++i) {
    if (to[i].size() == 1) to[i][0] = to[0][1];
  }
  return to;
}

// Every operand that is not broadcast along a dim has the largest extent of all operands.
Extents broadcasting(const Op&, const PaddedExtents& extents) {
  size_t rank = 0;
  for (const Dims& dims : extents.logical) rank = std::max(rank, dims.size());
  std::vector<Dims> to = extents.logical;
  for (size_t back = 1; back <= rank; ++back) {
    int64_t widest = 0;
    for (size_t i = 0; i < to.size(); ++i) {
      if (to[i].size() < back) continue;
      const size_t d = to[i].size() - back;
      if (extents.logical[i][d] != 1) widest = std::max(widest, extents.boxes[i][d]);
    }
    for (Dims& dims : to) {
      if (dims.size() >= back && dims[dims.size() - back] != 1) dims[dims.size() - back] = widest;
    }
  }
  return to;
}

const std::map<std::string_view, Rule>& rules() {
  static const std::map<std::string_view, Rule> kRules = {
      {"Conv", convolution},
      {"MatMul", matmul},
      {"Gemm", gemm},
      {"ReduceSum", reduction},
      {"ReduceSumSquare", reduction},
      {"ReduceL1", reduction},
      {"ReduceL2", reduction},
      {"ReduceLogSum", reduction},
      {"ReduceLogSumExp", reduction},
      {"ReduceMax", reduction},
      {"ReduceMin", reduction},
      {"ReduceProd", reduction},
      {"MaxPool", channelwise},
      {"AveragePool", channelwise},
      {"GlobalMaxPool", channelwise},
      {"GlobalAveragePool", channelwise},
      {"BatchNormalization", channelwise},
  };
  return kRules;
}

Rule rule_of(const Op& op) {
  const auto found = rules().find(op.name().view());
  if (found != rules().end()) return found->second;
  const OpDef* def = op.def();
  return def && def->has(Trait::elementwise) && !def->has(Trait::random) && op.region_count() == 0 ? broadcasting
                                                                                                   : nullptr;
}

}  // namespace

std::optional<std::vector<Dims>> padded_extents(const Op& op, const PaddedExtents& extents) {
  const Rule rule = rule_of(op);
  if (!rule || extents.logical.empty()) return std::nullopt;
  return rule(op, extents);
}

// ---- Boxes ----

namespace {

Dims row_major_strides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

// The tensor cropped, or extended by zeros.
Result<Tensor> fitted(const Tensor& tensor, const Dims& dims, ParallelFor& parallel) {
  if (tensor.dims() == dims) return tensor;
  TENON_TRY(from, spread(tensor));
  TENON_TRY(to, SpreadOutput::make(tensor.element(), dims));
  fill_zero(to.tensor());
  Dims common(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) common[d] = std::min(dims[d], tensor.dim(d));
  copy_elements(parallel, from, {0, row_major_strides(tensor.dims())}, to.tensor(), {0, row_major_strides(dims)},
                common);
  TENON_OK(to.close());
  return to.result();
}

bool covers(const Dims& wide, const Dims& dims) {
  if (wide.size() != dims.size()) return false;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (wide[d] < dims[d]) return false;
  }
  return true;
}

}  // namespace

Result<Tensor> LaidStep::padded_operand(size_t i, const Dims& dims) const {
  const LaidOut* laid_out = operand_layout(i);
  const Tensor& stored = runner_.memory_.slots[operand_slot(i)].tensor();
  if (!laid_out || !laid_out->box()) {
    TENON_TRY(logical, runner_.logical(operand_slot(i)));
    return fitted(logical.tensor(), dims, runner_.parallel_);
  }
  const LaidOut::Box& box = *laid_out->box();
  TENON_TRY(whole, Tensor::allocate(laid_out->element(), box.layout.shape()));
  if (box.unpack.kind() == ReorderKind::no_op) {
    std::copy_n(stored.data(), whole.bytes(), whole.mutable_data());
  } else {
    TENON_OK(box.unpack.run(bytes_of(stored), bytes_of(whole), runner_.parallel_));
  }
  return fitted(whole, dims, runner_.parallel_);
}

Result<bool> LaidStep::store_padded(size_t i, const Tensor& made, const Type& type) {
  const auto dims = type.is_tensor() ? type.shape().static_dims() : std::nullopt;
  if (!dims || !covers(made.dims(), *dims)) return false;
  TENON_TRY(target, result_layout(i, type));
  if (!target || !target->box()) {
    TENON_TRY(logical, fitted(made, *dims, runner_.parallel_));
    TENON_OK(store_logical(i, Datum(std::move(logical))));
    return true;
  }
  const LaidOut::Box& box = *target->box();
  TENON_TRY(whole, fitted(made, box.layout.shape(), runner_.parallel_));
  TENON_TRY(bytes, runner_.physical(result_slot(i), *target));
  if (box.pack.kind() == ReorderKind::no_op) {
    std::copy_n(whole.data(), whole.bytes(), bytes->mutable_data());
  } else {
    TENON_OK(box.pack.run(bytes_of(whole), bytes_of(*bytes), runner_.parallel_));
  }
  auto checked = target->check_padding(bytes_of(*bytes), runner_.plan_.poison);
  if (!checked.ok()) return in_result(i, std::move(checked).error());
  return true;
}

Result<bool> LaidStep::run_padded() {
  PaddedExtents extents;
  for (size_t i = 0; i < op_.operand_count(); ++i) {
    const Type type = operand_type(i);
    const auto dims = type.is_tensor() ? type.shape().static_dims() : std::nullopt;
    if (operand_slot(i) != kNowhere && !dims) return false;
    extents.logical.push_back(dims.value_or(Dims()));
    const LaidOut* laid_out = operand_layout(i);
    extents.boxes.push_back(laid_out && laid_out->box() ? laid_out->box()->layout.shape() : extents.logical.back());
  }
  const auto wanted = padded_extents(op_, extents);
  const auto types = result_types();
  if (!wanted || !types.ok()) return false;
  std::vector<Datum> operands;
  for (size_t i = 0; i < op_.operand_count(); ++i) {
    if (operand_slot(i) == kNowhere) {
      operands.emplace_back();
      continue;
    }
    TENON_TRY(operand, padded_operand(i, (*wanted)[i]));
    operands.emplace_back(std::move(operand));
  }
  LaidContext context(runner_, step_, std::move(operands));
  if (!context.infer().ok()) return false;
  TENON_OK(step_.evaluate(context));
  for (size_t i = 0; i < op_.result_count(); ++i) {
    if (!context.result(i).is_tensor()) return false;
    TENON_TRY(stored, store_padded(i, context.result(i).tensor(), (*types)[i]));
    if (!stored) return false;
  }
  return true;
}

}  // namespace tenon::interpreter
