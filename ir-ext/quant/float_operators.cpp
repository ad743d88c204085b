#include <tenon-ext/quant/accumulator_internal.hpp>
#include <tenon-ext/quant/float_forms_internal.hpp>
#include <tenon-ext/quant/passes.hpp>
#include <tenon/ops/convolution.hpp>
#include <tenon/ops/matmul.hpp>
#include <tenon/ops/pooling.hpp>

namespace tenon::quant {

std::vector<FloatOperator> float_operators(const Graph& graph) {
  std::vector<FloatOperator> found;
  for (const Op& op : graph.body()) {
    const bool product = isa<Conv>(op) || isa<Gemm>(op) || isa<MatMul>(op);
    if (!product && !op.is("Add") && !is_mean(op) && !isa<MaxPool>(op)) continue;
    if (!op.result()->type().is_tensor() || !op.result()->type().element().is_float()) continue;
    std::string why = "its operands are not quantised";
    if (quantised(op.operand(0))) why = "its result is not rounded, or several read it before that";
    if (product && !constant_of(op.operand(1))) why = "its weights are no constant";
    found.push_back({op.describe(), why});
  }
  return found;
}

}  // namespace tenon::quant
