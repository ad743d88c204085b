#include <tenon/ops/gradient.hpp>

#include <vector>

namespace tenon {
namespace {

Result<Value*> sum_over(Builder& builder, Value* value, const std::vector<int64_t>& axes, bool keep) {
  if (axes.empty()) return value;
  return builder.op("ReduceSum", {value, builder.constant_ints(axes)}, {{"keepdims", keep ? 1 : 0}});
}

}  // namespace

Result<Value*> sum_to_operand(Builder& builder, Value* gradient, const Value* operand) {
  const Shape from = gradient->type().is_tensor() ? gradient->type().shape() : Shape();
  const Shape to = operand->type().is_tensor() ? operand->type().shape() : Shape();
  const auto unknown = [&] {
    return error(Code::unsupported, "a gradient of shape ", from, " cannot be summed to the shape ", to,
                 ": it is not known which dims were broadcast; give the model static shapes");
  };
  if (!from.ranked() || !to.ranked() || from.rank() < to.rank()) return unknown();
  const auto added = static_cast<size_t>(from.rank() - to.rank());
  std::vector<int64_t> leading, stretched;
  for (size_t d = 0; d < added; ++d) leading.push_back(static_cast<int64_t>(d));
  for (size_t d = 0; d < to.dims().size(); ++d) {
    const Dim& wide = from[added + d];
    if (to[d].same_extent(wide)) continue;
    if (!to[d].is_static() || to[d].value() != 1) return unknown();
    stretched.push_back(static_cast<int64_t>(d));
  }
  TENON_TRY(lower, sum_over(builder, gradient, leading, false));
  return sum_over(builder, lower, stretched, true);
}

}  // namespace tenon
