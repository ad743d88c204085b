// Building blocks for instances of operators (op_cases.hpp), and the families that draw them.
#pragma once
#include <algorithm>
#include <cmath>

#include <op-cases/op_cases.hpp>
#include <op-cases/random_tensor.hpp>

namespace tenon::testing {

using OpCases = std::multimap<std::string, DrawOp>;
void add_pointwise(OpCases& cases);
void add_along_axes(OpCases& cases);
void add_windows(OpCases& cases);
void add_images(OpCases& cases);
void add_products(OpCases& cases);
void add_attention(OpCases& cases);
void add_moves(OpCases& cases);
void add_indexed(OpCases& cases);

using R = std::mt19937;
using Integers = Attribute::Integers;

inline DrawnOperand of(ElementType element, Dims dims, int64_t low = -20, int64_t high = 20) {
  return {[=](R& r) { return random_tensor(r, element, dims, low, high); }};
}
// Numbers whose sums are rounded, so that a different order of additions is detected.
inline DrawnOperand floats(Dims dims) {
  return {[=](R& r) {
    Tensor x = *Tensor::zeros(kF32, dims);
    std::uniform_real_distribution<double> numbers(-2, 2);
    for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, numbers(r));
    return x;
  }};
}
inline DrawnOperand bools(Dims dims) { return of(kBool, std::move(dims), 0, 1); }
// Positive numbers: variances, scales.
inline DrawnOperand positive(Dims dims) {
  return {[=](R& r) {
    Tensor x = random_tensor(r, kF32, dims);
    for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, std::abs(x.double_at(i)) + 0.25);
    return x;
  }};
}
inline DrawnOperand fixed(Tensor tensor) {
  return {[tensor](R&) { return tensor; }, true};
}
inline DrawnOperand ints(const std::vector<int64_t>& values) {
  return fixed(Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values));
}
inline DrawnOperand number(int64_t value) { return fixed(Tensor::scalar<int64_t>(value)); }
inline DrawnOperand absent() { return {}; }
inline DrawnOperand once(R& r, DrawnOperand operand) { return fixed(operand.draw(r)); }
inline DrawnOperand texts(Dims dims) {
  return {[=](R& r) {
    Tensor x = *Tensor::zeros(kString, dims);
    for (std::string& s : x.mutable_as<std::string>()) {
      for (int64_t n = pick(r, 0, 3); n-- > 0;) s += "ab "[pick(r, 0, 2)];
    }
    return x;
  }};
}

inline Dims random_dims(R& r, int64_t least_rank, int64_t most_rank, int64_t most = 5) {
  Dims dims(static_cast<size_t>(pick(r, least_rank, most_rank)));
  for (int64_t& dim : dims) dim = pick(r, 1, most);
  return dims;
}
// A shape that broadcasts to `dims`.
inline Dims narrowed(R& r, Dims dims) {
  for (int64_t& dim : dims) dim = pick(r, 0, 3) == 0 ? 1 : dim;
  dims.erase(dims.begin(), dims.begin() + (pick(r, 0, 2) == 0 ? pick(r, 0, static_cast<int64_t>(dims.size())) : 0));
  return dims;
}
inline int64_t random_axis(R& r, size_t rank) {
  const auto n = static_cast<int64_t>(rank);
  return pick(r, -n, n - 1);
}
inline size_t normal(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

}  // namespace tenon::testing
