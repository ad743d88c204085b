#include <tenon/ops/matmul.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>

#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/infer_util.hpp>

namespace tenon {
namespace {

constexpr TypeSet kQuantized("8-bit integers and floats",
                             [](ElementType e) { return e.bits() == 8 && (e.is_int() || e.is_float()); });

Result<Dim> same_extent(const char* what, const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static() && a.value() != b.value()) {
    return error(Code::invalid_argument, what, " of A is ", a.value(), ", of B ", b.value());
  }
  return a.is_static() ? a : b;
}

Result<std::vector<Type>> infer_product(const InferContext& context, size_t a_at, size_t b_at, ElementType element) {
  TENON_TRY(a, context.tensor(a_at));
  TENON_TRY(b, context.tensor(b_at));
  TENON_TRY(shape, matmul_shape(a.shape, b.shape), "the shape of ", context.op().describe());
  return std::vector<Type>{Type(element.valid() ? element : a.element, std::move(shape))};
}

Result<std::vector<Type>> infer_matmul(const InferContext& context) { return infer_product(context, 0, 1, {}); }

// Checks the parameters in operand `at` of a quantised factor or product with this shape: one number, one per line of a
// matrix (with `rows` per row, else per column), or one per line of each matrix.
Result<void> require_parameters(const InferContext& context, size_t at, const Shape& shape, bool rows) {
  if (!given(context, at) || !shape.ranked()) return {};
  TENON_TRY(parameters, context.tensor(at));
  if (!parameters.shape.ranked()) return {};
  std::vector<Dim> all(shape.dims().begin(), shape.dims().end());
  const bool several = all.size() > 1;
  const Dim lines = several ? all[all.size() - (rows ? 2 : 1)] : Dim(1);
  if (!all.empty()) all.erase(all.end() - (rows || !several ? 1 : 2));
  const Dim count = product_of(parameters.shape.dims()), each = product_of(all);
  if (!certainly_differ(count, Dim(1)) || !certainly_differ(count, lines) || !certainly_differ(count, each)) return {};
  return error(Code::invalid_argument, "operand ", at, " of ", context.op().describe(), " is ", parameters.shape,
               ", it must have 1 element, or ", lines, " or ", each, ", one for each ", rows ? "row" : "column", " of ",
               shape);
}

Result<std::vector<Type>> infer_matmul_integer(const InferContext& context) {
  TENON_TRY(types, infer_product(context, 0, 1, kI32));
  TENON_OK(require_parameters(context, 2, context.type(0).shape(), true));
  TENON_OK(require_parameters(context, 3, context.type(1).shape(), false));
  return types;
}
Result<std::vector<Type>> infer_qlinear_matmul(const InferContext& context) {
  TENON_TRY(y_zero_point, context.tensor(7));
  TENON_TRY(types, infer_product(context, 0, 3, y_zero_point.element));
  for (const size_t at : {size_t{1}, size_t{2}})
    TENON_OK(require_parameters(context, at, context.type(0).shape(), true));
  for (const size_t at : {size_t{4}, size_t{5}})
    TENON_OK(require_parameters(context, at, context.type(3).shape(), false));
  for (const size_t at : {size_t{6}, size_t{7}}) TENON_OK(require_parameters(context, at, types[0].shape(), true));
  return types;
}

Result<std::vector<Type>> infer_gemm(const InferContext& context) {
  const Op& op = context.op();
  TENON_TRY(a, context.tensor(0));
  TENON_TRY(b, context.tensor(1));
  for (const Shape* shape : {&a.shape, &b.shape}) {
    if (shape->ranked() && shape->rank() != 2) {
      return error(Code::invalid_argument, op.describe(), " needs matrices, one operand is ", *shape);
    }
  }
  const Shape left = a.shape.ranked() ? a.shape : Shape(std::vector<Dim>(2));
  const Shape right = b.shape.ranked() ? b.shape : Shape(std::vector<Dim>(2));
  const size_t row = context.attr<int64_t>("transA", 0) != 0 ? 1 : 0;
  const size_t column = context.attr<int64_t>("transB", 0) != 0 ? 0 : 1;
  TENON_TRY(inner, same_extent("the inner extent", left[1 - row], right[1 - column]), "the shape of ", op.describe());
  static_cast<void>(inner);
  Shape shape{left[row], right[column]};
  if (context.has_operand(2) && context.type(2).is_tensor()) {
    const Shape& c = context.type(2).shape();
    TENON_TRY(joined, broadcast(shape, c), "C of ", op.describe());
    if (joined.ranked()) {
      for (size_t axis = 0; axis < 2; ++axis) {
        if (joined.rank() > 2 ||
            (shape[axis].is_static() && joined[axis].is_static() && !shape[axis].same_extent(joined[axis]))) {
          return error(Code::invalid_argument, "C of ", op.describe(), " is ", c, ", which does not broadcast to ",
                       shape);
        }
      }
    }
  }
  return std::vector<Type>{Type(a.element, std::move(shape))};
}

Result<std::vector<Type>> infer_einsum(const InferContext& context) {
  const Op& op = context.op();
  TENON_TRY(first, context.tensor(0));
  std::vector<Shape> shapes;
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < context.operand_count(); ++i) {
    TENON_TRY(type, context.tensor(i));
    if (!type.shape.ranked()) return std::vector<Type>{Type(first.element, Shape())};
    ranks.push_back(type.shape.rank());
    shapes.push_back(type.shape);
  }
  TENON_TRY(labels, EinsumLabels::parse(op.attr<std::string>("equation"), ranks), op.describe());
  std::map<int, Dim> extents;
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (size_t axis = 0; axis < labels.operands[i].size(); ++axis) {
      const auto [place, fresh] = extents.emplace(labels.operands[i][axis], shapes[i][axis]);
      if (fresh) continue;
      TENON_TRY(joined, broadcast(Shape{place->second}, Shape{shapes[i][axis]}), "axis ", axis, " of operand ", i,
                " of ", op.describe());
      place->second = joined[0];
    }
  }
  std::vector<Dim> dims;
  for (const int label : labels.output) dims.push_back(extents.at(label));
  return std::vector<Type>{Type(first.element, Shape(std::move(dims)))};
}

