#include <tenon/ops/matmul.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <tenon/reference/evaluator.hpp>
#include <tenon/reference/float_work.hpp>
#include <tenon/reference/gemm.hpp>
#include <tenon/reference/loops.hpp>
#include <tenon/reference/quantized.hpp>

namespace tenon {
namespace {

// The type in which products of `element` are computed: see gemm.hpp.
ElementType product_type(ElementType element) {
  if (element.is_float()) return work_type(element);
  return element.bits() <= 32 ? kU32 : kU64;
}

template <class Body>
auto with_product_type(ElementType type, Body&& body) {
  if (type == kU32) return body.template operator()<uint32_t>();
  if (type == kU64) return body.template operator()<uint64_t>();
  return with_work_type(type, body);
}

// ---- products of stacks of matrices ----

// A batch of products: matrix t of the result is matrix a[t] times matrix b[t].
struct Stack {
  int64_t m = 1, n = 1, k = 1;
  std::vector<int64_t> a, b;

  int64_t count() const { return static_cast<int64_t>(a.size()); }
  // If all matrices of A are multiplied by the same B: one large product.
  void join_rows() {
    if (count() < 2 || b.back() != 0) return;
    for (int64_t t = 0; t < count(); ++t) {
      if (a[t] != t || b[t] != 0) return;
    }
    m *= count();
    a = {0};
    b = {0};
  }
};

Stack stack_of(const Dims& a, const Dims& b) {
  Stack stack;
  stack.k = a.back();
  if (a.size() > 1) stack.m = a[a.size() - 2];
  if (b.size() > 1) stack.n = b.back();
  const Dims a_batch(a.begin(), a.end() - std::min<size_t>(2, a.size())),
      b_batch(b.begin(), b.end() - std::min<size_t>(2, b.size()));
  const Dims batch = *broadcast(std::span<const int64_t>(a_batch), std::span<const int64_t>(b_batch));
  const BroadcastPlan<2> plan(batch, {a_batch, b_batch});
  plan.for_runs(0, plan.count(), [&](int64_t, int64_t count, const std::array<int64_t, 2>& offsets) {
    for (int64_t i = 0; i < count; ++i) {
      stack.a.push_back(offsets[0] + i * plan.inner_strides()[0]);
      stack.b.push_back(offsets[1] + i * plan.inner_strides()[1]);
    }
  });
  return stack;
}

// c[t] = a[stack.a[t]] * b[stack.b[t]], dense matrices.
template <class T>
void multiply(const Stack& stack, const T* a, const T* b, T* c, ParallelFor& parallel) {
  const auto [m, n, k] = std::array{stack.m, stack.n, stack.k};
  const auto one = [&](int64_t t, ParallelFor& inner) {
    gemm<T>(m, n, k, {a + stack.a[t] * m * k, k, 1}, {b + stack.b[t] * k * n, n, 1}, c + t * m * n, n, Store::overwrite,
            inner);
  };
  if (stack.count() < 2 * parallel.threads()) {
    for (int64_t t = 0; t < stack.count(); ++t) one(t, parallel);
    return;
  }
  parallel.run(stack.count(), grain_of(m * n * k), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) one(t, serial());
  });
}

Result<void> matmul(EvalContext& context) {
  const ElementType work = product_type(context.tensor(0).element());
  TENON_TRY(a, in_work_type(context.tensor(0), work));
  TENON_TRY(b, in_work_type(context.tensor(1), work));
  TENON_TRY(y, WorkResult::make(context, 0, work));
  Stack stack = stack_of(a.dims(), b.dims());
  stack.join_rows();
  with_product_type(work, [&]<class T>() {
    multiply<T>(stack, a.as<T>().data(), b.as<T>().data(), y.data<T>(), context.parallel());
  });
  return y.deliver();
}

// y = alpha * y + beta * c: floats in their own type; integers exactly if both factors are 1, else in double, truncated
// towards zero.
template <class T>
void scale_and_add(ElementType element, double alpha, double beta, const Tensor* c, Tensor& y) {
  T* out = y.mutable_as<T>().data();
  const auto combine = [&](T product, T addend) {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(alpha) * product + static_cast<T>(beta) * addend;
    } else {
      if (alpha == 1 && beta == 1) return static_cast<T>(product + addend);
      const auto number = [&](T bits) {
        return element.is_signed_int() ? static_cast<double>(static_cast<std::make_signed_t<T>>(bits))
                                       : static_cast<double>(bits);
      };
      return static_cast<T>(static_cast<int64_t>(alpha * number(product) + beta * number(addend)));
    }
  };
  if (!c) {
    if (alpha != 1) {
      for (int64_t i = 0; i < y.size(); ++i) out[i] = combine(out[i], T(0));
    }
    return;
  }
  const T* addends = c->as<T>().data();
  const BroadcastPlan<1> plan(y.dims(), {c->dims()});
  plan.for_runs(0, plan.count(), [&](int64_t first, int64_t count, const std::array<int64_t, 1>& offsets) {
    for (int64_t i = 0; i < count; ++i)
      out[first + i] = combine(out[first + i], addends[offsets[0] + i * plan.inner_strides()[0]]);
  });
}

