#include <tenon/ops/crop.hpp>

#include <algorithm>

#include <tenon/ir/bounds_rule.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ops/movement.hpp>

namespace tenon {
namespace {

std::optional<std::vector<Expr>> begin_of(const InferContext& context, const TypeSource& types, size_t result) {
  const Shape& shape = types.type_of(*context.op().result(result)).shape();
  auto box = whole_box(shape);
  if (!box.ok()) return std::nullopt;
  const auto bounds = operand_bounds(context, result, shape, *box);
  if (!bounds.ok() || bounds->operands[0].kind != OperandBounds::Kind::box) return std::nullopt;
  std::vector<Expr> at;
  for (const DimBounds& dim : bounds->operands[0].dims) at.push_back(dim.whole ? Expr(0) : dim.min);
  return at.size() == shape.dims().size() ? std::optional(std::move(at)) : std::nullopt;
}

bool all_ones(const Value* steps) {
  if (!steps) return true;
  const Tensor* told = constant_of(steps);
  return told && std::ranges::all_of(told->to_ints(), [](int64_t step) { return step == 1; });
}

bool is_crop(const Op& op) { return isa<Slice>(op) ? all_ones(op.operand(4)) : isa<Split>(op); }

}  // namespace

std::optional<std::vector<Expr>> crop_begin(const Op& op, size_t result, const TypeSource& types) {
  if (!is_crop(op)) return std::nullopt;
  return begin_of(StaticInferContext(op, types), types, result);
}

std::optional<std::vector<std::vector<Expr>>> crop_begins(const Op& op, const TypeSource& types) {
  if (!is_crop(op)) return std::nullopt;
  const StaticInferContext context(op, types);
  std::vector<std::vector<Expr>> begins;
  for (size_t r = 0; r < op.result_count(); ++r) {
    auto at = begin_of(context, types, r);
    if (!at) return std::nullopt;
    begins.push_back(*std::move(at));
  }
  return begins;
}

}  // namespace tenon