Result<std::vector<Type>> infer_det(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  if (!x.shape.ranked()) return std::vector<Type>{Type(x.element, Shape())};
  const auto& dims = x.shape.dims();
  const size_t rank = dims.size();
  if (rank < 2 ||
      (dims[rank - 1].is_static() && dims[rank - 2].is_static() && dims[rank - 1].value() != dims[rank - 2].value())) {
    return error(Code::invalid_argument, context.op().describe(), " needs square matrices, X is ", x.shape);
  }
  return std::vector<Type>{Type(x.element, Shape(std::vector<Dim>(dims.begin(), dims.end() - 2)))};
}

// ---- Bounds ----

// The dims of the result that A's and B's dims follow: the leading ones broadcast, then the rows and columns.
struct ProductDims {
  size_t batch;  // number of leading dims of the result
  int row, column;
};
ProductDims product_dims(const BoundsQuery& query, const Shape& a, const Shape& b) {
  const size_t rank = query.box.size(), rows = a.rank() > 1 ? 1 : 0, columns = b.rank() > 1 ? 1 : 0;
  const size_t batch = rank - rows - columns;
  return {batch, rows ? static_cast<int>(batch) : kWhole, columns ? static_cast<int>(rank - 1) : kWhole};
}

// A matrix operand: its leading dims broadcast to the result's, its last two follow `rows` and `columns`. A vector has
// only the one that is summed over.
OperandBounds factor(const BoundsQuery& query, size_t operand, const ProductDims& dims, int rows, int columns) {
  const Shape& shape = *ranked_shape(query.context, operand);
  if (shape.rank() == 1) return boxed({whole_dim(shape[0])});
  const size_t leading = shape.dims().size() - 2;
  OperandBounds bounds = whole_operand(query, operand);
  for (size_t d = 0; d < leading; ++d) bounds.dims[d] = broadcast_dim(query, shape[d], dims.batch - leading + d);
  for (const auto& [at, to] : {std::pair{leading, rows}, {leading + 1, columns}}) {
    bounds.dims[at] = to == kWhole ? whole_dim(shape[at]) : broadcast_dim(query, shape[at], static_cast<size_t>(to));
  }
  return bounds;
}

// Scales and zero points: one number, one per row (column) as a vector, or one per row with the result's leading dims.
OperandBounds along_lines(const BoundsQuery& query, size_t operand, const ProductDims& dims, bool of_rows) {
  const Shape* shape = ranked_shape(query.context, operand);
  if (!shape || shape->rank() == 0) return whole_operand(query, operand);
  const int line = of_rows ? dims.row : dims.column;
  if (shape->rank() == 1) return follow(query, operand, {line});
  return factor(query, operand, dims, of_rows ? line : kWhole, of_rows ? kWhole : line);
}

// Y[..., i, j] of A[..., i, k] at `a_at` and B[..., k, j] at `b_at`; `of_rows` and `of_columns` have one number per
// line.
Result<Bounds> product_bounds(const BoundsQuery& query, size_t a_at, size_t b_at,
                              std::initializer_list<size_t> of_rows = {},
                              std::initializer_list<size_t> of_columns = {}) {
  Bounds bounds = all_whole(query);
  const Shape *a = ranked_shape(query.context, a_at), *b = ranked_shape(query.context, b_at);
  if (!a || !b) return bounds;
  const ProductDims dims = product_dims(query, *a, *b);
  bounds.operands[a_at] = factor(query, a_at, dims, dims.row, kWhole);
  bounds.operands[b_at] = factor(query, b_at, dims, kWhole, dims.column);
  for (const size_t i : of_rows) {
    if (i < bounds.operands.size()) bounds.operands[i] = along_lines(query, i, dims, true);
  }
  for (const size_t i : of_columns) {
    if (i < bounds.operands.size()) bounds.operands[i] = along_lines(query, i, dims, false);
  }
  return bounds;
}

