#include "opencl/compute/product_forms.hpp"

namespace tenon::opencl {
namespace {

// Strides of the outer dims in elements, 0 where the operand has extent 1 and is broadcast.
Dims outer_strides(const Dims& dims, size_t outer, const Dims& batch) {
  Dims strides(batch.size(), 0);
  int64_t stride = 1;
  for (size_t d = outer; d < dims.size(); ++d) stride *= dims[d];
  for (size_t i = 0; i < outer; ++i) {
    const size_t from = outer - 1 - i, to = batch.size() - 1 - i;
    if (dims[from] != 1) strides[to] = stride;
    stride *= dims[from];
  }
  return strides;
}

}  // namespace

int64_t ProductSides::matrices() const {
  int64_t product = 1;
  for (const int64_t extent : batch) product *= extent;
  return product;
}

std::vector<int64_t> ProductSides::numbers() const {
  std::vector<int64_t> made{m, n, k, a_row, a_step, b_step, b_column, c_row, c_column, 0, int64_t(batch.size())};
  for (size_t d = 0; d < batch.size(); ++d) made.insert(made.end(), {batch[d], a_strides[d], b_strides[d]});
  return made;
}

void ProductSides::fold_batch() {
  while (!batch.empty() && b_strides.back() == 0 && (a_strides.back() == m * a_row || batch.back() == 1)) {
    m *= batch.back();
    batch.pop_back(), a_strides.pop_back(), b_strides.pop_back();
  }
}

void ProductSides::swap() {
  std::swap(m, n);
  std::swap(a_row, b_column);
  std::swap(a_step, b_step);
  std::swap(c_row, c_column);
  std::swap(a_strides, b_strides);
}

ProductSides matmul_sides(const Dims& a, const Dims& b, const Dims& y) {
  ProductSides s;
  const bool row = a.size() == 1, column = b.size() == 1;
  s.k = a.back();
  s.m = row ? 1 : a[a.size() - 2];
  s.n = column ? 1 : b.back();
  s.a_row = s.k;
  s.b_step = s.n;
  const size_t outer = y.size() - (row ? 0 : 1) - (column ? 0 : 1);
  s.batch.assign(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(outer));
  s.a_strides = outer_strides(a, row ? 0 : a.size() - 2, s.batch);
  s.b_strides = outer_strides(b, column ? 0 : b.size() - 2, s.batch);
  return s;
}

}  // namespace tenon::opencl
