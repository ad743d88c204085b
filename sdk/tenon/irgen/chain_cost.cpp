#include <tenon/irgen/chain_cost_internal.hpp>

#include <algorithm>
#include <set>
#include <vector>

#include <tenon/ir/bounds_rule.hpp>
#include <tenon/ir/infer.hpp>
#include <tenon/ir/op_def.hpp>

namespace tenon::irgen::detail {

double bytes_of(const Value& value, const TypeSource& types) {
  const auto dims = strip_dims(value, types);
  if (!dims.ok()) return 0;
  double bytes = types.type_of(value).element().bits() / 8;
  for (const int64_t extent : *dims) bytes *= static_cast<double>(extent);
  return bytes;
}

double working_set_of(const Op& op, const TypeSource& types) {
  std::set<const Value*> values;
  for (const size_t r : used_results(op)) values.insert(op.result(r));
  for (const Value* operand : op.operands())
    if (operand) values.insert(operand);
  double bytes = 0;
  for (const Value* value : values) bytes += bytes_of(*value, types);
  return bytes;
}

namespace {

// Elements read of the operand of which most are read, per element of the result; 1 where no rule states it.
double reads_per_element(const Op& op, size_t result, const TypeSource& types) {
  if (!op.def() || !op.def()->bounds_fn()) return 1;
  const auto dims = strip_dims(*op.result(result), types);
  if (!dims.ok()) return 1;
  Box box;
  for (const int64_t extent : *dims) box.push_back({Expr(extent / 2), Expr(extent / 2)});
  const auto bounds = operand_bounds(StaticInferContext(op, types), result, Shape(*dims), box);
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

std::vector<size_t> used_results(const Op& op) {
  std::vector<size_t> used;
  for (size_t r = 0; r < op.result_count(); ++r)
    if (op.result(r)->used()) used.push_back(r);
  return used;
}

double arithmetic_seconds(const Op& op, size_t result, const StripOptions& options, const TypeSource& types) {
  const Type& type = types.type_of(*op.result(result));
  const int64_t bits = type.is_tensor() ? type.element().bits() : 0;
  if (bits < 8) return 0;
  const ArithmeticCost cost =
      options.arithmetic ? options.arithmetic(op) : ArithmeticCost{0, options.model.seconds_per_element};
  const double elements = bytes_of(*op.result(result), types) / (static_cast<double>(bits) / 8);
  return elements * (cost.seconds_per_element + reads_per_element(op, result, types) * cost.seconds_per_read);
}

StripCost whole_cost(const Op& op, const StripOptions& options, const TypeSource& types) {
  StripCost cost(options.model);
  const double bytes = working_set_of(op, types);
  // A movement operator with several results moves the data once; other operators compute all of theirs at once.
  const bool moves = op.def() && op.def()->has(Trait::movement);
  double arithmetic = 0;
  for (const size_t r : used_results(op)) {
    const double one = arithmetic_seconds(op, r, options, types);
    arithmetic = moves ? arithmetic + one : std::max(arithmetic, one);
  }
  cost.move_and_compute(options.model, bytes, bytes, arithmetic);
  cost.seconds += options.model.seconds_per_call;
  return cost;
}

}  // namespace tenon::irgen::detail