Result<void> general_product(EvalContext& context) {
  const ElementType element = context.tensor(0).element(), work = product_type(element);
  TENON_TRY(a, in_work_type(context.tensor(0), work));
  TENON_TRY(b, in_work_type(context.tensor(1), work));
  Tensor c;
  const double beta = context.attr<float>("beta", 1.0f);
  if (context.operand_count() > 2 && context.has_operand(2) && beta != 0) {
    TENON_TRY(converted, in_work_type(context.tensor(2), work));
    c = std::move(converted);
  }
  TENON_TRY(y, WorkResult::make(context, 0, work));
  const bool trans_a = context.attr<int64_t>("transA", 0) != 0, trans_b = context.attr<int64_t>("transB", 0) != 0;
  const int64_t m = y.tensor().dim(0), n = y.tensor().dim(1), k = a.dim(trans_a ? 0 : 1);
  with_product_type(work, [&]<class T>() {
    const MatrixView<T> left{a.as<T>().data(), trans_a ? 1 : k, trans_a ? m : 1};
    const MatrixView<T> right{b.as<T>().data(), trans_b ? 1 : n, trans_b ? k : 1};
    gemm<T>(m, n, k, left, right, y.data<T>(), n, Store::overwrite, context.parallel());
    scale_and_add<T>(element, context.attr<float>("alpha", 1.0f), beta, c.valid() ? &c : nullptr, y.tensor());
  });
  return y.deliver();
}

// ---- quantised products ----

// The parameter of a row (of A, matrix by matrix) or of a column (of B). There is one, one per line of a matrix, or one
// per line of each matrix.
double parameter_at(const Tensor& parameters, int64_t line) { return parameters.double_at(line % parameters.size()); }

// A or B minus its zero points. `rows`: parameters are per row, else per column.
template <class T>
std::vector<T> less_zero_points(const Tensor& tensor, const Tensor* zero_points, bool rows) {
  const int64_t columns = tensor.rank() == 1 && !rows ? 1 : tensor.dim(tensor.rank() - 1);
  const int64_t matrix = tensor.rank() == 1 ? tensor.size() : tensor.dim(tensor.rank() - 2) * columns;
  std::vector<T> out(static_cast<size_t>(tensor.size()));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const int64_t line = rows ? i / columns : i / matrix * columns + i % columns;
    const double zero = zero_points ? parameter_at(*zero_points, line) : 0;
    if constexpr (std::is_floating_point_v<T>)
      out[static_cast<size_t>(i)] = static_cast<T>(tensor.double_at(i) - zero);
    else
      out[static_cast<size_t>(i)] = static_cast<T>(tensor.int_at(i) - static_cast<int64_t>(zero));
  }
  return out;
}

Result<void> matmul_integer(EvalContext& context) {
  const Tensor &a = context.tensor(0), &b = context.tensor(1);
  const auto zero = [&](size_t i) {
    return i < context.operand_count() && context.has_operand(i) ? &context.tensor(i) : nullptr;
  };
  TENON_TRY(y, context.output(0));
  const auto left = less_zero_points<uint32_t>(a, zero(2), true);
  const auto right = less_zero_points<uint32_t>(b, zero(3), false);
  std::vector<uint32_t> sums(static_cast<size_t>(y->size()));
  multiply<uint32_t>(stack_of(a.dims(), b.dims()), left.data(), right.data(), sums.data(), context.parallel());
  std::transform(sums.begin(), sums.end(), y->mutable_as<int32_t>().begin(),
                 [](uint32_t sum) { return std::bit_cast<int32_t>(sum); });
  return {};
}

