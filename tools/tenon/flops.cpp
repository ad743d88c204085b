#include "flops.hpp"

#include <tenon/ir/visitor.hpp>
#include <tenon/support/log.hpp>

namespace tenon::cli {
namespace {

int64_t elements(const Value* value) {
  const auto dims = value && value->type().is_tensor() ? value->type().shape().static_dims() : std::nullopt;
  if (!dims) return 0;
  const auto count = element_count(*dims);
  return count.ok() ? *count : 0;
}

Dims dims_of(const Value* value) {
  if (!value || !value->type().is_tensor()) return {};
  return value->type().shape().static_dims().value_or(Dims());
}

// Each output element of a convolution sums over one filter.
Result<int64_t> convolution(Op& op) {
  const Dims filter = dims_of(op.operand(op.is("QLinearConv") ? 3 : 1));
  if (filter.empty() || filter[0] == 0) return 0;
  int64_t taps = 1;
  for (size_t i = 1; i < filter.size(); ++i) taps *= filter[i];
  return 2 * elements(op.result()) * taps;
}

// Each input element of a transposed convolution contributes to as many outputs as a filter has elements.
Result<int64_t> transposed_convolution(Op& op) {
  const Dims filter = dims_of(op.operand(1));
  int64_t taps = filter.empty() ? 0 : 1;
  for (size_t i = 1; i < filter.size(); ++i) taps *= filter[i];
  return 2 * elements(op.operand(0)) * taps;
}

Result<int64_t> matrix_product(Op& op) {
  const Dims a = dims_of(op.operand(0));
  if (a.empty()) return 0;
  const bool transposed = op.is("Gemm") && op.attr<int64_t>("transA") != 0;
  return 2 * elements(op.result()) * (transposed ? a.front() : a.back());
}

// X [steps, batch, input], W [directions, gates * hidden, input], R [directions, gates * hidden, hidden].
Result<int64_t> recurrent(Op& op) {
  const Dims x = dims_of(op.operand(0));
  if (x.size() != 3) return 0;
  return 2 * x[0] * x[1] * (elements(op.operand(1)) + elements(op.operand(2)));
}

// Q [.., queries, depth], K [.., keys, depth]: two products.
Result<int64_t> attention(Op& op) {
  const Dims k = dims_of(op.operand(1));
  if (k.size() < 2) return 0;
  return 4 * elements(op.operand(0)) * k[k.size() - 2];
}

}  // namespace

int64_t count_flops(Graph& graph) {
  OpVisitor<int64_t> flops("flops");
  for (const char* op : {"Conv", "ConvInteger", "QLinearConv"}) flops.on(op, convolution);
  flops.on("ConvTranspose", transposed_convolution);
  for (const char* op : {"MatMul", "Gemm", "MatMulInteger", "QLinearMatMul"}) flops.on(op, matrix_product);
  for (const char* op : {"RNN", "GRU", "LSTM"}) flops.on(op, recurrent);
  flops.on("Attention", attention);
  flops.otherwise([](Op&) -> Result<int64_t> { return 0; });
  int64_t total = 0;
  for_each_op(graph.body(), [&](Op& op) {
    const auto count = flops.visit(op);
    if (count.ok()) total += *count;
  });
  return total;
}

}  // namespace tenon::cli
