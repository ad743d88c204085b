// Operators that read or write elements by index, and operators that find indices. Every element type, except for
// arithmetic reductions and ordering.
//
// Indices must be in [-extent, extent), where negative ones count from the back; any other is an error at run time.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon {

// y[a..., i..., b...] = data[a..., indices[i...], b...]: the axis `axis` is replaced by the axes of `indices`.
struct Gather : OpView<Gather> {
  static constexpr std::string_view kName = "Gather";
  using OpView::OpView;
  Value* data() const { return operand(0); }
  Value* indices() const { return operand(1); }
  int64_t axis() const { return attr<int64_t>("axis", 0); }
};

// y[i] = data[i with i[axis] replaced by indices[i]]; y has the shape of `indices`, which has data's rank.
struct GatherElements : OpView<GatherElements> {
  static constexpr std::string_view kName = "GatherElements";
  using OpView::OpView;
  Value* data() const { return operand(0); }
  Value* indices() const { return operand(1); }
  int64_t axis() const { return attr<int64_t>("axis", 0); }
};

// y[b..., i..., s...] = data[b..., indices[b..., i..., :]..., s...]: the last axis of `indices` holds positions along
// the axes of data after the first batch_dims ones.
struct GatherND : OpView<GatherND> {
  static constexpr std::string_view kName = "GatherND";
  using OpView::OpView;
  Value* data() const { return operand(0); }
  Value* indices() const { return operand(1); }
  int64_t batch_dims() const { return attr<int64_t>("batch_dims", 0); }
};

// y = data, then y[i with i[axis] replaced by indices[i]] = updates[i] for every i, in row-major order; or, by
// `reduction`, += (add), *= (mul), the larger (max) or the smaller (min) of both.
struct ScatterElements : OpView<ScatterElements> {
  static constexpr std::string_view kName = "ScatterElements";
  using OpView::OpView;
  Value* data() const { return operand(0); }
  Value* indices() const { return operand(1); }
  Value* updates() const { return operand(2); }
  int64_t axis() const { return attr<int64_t>("axis", 0); }
  std::string reduction() const { return attr<std::string>("reduction", "none"); }
};

// y = data, then y[indices[i..., :]..., s...] = updates[i..., s...] for every i and s; reduction as for
// ScatterElements.
struct ScatterND : OpView<ScatterND> {
  static constexpr std::string_view kName = "ScatterND";
  using OpView::OpView;
  Value* data() const { return operand(0); }
  Value* indices() const { return operand(1); }
  Value* updates() const { return operand(2); }
  std::string reduction() const { return attr<std::string>("reduction", "none"); }
};

// y = past_cache, then y[b, p..., write_indices[b] + t, s...] = update[b, p..., t, s...], where t and the sum are along
// `axis`; mode circular: the sum modulo the axis' extent. Without write_indices, all are 0. For key and value caches.
struct TensorScatter : OpView<TensorScatter> {
  static constexpr std::string_view kName = "TensorScatter";
  using OpView::OpView;
  Value* past_cache() const { return operand(0); }
  Value* update() const { return operand(1); }
  Value* write_indices() const { return operand(2); }  // may be null
  int64_t axis() const { return attr<int64_t>("axis", -2); }
  bool circular() const { return attr<std::string>("mode", "linear") == "circular"; }
};

// The slices of `input` along `axis` (without one: the elements of the flattened input) for which `condition` holds; a
// condition shorter than the axis drops the rest.
struct Compress : OpView<Compress> {
  static constexpr std::string_view kName = "Compress";
  using OpView::OpView;
  Value* input() const { return operand(0); }
  Value* condition() const { return operand(1); }
};

// An axis of extent `depth` inserted at `axis`: values[1] where its position equals the index (which may be negative),
// values[0] elsewhere, also for indices out of range.
struct OneHot : OpView<OneHot> {
  static constexpr std::string_view kName = "OneHot";
  using OpView::OpView;
  Value* indices() const { return operand(0); }
  Value* depth() const { return operand(1); }
  Value* values() const { return operand(2); }
  int64_t axis() const { return attr<int64_t>("axis", -1); }
};

// The indices of the elements that are not zero (false, ""), one column each, in row-major order. i64[rank, n].
struct NonZero : OpView<NonZero> {
  static constexpr std::string_view kName = "NonZero";
  using OpView::OpView;
  Value* x() const { return operand(0); }
};

// Results: Y, the distinct elements of the flattened x, or its distinct slices along `axis`, ascending (`sorted`) or in
// the order of their first occurrence in x; indices, the position of each first occurrence; inverse_indices, the
// position in Y of each of x; counts, the number of occurrences. Slices are compared element by element; NaN equals NaN
// and is the greatest.
struct Unique : OpView<Unique> {
  static constexpr std::string_view kName = "Unique";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  bool sorted() const { return attr<int64_t>("sorted", 1) != 0; }
};

// Results: the k largest (or smallest) elements along `axis`, in that order, and their indices. Of equal elements, the
// one with the lower index comes first; NaN is the greatest.
struct TopK : OpView<TopK> {
  static constexpr std::string_view kName = "TopK";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* k() const { return operand(1); }
  int64_t axis() const { return attr<int64_t>("axis", -1); }
  bool largest() const { return attr<int64_t>("largest", 1) != 0; }
};

}  // namespace tenon
