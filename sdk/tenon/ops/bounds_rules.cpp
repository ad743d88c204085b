#include <tenon/ops/bounds_rules.hpp>

#include <algorithm>
#include <numeric>

#include <tenon/ops/infer_util.hpp>

namespace tenon {

// ---- One dim ----

DimBounds whole_dim(const Dim& extent, bool exact) {
  if (!extent.known()) return {Expr(0), Expr(0), true, exact};
  return {Expr(0), extent.expr() - Expr(1), true, exact};
}

DimBounds clamped(const BoxRange& range, const Dim& extent, bool exact) {
  if (!extent.known()) return whole_dim(extent, false);
  return {max(Expr(0), range.min), min(extent.expr() - Expr(1), range.max), false, exact};
}

BoxRange outer_part(const BoxRange& range, const Expr& inner_extent) {
  return {floordiv(range.min, inner_extent), floordiv(range.max, inner_extent)};
}

BoxRange inner_part(const BoxRange& range, const Expr& inner_extent) {
  const Expr one = equal(floordiv(range.min, inner_extent), floordiv(range.max, inner_extent));
  return {select(one, mod(range.min, inner_extent), Expr(0)),
          select(one, mod(range.max, inner_extent), inner_extent - Expr(1))};
}

// ---- One operand ----

const Shape* ranked_shape(const InferContext& context, size_t operand) {
  if (operand >= context.operand_count() || !context.has_operand(operand)) return nullptr;
  const Type& type = context.type(operand);
  return type.is_tensor() && type.shape().ranked() ? &type.shape() : nullptr;
}

OperandBounds whole_operand(const BoundsQuery& query, size_t operand) {
  if (operand >= query.context.operand_count() || !query.context.has_operand(operand)) return unread();
  const Shape* shape = ranked_shape(query.context, operand);
  if (!shape) return {OperandBounds::Kind::whole, {}};
  std::vector<DimBounds> dims;
  for (const Dim& dim : shape->dims()) dims.push_back(whole_dim(dim, false));
  return boxed(std::move(dims));
}

OperandBounds follow(const BoundsQuery& query, size_t operand, std::span<const int> to) {
  const Shape* shape = ranked_shape(query.context, operand);
  if (!shape || shape->dims().size() != to.size()) return whole_operand(query, operand);
  std::vector<DimBounds> dims;
  for (size_t d = 0; d < to.size(); ++d) {
    const Dim& extent = (*shape)[d];
    const bool one = extent.is_static() && extent.value() == 1;
    dims.push_back(to[d] == kWhole || one ? whole_dim(extent) : exactly(query.box[static_cast<size_t>(to[d])]));
  }
  return boxed(std::move(dims));
}

DimBounds broadcast_dim(const BoundsQuery& query, const Dim& extent, size_t result_dim) {
  if (extent.is_static() && extent.value() == 1) return whole_dim(extent);
  const bool follows = extent.is_static() || extent.same_extent(query.shape[result_dim]);
  return follows ? exactly(query.box[result_dim]) : whole_dim(extent, false);
}

OperandBounds broadcast_to(const BoundsQuery& query, size_t operand) {
  const Shape* shape = ranked_shape(query.context, operand);
  if (!shape || shape->rank() > query.shape.rank()) return whole_operand(query, operand);
  const size_t first = query.box.size() - shape->dims().size();
  std::vector<DimBounds> dims;
  for (size_t d = 0; d < shape->dims().size(); ++d) dims.push_back(broadcast_dim(query, (*shape)[d], first + d));
  return boxed(std::move(dims));
}

std::vector<int> each_dim(size_t rank, std::initializer_list<size_t> whole) {
  std::vector<int> to(rank);
  std::iota(to.begin(), to.end(), 0);
  for (const size_t d : whole) to[d] = kWhole;
  return to;
}

OperandBounds inexact(OperandBounds bounds) {
  for (DimBounds& dim : bounds.dims) dim.exact = false;
  return bounds;
}

// ---- Answers ----

Bounds all_whole(const BoundsQuery& query, bool splits) {
  Bounds bounds;
  for (size_t i = 0; i < query.context.operand_count(); ++i) bounds.operands.push_back(whole_operand(query, i));
  bounds.splits.assign(query.box.size(), splits);
  return bounds;
}

bool asks_whole(const BoundsQuery& query, size_t dim) {
  const Dim& extent = query.shape[dim];
  return extent.known() && query.box[dim] == BoxRange{Expr(0), extent.expr() - Expr(1)};
}

bool keeps_sums(const BoundsQuery& query, std::span<const size_t> blocked) {
  const Type& type = query.context.type(0);
  if (type.is_tensor() && type.element().valid() && !type.element().is_float()) return true;
  return std::ranges::all_of(blocked, [&](size_t dim) { return asks_whole(query, dim); });
}

// ---- Sub-boxes ----

Result<void> require_whole(const SubBoxQuery& query, size_t dim) {
  const StaticRange& range = query.box[dim];
  if (range.min == 0 && range.max == query.shape[dim] - 1) return {};
  return error(Code::unsupported, "it computes all ", query.shape[dim], " positions of dim ", dim, " at once, not [",
               range.min, ", ", range.max, "]");
}

Result<void> require_elements(const SubBoxOp& op, size_t operand) {
  for (size_t d = 0; d < op.operands[operand].size(); ++d) {
    if (op.operands[operand][d].extent() > 0) continue;
    return error(Code::unsupported, "the part reads nothing of dim ", d, " of operand ", operand);
  }
  return {};
}

SubBoxFn runs_as_it_is() {
  return [](const SubBoxQuery& query, SubBoxOp& op) -> Result<void> {
    for (size_t d = 0; d < query.box.size(); ++d) {
      if (!query.bounds.splits[d]) TENON_OK(require_whole(query, d));
    }
    for (size_t i = 0; i < op.operands.size(); ++i) TENON_OK(require_elements(op, i));
    return {};
  };
}

Dims extents_of(const StaticBox& box) {
  Dims dims;
  for (const StaticRange& range : box) dims.push_back(range.extent());
  return dims;
}

Tensor ints_tensor(const std::vector<int64_t>& values, ElementType element) {
  auto made = Tensor::zeros(element, {static_cast<int64_t>(values.size())});
  TENON_CHECK(made.ok(), made.error().to_string());
  for (size_t i = 0; i < values.size(); ++i) made->set_int(static_cast<int64_t>(i), values[i]);
  return *std::move(made);
}

// ---- Rules ----

BoundsRule pointwise(std::vector<size_t> only_type) {
  return {[only_type](const BoundsQuery& query) -> Result<Bounds> {
            Bounds bounds = all_whole(query);
            for (size_t i = 0; i < bounds.operands.size(); ++i) {
              const bool read = std::ranges::find(only_type, i) == only_type.end();
              bounds.operands[i] = read ? broadcast_to(query, i) : unread();
            }
            return bounds;
          },
          runs_as_it_is()};
}

BoundsRule whole_along(Name attribute, int64_t fallback) {
  return {[attribute, fallback](const BoundsQuery& query) -> Result<Bounds> {
            Bounds bounds = all_whole(query);
            TENON_TRY(axis, axis_attribute(query.context, attribute, fallback, query.shape.rank()));
            bounds.operands[0] = follow(query, 0, each_dim(query.box.size(), {axis}));
            bounds.splits[axis] = false;
            return bounds;
          },
          runs_as_it_is()};
}

BoundsRule whole_operands() {
  return {[](const BoundsQuery& query) -> Result<Bounds> { return all_whole(query, false); }, nullptr};
}

// ---- Views ----

namespace {

// Minimal groups of dims of both shapes with the same number of elements.
struct Nest {
  size_t in_begin, in_end, out_begin, out_end;
};

// The product of the dims before each position, as far as they are known.
std::vector<Expr> products(const Shape& shape) {
  std::vector<Expr> out{Expr(1)};
  for (const Dim& dim : shape.dims()) {
    if (!dim.known()) break;
    out.push_back(out.back() * dim.expr());
  }
  return out;
}

std::vector<Nest> nests_of(const Shape& in, const Shape& out) {
  const std::vector<Expr> in_products = products(in), out_products = products(out);
  std::vector<Nest> nests;
  size_t i = 0, j = 0;
  for (size_t k = 1; k < in_products.size(); ++k) {
    const auto same = std::find(out_products.begin() + static_cast<int64_t>(j) + 1, out_products.end(), in_products[k]);
    if (same == out_products.end()) continue;
    const auto at = static_cast<size_t>(same - out_products.begin());
    nests.push_back({i, k, j, at});
    i = k, j = at;
  }
  const size_t in_rank = in.dims().size(), out_rank = out.dims().size();
  if (i < in_rank || j < out_rank) nests.push_back({i, in_rank, j, out_rank});
  return nests;
}

bool all_known(const Shape& shape, size_t begin, size_t end) {
  return std::all_of(shape.dims().begin() + static_cast<int64_t>(begin),
                     shape.dims().begin() + static_cast<int64_t>(end), [](const Dim& dim) { return dim.known(); });
}
bool has_no_elements(const Shape& shape) {
  return std::ranges::any_of(shape.dims(), [](const Dim& dim) { return dim.is_static() && dim.value() == 0; });
}
// The number of dims of a nest that are not known to be 1: with one on either side, the box is exact.
int64_t wide_dims(const Shape& shape, size_t begin, size_t end) {
  return std::count_if(shape.dims().begin() + static_cast<int64_t>(begin),
                       shape.dims().begin() + static_cast<int64_t>(end),
                       [](const Dim& dim) { return !dim.is_static() || dim.value() != 1; });
}

// The positions of a nest as one row, and the decomposition of a row.
BoxRange row_of(const BoundsQuery& query, const Nest& nest) {
  BoxRange row{Expr(0), Expr(0)};
  for (size_t d = nest.out_begin; d < nest.out_end; ++d) {
    const Expr& extent = query.shape[d].expr();
    row = {row.min * extent + query.box[d].min, row.max * extent + query.box[d].max};
  }
  return row;
}
void take_apart(BoxRange row, const Shape& in, const Nest& nest, bool exact, std::vector<DimBounds>& dims) {
  for (size_t d = nest.in_end; d-- > nest.in_begin;) {
    const Expr& extent = in[d].expr();
    const BoxRange range = d == nest.in_begin ? row : inner_part(row, extent);
    dims[d] = exact ? exactly(range) : at_most(range);
    row = outer_part(row, extent);
  }
}

}  // namespace

Result<Bounds> view_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const Shape* in = ranked_shape(query.context, 0);
  if (!in || has_no_elements(*in)) return bounds;
  std::vector<DimBounds>& dims = bounds.operands[0].dims;
  for (const Nest& nest : nests_of(*in, query.shape)) {
    if (!all_known(*in, nest.in_begin, nest.in_end) || !all_known(query.shape, nest.out_begin, nest.out_end)) continue;
    const bool exact =
        wide_dims(*in, nest.in_begin, nest.in_end) <= 1 || wide_dims(query.shape, nest.out_begin, nest.out_end) <= 1;
    take_apart(row_of(query, nest), *in, nest, exact, dims);
  }
  return bounds;
}

}  // namespace tenon
