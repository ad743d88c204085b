// Reductions: axes reduced to one number each, positions of extrema, and running sums and products.
//
// Reduce...: reduces `axes` (operand 1, i64[n], negative ones count from the back). If it is absent or empty, all axes
// are reduced, or none with `noop_with_empty_axes`. Reduced axes keep extent 1, or are dropped when `keepdims` is 0. A
// reduction over no elements gives the number stated below. Float sums are computed in f64 and rounded once; integer
// sums wrap around.
#pragma once
#include <optional>
#include <vector>

#include <tenon/ir/op_view.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

// Which of `rank` axes a Reduce... operator reduces: `axes` are the operand's elements, none when it is absent.
TENON_API Result<std::vector<bool>> folded_axes(const Op& op, int64_t rank, const std::vector<int64_t>& axes);

template <class Derived>
struct ReduceView : OpView<Derived> {
  using OpView<Derived>::OpView;
  Value* data() const { return this->operand(0); }
  Value* axes() const { return this->operand(1); }
  bool keeps_dims() const { return this->template attr<int64_t>("keepdims", 1) != 0; }
  bool empty_axes_fold_nothing() const { return this->template attr<int64_t>("noop_with_empty_axes", 0) != 0; }
};

// Sum of x; of no elements 0.
struct ReduceSum : ReduceView<ReduceSum> {
  static constexpr std::string_view kName = "ReduceSum";
  using ReduceView::ReduceView;
};
// Mean of x; of no elements NaN (integers: 0).
struct ReduceMean : ReduceView<ReduceMean> {
  static constexpr std::string_view kName = "ReduceMean";
  using ReduceView::ReduceView;
};
// Maximum of x, NaN if there is one; of no elements -infinity, the least integer, false.
struct ReduceMax : ReduceView<ReduceMax> {
  static constexpr std::string_view kName = "ReduceMax";
  using ReduceView::ReduceView;
};
// Minimum of x, NaN if there is one; of no elements +infinity, the greatest integer, true.
struct ReduceMin : ReduceView<ReduceMin> {
  static constexpr std::string_view kName = "ReduceMin";
  using ReduceView::ReduceView;
};
// Product of x; of no elements 1.
struct ReduceProd : ReduceView<ReduceProd> {
  static constexpr std::string_view kName = "ReduceProd";
  using ReduceView::ReduceView;
};
// Sum of |x|; of no elements 0.
struct ReduceL1 : ReduceView<ReduceL1> {
  static constexpr std::string_view kName = "ReduceL1";
  using ReduceView::ReduceView;
};
// Sqrt of the sum of x^2; of no elements 0.
struct ReduceL2 : ReduceView<ReduceL2> {
  static constexpr std::string_view kName = "ReduceL2";
  using ReduceView::ReduceView;
};
// Ln of the sum of x; of no elements -infinity.
struct ReduceLogSum : ReduceView<ReduceLogSum> {
  static constexpr std::string_view kName = "ReduceLogSum";
  using ReduceView::ReduceView;
};
// Ln of the sum of e^x, without overflow; of no elements -infinity.
struct ReduceLogSumExp : ReduceView<ReduceLogSumExp> {
  static constexpr std::string_view kName = "ReduceLogSumExp";
  using ReduceView::ReduceView;
};
// Sum of x^2; of no elements 0.
struct ReduceSumSquare : ReduceView<ReduceSumSquare> {
  static constexpr std::string_view kName = "ReduceSumSquare";
  using ReduceView::ReduceView;
};

// The position of the extremum along `axis`, as i64: the first one, or the last with `select_last_index`. NaN counts as
// the extremum. The axis keeps extent 1, or is dropped when `keepdims` is 0.
template <class Derived>
struct ArgView : OpView<Derived> {
  using OpView<Derived>::OpView;
  Value* data() const { return this->operand(0); }
  int64_t axis() const { return this->template attr<int64_t>("axis", 0); }
  bool keeps_dims() const { return this->template attr<int64_t>("keepdims", 1) != 0; }
  bool selects_last() const { return this->template attr<int64_t>("select_last_index", 0) != 0; }
};

struct ArgMax : ArgView<ArgMax> {
  static constexpr std::string_view kName = "ArgMax";
  using ArgView::ArgView;
};
struct ArgMin : ArgView<ArgMin> {
  static constexpr std::string_view kName = "ArgMin";
  using ArgView::ArgView;
};

// y[i] = x[0] + ... + x[i] along `axis` (operand 1, a scalar); up to x[i - 1] when `exclusive`; from the end when
// `reverse`.
template <class Derived>
struct ScanView : OpView<Derived> {
  using OpView<Derived>::OpView;
  Value* x() const { return this->operand(0); }
  Value* axis() const { return this->operand(1); }
  bool exclusive() const { return this->template attr<int64_t>("exclusive", 0) != 0; }
  bool reverse() const { return this->template attr<int64_t>("reverse", 0) != 0; }
};

struct CumSum : ScanView<CumSum> {
  static constexpr std::string_view kName = "CumSum";
  using ScanView::ScanView;
};
struct CumProd : ScanView<CumProd> {  // the same with products
  static constexpr std::string_view kName = "CumProd";
  using ScanView::ScanView;
};

}  // namespace tenon