// Integers are summed exactly, 8-bit floats in f64; scaled and rounded in f64.
template <class T>
void multiply_quantized(EvalContext& context, Tensor& y) {
  const Tensor &a = context.tensor(0), &b = context.tensor(3);
  const Tensor &a_scale = context.tensor(1), &b_scale = context.tensor(4), &y_scale = context.tensor(6),
               &y_zero = context.tensor(7);
  const auto left = less_zero_points<T>(a, &context.tensor(2), true);
  const auto right = less_zero_points<T>(b, &context.tensor(5), false);
  const Stack stack = stack_of(a.dims(), b.dims());
  std::vector<T> sums(static_cast<size_t>(y.size()));
  multiply<T>(stack, left.data(), right.data(), sums.data(), context.parallel());
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t column = i % stack.n, row = i / stack.n, matrix = row / stack.m;
    double sum;
    if constexpr (std::is_floating_point_v<T>)
      sum = sums[static_cast<size_t>(i)];
    else
      sum = std::bit_cast<int32_t>(sums[static_cast<size_t>(i)]);
    const double scale = parameter_at(a_scale, stack.a[matrix] * stack.m + row % stack.m) *
                         parameter_at(b_scale, stack.b[matrix] * stack.n + column) / parameter_at(y_scale, row);
    store_quantized(y, i, sum * scale, parameter_at(y_zero, row));
  }
}

Result<void> qlinear_matmul(EvalContext& context) {
  TENON_TRY(y, context.output(0));
  if (context.tensor(0).element().is_int() && context.tensor(3).element().is_int())
    multiply_quantized<uint32_t>(context, *y);
  else
    multiply_quantized<double>(context, *y);
  return {};
}

// ---- Einsum ----

// A dense array with labelled axes; labels are unique.
template <class T>
struct Labelled {
  std::vector<int> labels;
  std::vector<T> data;
};
using Extents = std::map<int, int64_t>;

int64_t product_of(const std::vector<int>& labels, const Extents& extents) {
  int64_t product = 1;
  for (const int label : labels) product *= extents.at(label);
  return product;
}

bool holds(const std::vector<int>& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// The array at `data`, with the step along each label in `strides`, with the axes `kept` in this order, summed over the
// others.
template <class T>
Labelled<T> gather(const T* data, const std::map<int, int64_t>& strides, std::vector<int> kept,
                   const Extents& extents) {
  std::vector<int> order = kept;
  for (const auto& [label, stride] : strides) {
    if (!holds(kept, label)) order.push_back(label);
  }
  Dims dims;
  std::array<Dims, 1> steps;
  for (const int label : order) {
    dims.push_back(extents.at(label));
    const auto found = strides.find(label);
    steps[0].push_back(found == strides.end() ? 0 : found->second);
  }
  Labelled<T> out{std::move(kept), {}};
  const int64_t count = product_of(out.labels, extents);
  const int64_t summed = count == 0 ? 0 : product_of(order, extents) / count;
  out.data.assign(static_cast<size_t>(count), T(0));
  Odometer<1> odometer(dims, steps);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < summed; ++k, odometer.next())
      out.data[static_cast<size_t>(i)] += data[odometer.offsets()[0]];
  }
  return out;
}

template <class T>
Labelled<T> reordered(const Labelled<T>& array, std::vector<int> kept, const Extents& extents) {
  if (array.labels == kept) return array;
  std::map<int, int64_t> strides;
  int64_t stride = 1;
  for (size_t axis = array.labels.size(); axis-- > 0; stride *= extents.at(array.labels[axis]))
    strides[array.labels[axis]] = stride;
  return gather(array.data.data(), strides, std::move(kept), extents);
}

// The product of two arrays, summed over the labels that both have and `wanted` lacks: a batch of matrix products.
template <class T>
Labelled<T> contract(const Labelled<T>& a, const Labelled<T>& b, const std::set<int>& wanted, const Extents& extents,
                     ParallelFor& parallel) {
  std::vector<int> shared, summed, rows, columns;
  for (const int label : a.labels) {
    if (!holds(b.labels, label))
      rows.push_back(label);
    else if (wanted.contains(label))
      shared.push_back(label);
    else
      summed.push_back(label);
  }
  for (const int label : b.labels) {
    if (!holds(a.labels, label)) columns.push_back(label);
  }
  const auto joined = [](std::vector<int> x, const std::vector<int>& y, const std::vector<int>& z) {
    x.insert(x.end(), y.begin(), y.end());
    x.insert(x.end(), z.begin(), z.end());
    return x;
  };
  const auto left = reordered(a, joined(shared, rows, summed), extents);
  const auto right = reordered(b, joined(shared, summed, columns), extents);
  Stack stack{product_of(rows, extents), product_of(columns, extents), product_of(summed, extents), {}, {}};
  for (int64_t t = 0; t < product_of(shared, extents); ++t) {
    stack.a.push_back(t);
    stack.b.push_back(t);
  }
  Labelled<T> out{joined(shared, rows, columns), {}};
  out.data.resize(static_cast<size_t>(product_of(out.labels, extents)));
  multiply<T>(stack, left.data.data(), right.data.data(), out.data.data(), parallel);
  return out;
}

