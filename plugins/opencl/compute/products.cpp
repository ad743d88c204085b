// MatMul and Gemm: the target and the known extents determine the form (product_forms.hpp).
#include <cmath>

#include <tenon/ops/matmul.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/group_tile.hpp"
#include "opencl/compute/product_forms.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {

void define_terms(ComputeSource& source, const Product& product, int lanes) {
  source.vectors_of(lanes);
  source.define("A_STEP", product.trans_a ? "a_step" : "1");
  product.define_after(source);
}

void define_operands(ComputeSource& source, const Product& product, int lanes, const Epilogue& epilogue) {
  source.define("LINE(row)", "((batch * M + (row)) * N)");
  source.load("A", product.a, product.work);
  source.load_by_pointer("A", product.a, product.work);
  source.load("B", product.b, product.work);
  source.finish(epilogue, lanes);
}

namespace {

using irgen::KernelRequest;

// alpha times the sums x, plus beta times elements of C.
constexpr std::string_view kAddC = R"(
TV tenon_add_c(const TV x, const long row, const long at, const int count, __global const long* n,
               __global const uchar* a2) {
  TV c;
  if (n[8] == 0) {
    c = (TV)C(row * n[7]);
  } else if (count == LANES) {
    c = CV(row * n[7] + at);
  } else {
    T some[LANES];
    for (int i = 0; i < LANES; ++i) some[i] = C(row * n[7] + at + min(i, count - 1));
    c = VLOAD(0, some);
  }
  return (T)ALPHA * x + (T)BETA * c;
}
)";

std::optional<int64_t> last_dim(const Type& type, size_t from_end) {
  const Shape& shape = type.shape();
  if (!shape.ranked()) return std::nullopt;
  if (from_end >= shape.dims().size()) return 1;
  const Dim& dim = shape[shape.dims().size() - 1 - from_end];
  return dim.is_static() ? std::optional(dim.value()) : std::nullopt;
}

// ---- One work item per job ----

// Where nothing is packed, more columns at a time: longer stretches of B's rows.
ProductTile product_tile(const ProductExtents& extents, ElementType work, const ComputeTarget& target) {
  ProductTile tile = choose_tile(extents, work, target);
  constexpr int kMostVectors = 16;
  if (tile.packs() || target.tiling.exact) return tile;
  const int most = std::min(kMostVectors, target.tiling.registers / tile.rows);
  const int64_t jobs = 2 * target.compute_units;
  while (2 * tile.vectors <= most && (!extents.n || *extents.n >= 2 * tile.columns() * jobs)) tile.vectors *= 2;
  return tile;
}

ComputeLaunch launch_of(const ProductSides& s, const ProductTile& tile, const ComputeTarget& target) {
  ComputeLaunch made{s.numbers(), s.matrices() * ((s.n + tile.columns() - 1) / tile.columns())};
  const RowBlocks blocks = row_blocks(tile, s.m, made.items, tile.packs() && s.k > tile.depth, target);
  made.numbers[kJobRows] = blocks.rows;
  made.items *= s.m == 0 ? 0 : blocks.blocks;
  return made;
}

Result<ComputeKernel> make_item_product(const KernelRequest& request, const ComputeTarget& target,
                                        const Epilogue& epilogue, const Product& product) {
  const ProductTile tile = product_tile(product.extents, product.work, target);
  ComputeSource source(request, target);
  define_terms(source, product, tile.lanes);
  define_tile(source, tile, product.work);
  if (product.trans_b) {
    constexpr int kMostChains = 4;
    define_transpose(source, tile.lanes);
    define_sum_of_lanes(source, tile.lanes, product.work);
    source.define("CHAINS", tile.rows > kMostChains ? 1 : kMostChains);
  }
  source.define("ROW_OF_A(row)", "(a_at + (row) * a_row)");
  source.define("START(row)", "0");
  define_operands(source, product, tile.lanes, epilogue);
  if (tile.packs()) source.of_group();
  const std::string body = tile.packs() ? packed_product_body(tile, product, epilogue) : direct_product_body(product);
  return source.kernel(str(kProductJob, kOuterOffsets, body),
                       [tile, target, sides = product.sides](const CallShapes& shapes) -> Result<ComputeLaunch> {
                         return launch_of(sides(shapes), tile, target);
                       });
}

// ---- Work groups ----

// A column is a row of the transposed product, whose elements are contiguous.
void swap(Product& product) {
  std::swap(product.extents.m, product.extents.n);
  std::swap(product.a, product.b);
  const bool trans_a = product.trans_a;
  product.trans_a = false;  // a single row
  product.trans_b = !trans_a;
  product.sides = [of = product.sides](const CallShapes& shapes) {
    ProductSides sides = of(shapes);
    sides.swap();
    return sides;
  };
}