Result<Bounds> gemm_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const auto matrix = [&](size_t operand, const char* transposed, int rows, int columns) {
    const bool swapped = query.context.attr<int64_t>(transposed, 0) != 0;
    return follow(query, operand, {swapped ? columns : rows, swapped ? rows : columns});
  };
  bounds.operands[0] = matrix(0, "transA", 0, kWhole);
  bounds.operands[1] = matrix(1, "transB", kWhole, 1);
  if (bounds.operands.size() > 2) bounds.operands[2] = broadcast_to(query, 2);
  return bounds;
}

// A dim follows the dim of the result with its label; labels that the result lacks are summed over.
Result<Bounds> einsum_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < query.context.operand_count(); ++i) {
    const Shape* shape = ranked_shape(query.context, i);
    if (!shape) return bounds;
    ranks.push_back(shape->rank());
  }
  TENON_TRY(labels, EinsumLabels::parse(query.context.attr<std::string>("equation"), ranks));
  std::vector<size_t> all(query.box.size());
  std::iota(all.begin(), all.end(), size_t{0});
  bounds.same_bits = keeps_sums(query, all);
  for (size_t i = 0; i < bounds.operands.size(); ++i) {
    std::vector<int> to;
    for (const int label : labels.operands[i]) {
      const auto found = std::ranges::find(labels.output, label);
      to.push_back(found == labels.output.end() ? kWhole : static_cast<int>(found - labels.output.begin()));
    }
    bounds.operands[i] = follow(query, i, to);
  }
  return bounds;
}

Result<Bounds> det_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  std::vector<int> to = each_dim(query.box.size());
  to.insert(to.end(), 2, kWhole);
  bounds.operands[0] = follow(query, 0, to);
  return bounds;
}

// ---- Equations ----

// One term of an equation: its letters, and the position of "..." among them.
struct Term {
  std::string letters;
  std::optional<size_t> ellipsis;
};

Result<Term> parse_term(std::string_view text) {
  Term term;
  for (size_t i = 0; i < text.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      term.letters += text[i];
    } else if (text.substr(i, 3) == "..." && !term.ellipsis) {
      term.ellipsis = term.letters.size();
      i += 2;
    } else {
      return error(Code::invalid_argument, "'", text[i], "' at position ", i, " of the term '", text,
                   "' is neither a letter nor the one \"...\"");
    }
  }
  return term;
}

std::vector<int> label_axes(const Term& term, int64_t ellipsis_axes) {
  std::vector<int> labels;
  for (size_t i = 0; i <= term.letters.size(); ++i) {
    if (term.ellipsis == i) {
      for (int64_t axis = ellipsis_axes; axis-- > 0;)
        labels.push_back(EinsumLabels::kEllipsis + static_cast<int>(axis));
    }
    if (i < term.letters.size()) labels.push_back(term.letters[i]);
  }
  return labels;
}

// "...", then the letters that occur once in all operands, in alphabetical order.
Term implicit_output(const std::string& letters) {
  Term term;
  for (const char letter : std::string(letters)) {
    if (std::count(letters.begin(), letters.end(), letter) == 1) term.letters += letter;
  }
  std::sort(term.letters.begin(), term.letters.end());
  term.ellipsis = 0;
  return term;
}

