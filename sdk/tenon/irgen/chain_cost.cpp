#include <tenon/irgen/chain_cost_internal.hpp>

#include <algorithm>
#include <set>

#include <tenon/ir/bounds_rule.hpp>
#include <tenon/ir/infer.hpp>
#include <tenon/ir/op_def.hpp>

namespace tenon::irgen::detail {

double bytes_of(const Value& value) {
  const auto dims = strip_dims(value);
  if (!dims.ok()) return 0;
  double bytes = value.type().element().bits() / 8;
  for (const int64_t extent : *dims) bytes *= static_cast<double>(extent);
  return bytes;
}

double working_set_of(const Op& op) {
  std::set<const Value*> values{op.result()};
  for (const Value* operand : op.operands())
    if (operand) values.insert(operand);
  double bytes = 0;
  for (const Value* value : values) bytes += bytes_of(*value);
  return bytes;
}

namespace {

// Elements of the operand of which most are read for one of the result; 1 where no rule tells.
double reads_per_element(const Op& op) {
  if (op.result_count() != 1 || !op.def() || !op.def()->bounds_fn()) return 1;
  const auto dims = strip_dims(*op.result());
  if (!dims.ok()) return 1;
  Box box;
  for (const int64_t extent : *dims) box.push_back({Expr(extent / 2), Expr(extent / 2)});
  const TypeSource types;
  const auto bounds = operand_bounds(StaticInferContext(op, types), 0, Shape(*dims), box);
  double most = 1;
  for (size_t i = 0; bounds.ok() && i < bounds->operands.size(); ++i) {
    double count = 1;
    for (const DimBounds& d : bounds->operands[i].dims) {
      const Expr extent = d.max - d.min + 1;
      if (extent.is_constant()) count *= static_cast<double>(std::max<int64_t>(extent.constant(), 1));
    }
    most = std::max(most, count);
  }
  return most;
}

}  // namespace

double arithmetic_seconds(const Op& op, const StripOptions& options) {
  const int64_t bits = op.result()->type().is_tensor() ? op.result()->type().element().bits() : 0;
  if (bits < 8) return 0;
  const ArithmeticCost cost =
      options.arithmetic ? options.arithmetic(op) : ArithmeticCost{0, options.model.seconds_per_element};
  const double elements = bytes_of(*op.result()) / (static_cast<double>(bits) / 8);
  return elements * (cost.seconds_per_element + reads_per_element(op) * cost.seconds_per_read);
}

StripCost whole_cost(const Op& op, const StripOptions& options) {
  StripCost cost(options.model);
  const double bytes = working_set_of(op);
  cost.move_and_compute(options.model, bytes, bytes, arithmetic_seconds(op, options));
  cost.seconds += options.model.seconds_per_call;
  return cost;
}

}  // namespace tenon::irgen::detail
