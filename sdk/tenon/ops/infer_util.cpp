#include <tenon/ops/infer_util.hpp>

#include <algorithm>

#include <tenon/expr/bounds.hpp>

namespace tenon {
namespace {

Assumptions no_symbol_negative(const Expr& e) {
  Assumptions assumptions;
  for (const std::string& symbol : e.symbols()) assumptions[symbol] = {0, std::nullopt};
  return assumptions;
}

}  // namespace

Shape unknown_shape(int64_t rank) { return Shape(std::vector<Dim>(static_cast<size_t>(rank))); }

Dim product_of(std::span<const Dim> dims) {
  Dim product = 1;
  for (const Dim& dim : dims) product = product * dim;
  return product;
}

std::optional<std::vector<int64_t>> numbers_of(std::span<const Dim> dims) {
  std::vector<int64_t> numbers;
  for (const Dim& dim : dims) {
    if (!dim.is_static()) return std::nullopt;
    numbers.push_back(dim.value());
  }
  return numbers;
}

Dim extent(const Expr& e) { return e.is_constant() ? Dim(e) : Dim(simplify(e, no_symbol_negative(e))); }

bool may_be_one_number(const Shape& shape) {
  return std::ranges::all_of(shape.dims(), [](const Dim& dim) { return !dim.is_static() || dim.value() == 1; });
}

bool certainly_differ(const Dim& a, const Dim& b) {
  if (!a.known() || !b.known()) return false;
  const Expr difference = a.expr() - b.expr();
  return difference.is_constant() && difference.constant() != 0;
}

bool certainly_at_least(const Dim& dim, int64_t bound) {
  return dim.known() && prove_le(Expr(bound), dim.expr(), no_symbol_negative(dim.expr()));
}

std::optional<int64_t> static_length(const InferContext& context, size_t operand) {
  const Type& type = context.type(operand);
  if (!type.is_tensor() || !type.shape().ranked() || type.shape().rank() != 1) return std::nullopt;
  const Dim& length = type.shape()[0];
  return length.is_static() ? std::optional(length.value()) : std::nullopt;
}

namespace {

Result<void> require(const InferContext& context, size_t operand, int64_t rank, bool or_more) {
  const Type& type = context.type(operand);
  if (!type.is_tensor() || !type.shape().ranked()) return {};
  const int64_t actual = type.shape().rank();
  if (actual == rank || (or_more && actual > rank)) return {};
  return error(Code::invalid_argument, "operand ", operand, " of ", context.op().describe(), " must have rank ", rank,
               or_more ? " or more" : "", ", it is ", type);
}

}  // namespace

bool given(const InferContext& context, size_t operand) {
  return operand < context.operand_count() && context.has_operand(operand);
}

Result<void> require_rank(const InferContext& context, size_t operand, int64_t rank) {
  return require(context, operand, rank, false);
}
Result<void> require_rank_at_least(const InferContext& context, size_t operand, int64_t rank) {
  return require(context, operand, rank, true);
}

Result<void> require_shape(const InferContext& context, size_t operand, const Shape& wanted) {
  TENON_OK(require_rank(context, operand, wanted.rank()));
  const Shape& shape = context.type(operand).shape();
  for (int64_t axis = 0; shape.ranked() && axis < wanted.rank(); ++axis) {
    if (!certainly_differ(shape[axis], wanted[axis])) continue;
    return error(Code::invalid_argument, "operand ", operand, " of ", context.op().describe(), " is ", shape,
                 ", it must be ", wanted);
  }
  return {};
}

Result<Type> join(const Type& a, const Type& b) {
  if (!a.known() || !b.known()) return Type();
  if (a.kind() != b.kind() ||
      (a.is_tensor() && a.element().valid() && b.element().valid() && a.element() != b.element())) {
    return error(Code::invalid_argument, "one is ", a, ", the other ", b);
  }
  if (!a.is_tensor()) {
    TENON_TRY(inner, join(a.inner(), b.inner()));
    return a.is_sequence() ? Type::sequence(std::move(inner)) : Type::optional(std::move(inner));
  }
  const ElementType element = a.element().valid() ? a.element() : b.element();
  if (!a.shape().ranked() || !b.shape().ranked() || a.shape().rank() != b.shape().rank()) return Type(element, Shape());
  Shape shape = a.shape();
  for (size_t d = 0; d < shape.dims().size(); ++d) {
    if (!shape[d].same_extent(b.shape()[d])) shape[d] = Dim();
  }
  return Type(element, std::move(shape));
}

Result<void> check_region(const InferContext& context, size_t region, std::span<const Type> given, size_t outputs) {
  const Region& body = context.op().region(region);
  if (body.input_count() != given.size() || body.output_count() != outputs) {
    return error(Code::invalid_argument, "region ", region, " of ", context.op().describe(), " has ",
                 body.input_count(), " inputs and ", body.output_count(), " outputs; its operands and results ask for ",
                 given.size(), " and ", outputs);
  }
  const auto held = [](const Type& type) -> const Type& { return type.is_optional() ? type.inner() : type; };
  for (size_t i = 0; i < given.size(); ++i) {
    const Value& input = *body.input(i);
    TENON_OK(join(held(input.type()), held(given[i])), "input ", i, " ('", input.name(), "') of region ", region,
             " of ", context.op().describe(), ", which is declared ", input.type(), " and given ", given[i]);
  }
  return {};
}

Result<size_t> axis_attribute(const InferContext& context, Name name, int64_t fallback, int64_t rank) {
  TENON_TRY(axis, normalize_axis(context.attr<int64_t>(name, fallback), rank), "attribute '", name, "'");
  return static_cast<size_t>(axis);
}

Result<std::vector<size_t>> normalize_axes(std::span<const int64_t> axes, int64_t rank) {
  std::vector<size_t> normal;
  for (const int64_t given : axes) {
    TENON_TRY(axis, normalize_axis(given, rank));
    if (std::find(normal.begin(), normal.end(), static_cast<size_t>(axis)) != normal.end()) {
      return error(Code::invalid_argument, "axis ", given, " stands twice in ", axes, " for rank ", rank);
    }
    normal.push_back(static_cast<size_t>(axis));
  }
  return normal;
}

std::optional<std::vector<int64_t>> known_ints(const InferContext& context, size_t operand) {
  if (!context.has_operand(operand)) return std::nullopt;
  if (const Tensor* tensor = context.constant(operand)) {
    return tensor->element().is_int() ? std::optional(tensor->to_ints()) : std::nullopt;
  }
  const auto dims = context.dims_value(operand);
  return dims ? numbers_of(*dims) : std::nullopt;
}

InferDimsFn dims_of_operand(size_t i) {
  return [i](const InferContext& context) { return context.dims_value(i); };
}

Dim truncating_div(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) {
    if (b.value() == 0 || b.value() == -1) return b.value() == 0 ? Dim() : Dim(-a.expr());
    return Dim(a.value() / b.value());
  }
  return certainly_at_least(a, 0) && certainly_at_least(b, 1) ? extent(floordiv(a.expr(), b.expr())) : Dim();
}

}  // namespace tenon
