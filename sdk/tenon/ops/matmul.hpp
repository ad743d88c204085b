// Matrix products, and sums of products by index.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/ir/op_view.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/shape.hpp>

namespace tenon {

// Y[..., i, j] = sum over k of A[..., i, k] * B[..., k, j]; the leading axes broadcast. An A of rank 1 is one row, a B
// of rank 1 is one column, and that axis is dropped from Y. Integers wrap around.
struct MatMul : OpView<MatMul> {
  static constexpr std::string_view kName = "MatMul";
  using OpView::OpView;
  Value* a() const { return operand(0); }
  Value* b() const { return operand(1); }
};

// Y = alpha * A' * B' + beta * C, where A' is A [M, K], or with transA the transpose of A [K, M]; B' likewise [K, N]. C
// broadcasts to [M, N].
struct Gemm : OpView<Gemm> {
  static constexpr std::string_view kName = "Gemm";
  using OpView::OpView;
  Value* a() const { return operand(0); }
  Value* b() const { return operand(1); }
  Value* c() const { return operand(2); }  // may be null
  float alpha() const { return attr<float>("alpha", 1.0f); }
  float beta() const { return attr<float>("beta", 1.0f); }
  bool trans_a() const { return attr<int64_t>("transA", 0) != 0; }
  bool trans_b() const { return attr<int64_t>("transB", 0) != 0; }
};

// MatMul of (A - a_zero_point) and (B - b_zero_point), 8-bit integers, in i32. a_zero_point: a scalar, [M], or [..., M,
// 1], one per row; b_zero_point: a scalar, [N], or [..., 1, N], one per column.
struct MatMulInteger : OpView<MatMulInteger> {
  static constexpr std::string_view kName = "MatMulInteger";
  using OpView::OpView;
  Value* a() const { return operand(0); }
  Value* b() const { return operand(1); }
  Value* a_zero_point() const { return operand(2); }  // may be null
  Value* b_zero_point() const { return operand(3); }  // may be null
};

// y = quantise(MatMul((a - a_zero_point) * a_scale, (b - b_zero_point) * b_scale) / y_scale) + y_zero_point. Scales and
// zero points of a are scalars or one per row, of b one per column (as in MatMulInteger), of y scalars or one per row.
// Integers are rounded with ties to even and saturate; 8-bit floats are rounded as by Cast.
struct QLinearMatMul : OpView<QLinearMatMul> {
  static constexpr std::string_view kName = "QLinearMatMul";
  using OpView::OpView;
  Value* a() const { return operand(0); }
  Value* a_scale() const { return operand(1); }
  Value* a_zero_point() const { return operand(2); }
  Value* b() const { return operand(3); }
  Value* b_scale() const { return operand(4); }
  Value* b_zero_point() const { return operand(5); }
  Value* y_scale() const { return operand(6); }
  Value* y_zero_point() const { return operand(7); }
};

// Einstein summation: "ij,jk->ik" is Output[i, k] = sum over j of A[i, j] * B[j, k]. A label that an operand has twice
// selects its diagonal; without "->" the output has the labels that occur once, in alphabetical order, after "...".
// "..." denotes the axes that are not named; they broadcast.
struct Einsum : OpView<Einsum> {
  static constexpr std::string_view kName = "Einsum";
  using OpView::OpView;
  std::string equation() const { return attr<std::string>("equation"); }
};

// Y = the determinants of the matrices in X [..., M, M].
struct Det : OpView<Det> {
  static constexpr std::string_view kName = "Det";
  using OpView::OpView;
  Value* x() const { return operand(0); }
};

// An Einsum equation with every axis of every operand labelled. Letters are labels by their code; axes under "..." are
// kEllipsis + n, with n counted from the right, so that they broadcast as in NumPy.
struct TENON_API EinsumLabels {
  static constexpr int kEllipsis = 256;
  std::vector<std::vector<int>> operands;
  std::vector<int> output;

  // `ranks`: one per operand. Errors: a wrong number of operands or axes, an invalid character, an output label that no
  // operand has or that occurs twice.
  static Result<EinsumLabels> parse(std::string_view equation, const std::vector<int64_t>& ranks);
};

// The shape of MatMul; an error when the inner extents or the leading axes do not fit. Unranked in, unranked out.
TENON_API Result<Shape> matmul_shape(const Shape& a, const Shape& b);

}  // namespace tenon