const OpRegistration kMatmulRegistered({
    OpDef(MatMul::kName)
        .summary("Y = A * B as matrices, over broadcast leading axes")
        .operand("A", "T")
        .operand("B", "T")
        .result("Y", "T")
        .types("T", kNumberTypes)
        .infer(infer_matmul)
        .bounds({[](const BoundsQuery& query) { return product_bounds(query, 0, 1); }, runs_as_it_is()}),
    OpDef(Gemm::kName)
        .summary("Y = alpha * A' * B' + beta * C")
        .operand("A", "T")
        .operand("B", "T")
        .optional_operand("C", "T")
        .result("Y", "T")
        .types("T", kNumberTypes)
        .attribute("alpha", 1.0f)
        .attribute("beta", 1.0f)
        .attribute("transA", int64_t{0})
        .attribute("transB", int64_t{0})
        .infer(infer_gemm)
        .bounds({gemm_bounds, runs_as_it_is()}),
    OpDef(MatMulInteger::kName)
        .summary("Y = (A - a_zero_point) * (B - b_zero_point) as matrices, in i32")
        .operand("A", "T1")
        .operand("B", "T2")
        .optional_operand("a_zero_point", "T1")
        .optional_operand("b_zero_point", "T2")
        .result("Y", "T3")
        .types("T1", kByteTypes)
        .types("T2", kByteTypes)
        .types("T3", kInt32Types)
        .infer(infer_matmul_integer)
        .bounds({[](const BoundsQuery& query) { return product_bounds(query, 0, 1, {2}, {3}); }, runs_as_it_is()}),
    OpDef(QLinearMatMul::kName)
        .summary("y = the matrix product of quantised a and b, quantised again")
        .operand("a", "T1")
        .operand("a_scale", "TS")
        .operand("a_zero_point", "T1")
        .operand("b", "T2")
        .operand("b_scale", "TS")
        .operand("b_zero_point", "T2")
        .operand("y_scale", "TS")
        .operand("y_zero_point", "T3")
        .result("y", "T3")
        .types("TS", kFloatTypes)
        .types("T1", kQuantized)
        .types("T2", kQuantized)
        .types("T3", kQuantized)
        .infer(infer_qlinear_matmul)
        .bounds({[](const BoundsQuery& query) {
                   return product_bounds(query, 0, 3, {1, 2, 6, 7}, {4, 5});
                 },
                 runs_as_it_is()}),
    OpDef(Einsum::kName)
        .summary("Output = the sum of products that `equation` states")
        .variadic_operands("Inputs", "T", 1)
        .result("Output", "T")
        .types("T", kNumberTypes)
        .required_attribute("equation", AttributeKind::text)
        .infer(infer_einsum)
        .bounds({einsum_bounds, runs_as_it_is()}),
    OpDef(Det::kName)
        .summary("Y = the determinants of the square matrices in X")
        .operand("X", "T")
        .result("Y", "T")
        .types("T", kFloatTypes)
        .infer(infer_det)
        .bounds({det_bounds, runs_as_it_is()}),
});

}  // namespace

Result<EinsumLabels> EinsumLabels::parse(std::string_view equation, const std::vector<int64_t>& ranks) {
  std::string text(equation);
  std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });
  const size_t arrow = text.find("->");
  const auto terms = split(std::string_view(text).substr(0, arrow), ',');
  if (terms.size() != ranks.size()) {
    return error(Code::invalid_argument, "the equation '", equation, "' has ", terms.size(), " terms for ",
                 ranks.size(), " operands");
  }
  EinsumLabels labels;
  std::string letters;
  int64_t widest = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    TENON_TRY(term, parse_term(terms[i]), "the equation '", equation, "'");
    const int64_t hidden = ranks[i] - static_cast<int64_t>(term.letters.size());
    if (hidden < 0 || (hidden > 0 && !term.ellipsis)) {
      return error(Code::invalid_argument, "term '", terms[i], "' of the equation '", equation, "' labels ",
                   term.letters.size(), " axes, its operand has ", ranks[i]);
    }
    widest = std::max(widest, hidden);
    letters += term.letters;
    labels.operands.push_back(label_axes(term, hidden));
  }
  Term output = implicit_output(letters);
  if (arrow != std::string::npos) {
    TENON_TRY(stated, parse_term(std::string_view(text).substr(arrow + 2)), "the equation '", equation, "'");
    output = std::move(stated);
  }
  labels.output = label_axes(output, widest);
  for (const char letter : output.letters) {
    if (letters.find(letter) == std::string::npos ||
        std::count(output.letters.begin(), output.letters.end(), letter) > 1) {
      return error(Code::invalid_argument, "output label '", letter, "' of the equation '", equation,
                   "' must stand once, and in some operand");
    }
  }
  return labels;
}

Result<Shape> matmul_shape(const Shape& a, const Shape& b) {
  if (!a.ranked() || !b.ranked()) return Shape();
  if (a.rank() == 0 || b.rank() == 0) {
    return error(Code::invalid_argument, "a matrix product needs operands of rank >= 1, they are ", a, " and ", b);
  }
  const auto &x = a.dims(), &y = b.dims();
  TENON_TRY(inner, same_extent("the inner extent", x.back(), y[y.size() == 1 ? 0 : y.size() - 2]), a, " times ", b);
  static_cast<void>(inner);
  const Shape x_batch(std::vector<Dim>(x.begin(), x.end() - std::min<size_t>(2, x.size())));
  const Shape y_batch(std::vector<Dim>(y.begin(), y.end() - std::min<size_t>(2, y.size())));
  TENON_TRY(batch, broadcast(x_batch, y_batch), "the leading axes of ", a, " times ", b);
  std::vector<Dim> dims = batch.dims();
  if (x.size() > 1) dims.push_back(x[x.size() - 2]);
  if (y.size() > 1) dims.push_back(y.back());
  return Shape(std::move(dims));
}

}  // namespace tenon