// An operand with its diagonals extracted, its broadcast axes dropped, and summed over labels that are used nowhere
// else.
template <class T>
Labelled<T> simplified(const Tensor& tensor, const std::vector<int>& labels, const std::set<int>& wanted,
                       const Extents& extents) {
  std::map<int, int64_t> strides;
  std::vector<int> kept;
  const Dims steps = row_major_strides(tensor.dims());
  for (size_t axis = 0; axis < labels.size(); ++axis) {
    if (tensor.dim(axis) != extents.at(labels[axis])) continue;
    strides[labels[axis]] += steps[axis];
    if (wanted.contains(labels[axis]) && !holds(kept, labels[axis])) kept.push_back(labels[axis]);
  }
  return gather(tensor.as<T>().data(), strides, std::move(kept), extents);
}

template <class T>
void sum_products(const EinsumLabels& labels, const std::vector<Tensor>& operands, T* out, ParallelFor& parallel) {
  Extents extents;
  for (size_t i = 0; i < operands.size(); ++i) {
    for (size_t axis = 0; axis < labels.operands[i].size(); ++axis) {
      int64_t& extent = extents.try_emplace(labels.operands[i][axis], 1).first->second;
      if (operands[i].dim(axis) != 1) extent = operands[i].dim(axis);
    }
  }
  // Labels of the output or of an operand from `first` on.
  const auto wanted_after = [&](size_t first) {
    std::set<int> wanted(labels.output.begin(), labels.output.end());
    for (size_t i = first; i < operands.size(); ++i)
      wanted.insert(labels.operands[i].begin(), labels.operands[i].end());
    return wanted;
  };
  auto product = simplified<T>(operands[0], labels.operands[0], wanted_after(1), extents);
  for (size_t i = 1; i < operands.size(); ++i) {
    auto wanted = wanted_after(i + 1);
    const auto after = wanted;
    wanted.insert(product.labels.begin(), product.labels.end());
    product =
        contract(product, simplified<T>(operands[i], labels.operands[i], wanted, extents), after, extents, parallel);
    std::vector<int> kept;
    std::copy_if(product.labels.begin(), product.labels.end(), std::back_inserter(kept),
                 [&](int l) { return after.contains(l); });
    product = reordered(product, std::move(kept), extents);
  }
  const auto ordered = reordered(product, labels.output, extents);
  std::copy(ordered.data.begin(), ordered.data.end(), out);
}

Result<void> einsum(EvalContext& context) {
  const ElementType work = product_type(context.tensor(0).element());
  std::vector<Tensor> operands;
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < context.operand_count(); ++i) {
    TENON_TRY(converted, in_work_type(context.tensor(i), work));
    ranks.push_back(converted.rank());
    operands.push_back(std::move(converted));
  }
  TENON_TRY(labels, EinsumLabels::parse(context.attr<std::string>("equation"), ranks));
  TENON_TRY(y, WorkResult::make(context, 0, work));
  with_product_type(work, [&]<class T>() { sum_products<T>(labels, operands, y.data<T>(), context.parallel()); });
  return y.deliver();
}

// ---- Det ----

// Gaussian elimination with column pivoting; `a` is n x n and is overwritten.
double determinant(std::vector<double>& a, int64_t n) {
  double product = 1;
  for (int64_t column = 0; column < n; ++column) {
    int64_t pivot = column;
    for (int64_t row = column + 1; row < n; ++row) {
      if (std::abs(a[row * n + column]) > std::abs(a[pivot * n + column])) pivot = row;
    }
    if (a[pivot * n + column] == 0) return 0;
    if (pivot != column) {
      std::swap_ranges(&a[pivot * n], &a[pivot * n] + n, &a[column * n]);
      product = -product;
    }
    product *= a[column * n + column];
    for (int64_t row = column + 1; row < n; ++row) {
      const double factor = a[row * n + column] / a[column * n + column];
      for (int64_t j = column; j < n; ++j) a[row * n + j] -= factor * a[column * n + j];
    }
  }
  return product;
}

Result<void> det(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  TENON_TRY(y, context.output(0));
  const int64_t n = x.dim(x.rank() - 1);
  std::vector<double> matrix(n * n);
  for (int64_t t = 0; t < y->size(); ++t) {
    for (int64_t i = 0; i < n * n; ++i) matrix[i] = x.double_at(t * n * n + i);
    y->set_double(t, determinant(matrix, n));
  }
  return {};
}

const EvaluatorRegistration kMatmulRegistered({
    {MatMul::kName, matmul},
    {Gemm::kName, general_product},
    {MatMulInteger::kName, matmul_integer},
    {QLinearMatMul::kName, qlinear_matmul},
    {Einsum::kName, einsum},
    {Det::kName, det},
});

}  // namespace
}  // namespace tenon