// The extents that remain when a batch is folded.
void fit_extents(Product& product, const KernelRequest& request) {
  CallShapes shapes{.operands = {}, .results = {Dims()}, .others = {}};
  bool known = true;
  for (size_t i = 0; i < request.operands.size(); ++i) {
    const auto dims = request.passes(i) ? request.operands[i].shape().static_dims() : Dims();
    known = known && dims;
    shapes.operands.push_back(dims.value_or(Dims()));
  }
  if (const auto dims = request.results[0].shape().static_dims(); known && dims) {
    shapes.results = {*dims};
    const ProductSides sides = product.sides(shapes);
    product.extents = {sides.m, sides.n, sides.k};
    product.matrices = sides.matrices();
  } else if (const Shape& a = request.operands[product.a].shape(); !a.ranked() || a.rank() > 2) {
    product.extents.m.reset();
  }
}

Result<ComputeKernel> make_product(const KernelRequest& request, const ComputeTarget& target, const Epilogue& epilogue,
                                   Product product) {
  if (!works_in_groups(target)) return make_item_product(request, target, epilogue, product);
  product.sides = [of = product.sides](const CallShapes& shapes) {
    ProductSides sides = of(shapes);
    sides.fold_batch();
    return sides;
  };
  fit_extents(product, request);
  if (product.extents.n == 1 && product.extents.m != 1) swap(product);
  if (auto made = make_slice_product(request, target, epilogue, product)) return *std::move(made);
  return make_block_product(request, target, epilogue, product);
}

// ---- Operators ----

Result<ComputeKernel> make_matmul(const KernelRequest& request, const ComputeTarget& target, const Epilogue& epilogue) {
  const Type &a = request.operands[0], &b = request.operands[1];
  const bool row = a.shape().ranked() && a.shape().rank() == 1, column = b.shape().ranked() && b.shape().rank() == 1;
  Product product{.work = work_type_of(a.element()),
                  .extents = {row ? 1 : last_dim(a, 1), column ? 1 : last_dim(b, 0), last_dim(a, 0)}};
  product.sides = [](const CallShapes& shapes) {
    return matmul_sides(shapes.operands[0], shapes.operands[1], shapes.results[0]);
  };
  product.define_after = [](ComputeSource& source) { source.define("AFTER(x, row, at, count)", "(void)0"); };
  return make_product(request, target, epilogue, std::move(product));
}

ProductSides gemm_sides(const Gemm& op, const CallShapes& shapes) {
  const Dims &a = shapes.operands[0], &b = shapes.operands[1], &y = shapes.results[0];
  ProductSides s;
  s.m = y[0], s.n = y[1], s.k = op.trans_a() ? a[0] : a[1];
  s.a_row = op.trans_a() ? 1 : a[1], s.a_step = op.trans_a() ? a[1] : 1;
  s.b_step = op.trans_b() ? 1 : b[1], s.b_column = op.trans_b() ? b[1] : 1;
  if (!op.c()) return s;
  const Dims& c = shapes.operands[2];
  const int64_t columns = c.empty() ? 1 : c.back(), c_rows = c.size() == 2 ? c[0] : 1;
  s.c_column = columns == 1 ? 0 : 1, s.c_row = c_rows == 1 ? 0 : columns;
  return s;
}

void define_gemm_after(ComputeSource& source, const Gemm& op, ElementType work) {
  const auto factor = [&](std::string_view name, float value) {
    if (work.is_float())
      source.define_float(name, value);
    else
      source.define(name, static_cast<int64_t>(value));
  };
  factor("ALPHA", op.alpha());
  factor("BETA", op.beta());
  if (op.c()) {
    source.load("C", 2, work);
    source.functions(kAddC);
    source.define("AFTER(x, row, at, count)", "x = tenon_add_c(x, row, at, count, n, a2)");
  } else {
    source.define("AFTER(x, row, at, count)", op.alpha() == 1 ? "(void)0" : "x = (T)ALPHA * x");
  }
}

Result<ComputeKernel> make_gemm(const KernelRequest& request, const ComputeTarget& target, const Epilogue& epilogue) {
  const Gemm op(const_cast<Op&>(request.op));
  const Type &a = request.operands[0], &y = request.results[0];
  Product product{.work = work_type_of(a.element()),
                  .extents = {last_dim(y, 1), last_dim(y, 0), last_dim(a, op.trans_a() ? 1 : 0)},
                  .trans_a = op.trans_a() != 0,
                  .trans_b = op.trans_b() != 0};
  if (!product.work.is_float() && (op.alpha() != std::floor(op.alpha()) || op.beta() != std::floor(op.beta())))
    return error(Code::unsupported, "alpha and beta of integers are whole on the device");
  product.sides = [op](const CallShapes& shapes) { return gemm_sides(op, shapes); };
  product.define_after = [op, work = product.work](ComputeSource& source) { define_gemm_after(source, op, work); };
  return make_product(request, target, epilogue, std::move(product));
}

constexpr ComputeRow kProductRows[] = {
    {.op = MatMul::kName, .make_with = make_matmul},
    {.op = Gemm::kName, .make_with = make_gemm},
    {.op = MatMulInteger::kName, .make = make_matmul_integer},
};

}  // namespace

std::span<const ComputeRow> product_rows() { return kProductRows; }

}  // namespace tenon::opencl
