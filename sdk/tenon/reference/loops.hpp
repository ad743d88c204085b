// Loops shared by the evaluators: broadcasting, one axis, reductions over several axes; in pieces that run in parallel.
//
// All offsets and strides are in elements of dense row-major tensors. Bodies get whole runs, so that the inner loop is
// the evaluator's own, typed and without calls.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <tenon/support/parallel.hpp>
#include <tenon/tensor/shape.hpp>

namespace tenon {

// The number of elementary operations that are worth a task of their own.
inline constexpr int64_t kTaskElements = 16384;
// How many items of `cost` elementary operations each make a task.
constexpr int64_t grain_of(int64_t cost) { return std::max<int64_t>(1, kTaskElements / std::max<int64_t>(1, cost)); }

// Iterates over `dims` in row-major order and tracks the offsets of `N` strided tensors.
template <size_t N>
class Odometer {
 public:
  Odometer(const Dims& dims, const std::array<Dims, N>& strides)
      : dims_(dims), strides_(strides), index_(dims.size()) {}

  // Moves to the index with this row-major number, in [0, product of dims).
  void seek(int64_t position) {
    offsets_.fill(0);
    for (size_t d = dims_.size(); d-- > 0;) {
      index_[d] = position % dims_[d];
      position /= dims_[d];
      for (size_t k = 0; k < N; ++k) offsets_[k] += index_[d] * strides_[k][d];
    }
  }
  // The last index is followed by the first.
  void next() {
    for (size_t d = dims_.size(); d-- > 0;) {
      const bool wraps = ++index_[d] == dims_[d];
      const int64_t steps = wraps ? 1 - dims_[d] : 1;
      for (size_t k = 0; k < N; ++k) offsets_[k] += steps * strides_[k][d];
      if (!wraps) return;
      index_[d] = 0;
    }
  }
  const std::array<int64_t, N>& offsets() const { return offsets_; }

 private:
  const Dims& dims_;
  const std::array<Dims, N>& strides_;
  Dims index_;
  std::array<int64_t, N> offsets_{};
};

// How `N` operands broadcast to a result. Adjacent dims with matching strides in all operands are merged, so the stride
// of an operand along the innermost dim is 1, or 0 where it is broadcast.
template <size_t N>
class BroadcastPlan {
 public:
  BroadcastPlan(std::span<const int64_t> result, const std::array<std::span<const int64_t>, N>& operands) {
    for (size_t d = 0; d < result.size(); ++d) {
      count_ *= result[d];
      if (result[d] == 1) continue;
      std::array<int64_t, N> strides;
      for (size_t k = 0; k < N; ++k) strides[k] = stride(operands[k], result.size(), d);
      append(result[d], strides);
    }
    if (dims_.empty()) append(1, {});
    inner_ = dims_.back();
    dims_.pop_back();
    for (size_t k = 0; k < N; ++k) {
      inner_strides_[k] = strides_[k].back();
      strides_[k].pop_back();
    }
  }

  int64_t count() const { return count_; }
  const std::array<int64_t, N>& inner_strides() const { return inner_strides_; }

  // Calls body(first, count, offsets) for runs of result elements [first, first + count) within [begin, end);
  // offsets[k] is the offset in operand k for element `first`, and it advances by inner_strides()[k] per element.
  template <class Body>
  void for_runs(int64_t begin, int64_t end, Body&& body) const {
    if (begin >= end) return;
    Odometer<N> outer(dims_, strides_);
    outer.seek(begin / inner_);
    int64_t skipped = begin % inner_;
    for (int64_t first = begin; first < end;) {
      const int64_t count = std::min(inner_ - skipped, end - first);
      std::array<int64_t, N> offsets = outer.offsets();
      for (size_t k = 0; k < N; ++k) offsets[k] += skipped * inner_strides_[k];
      body(first, count, offsets);
      first += count;
      skipped = 0;
      outer.next();
    }
  }

  // The same for all elements, in parallel; `cost` is in elementary operations per element.
  template <class Body>
  void run(ParallelFor& parallel, Body&& body, int64_t cost = 1) const {
    parallel.run(count_, grain_of(cost), [&](int64_t begin, int64_t end) { for_runs(begin, end, body); });
  }

 private:
  static int64_t stride(std::span<const int64_t> dims, size_t rank, size_t d) {
    const size_t missing = rank - dims.size();
    if (d < missing || dims[d - missing] == 1) return 0;
    int64_t stride = 1;
    for (size_t i = d - missing + 1; i < dims.size(); ++i) stride *= dims[i];
    return stride;
  }
  void append(int64_t extent, const std::array<int64_t, N>& strides) {
    bool merges = !dims_.empty();
    for (size_t k = 0; merges && k < N; ++k) merges = strides_[k].back() == strides[k] * extent;
    if (merges)
      dims_.back() *= extent;
    else
      dims_.push_back(extent);
    for (size_t k = 0; k < N; ++k) {
      if (merges)
        strides_[k].back() = strides[k];
      else
        strides_[k].push_back(strides[k]);
    }
  }

  int64_t count_ = 1, inner_ = 1;
  Dims dims_;  // all but the innermost
  std::array<Dims, N> strides_;
  std::array<int64_t, N> inner_strides_{};
};

// out[i] = f(a[i])
template <class R, class A, class F>
void map_elements(ParallelFor& parallel, const A* a, R* out, int64_t count, F f) {
  parallel.run(count, kTaskElements, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = f(a[i]);
  });
}

// out[i] = f(a[i], b[i]) with both broadcast to the result.
template <class R, class A, class B, class F>
void map_elements(ParallelFor& parallel, const BroadcastPlan<2>& plan, const A* a, const B* b, R* out, F f) {
  const auto [stride_a, stride_b] = plan.inner_strides();
  plan.run(parallel, [&, stride_a = stride_a, stride_b = stride_b](int64_t first, int64_t count, const auto& offsets) {
    R* to = out + first;
    const A* x = a + offsets[0];
    const B* y = b + offsets[1];
    if (stride_a == 0) {
      const A fixed = *x;
      for (int64_t i = 0; i < count; ++i) to[i] = f(fixed, y[i * stride_b]);
    } else if (stride_b == 0) {
      const B fixed = *y;
      for (int64_t i = 0; i < count; ++i) to[i] = f(x[i], fixed);
    } else {
      for (int64_t i = 0; i < count; ++i) to[i] = f(x[i], y[i]);
    }
  });
}

// A tensor seen along one axis: outer x extent x inner; consecutive elements of the axis are `inner` apart.
struct AxisView {
  int64_t outer = 1, extent = 1, inner = 1;

  AxisView(std::span<const int64_t> dims, size_t axis) : extent(dims[axis]) {
    for (size_t d = 0; d < axis; ++d) outer *= dims[d];
    for (size_t d = axis + 1; d < dims.size(); ++d) inner *= dims[d];
  }
  int64_t lines() const { return outer * inner; }
  // The offset of line `i`; its elements follow at multiples of `inner`.
  int64_t offset(int64_t i) const { return i / inner * extent * inner + i % inner; }

  // Calls body(line, offset) for every line, in parallel; `cost` is in elementary operations per element.
  template <class Body>
  void run(ParallelFor& parallel, Body&& body, int64_t cost = 1) const {
    parallel.run(lines(), grain_of(extent * cost), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(i, offset(i));
    });
  }
};

// Reduces the axes for which `reduced` holds; results are row-major over the remaining axes.
class ReductionPlan {
 public:
  ReductionPlan(std::span<const int64_t> dims, const std::vector<bool>& reduced) {
    const Dims strides = row_major_strides(dims);
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] == 1) continue;
      Group& group = reduced[d] ? reduced_ : kept_;
      const bool merges = !group.dims.empty() && group.strides[0].back() == strides[d] * dims[d];
      if (merges)
        group.dims.back() *= dims[d];
      else
        group.dims.push_back(dims[d]);
      if (merges)
        group.strides[0].back() = strides[d];
      else
        group.strides[0].push_back(strides[d]);
      (reduced[d] ? folded_ : results_) *= dims[d];
    }
    reduced_inner_ = split_inner(reduced_);
    kept_inner_ = split_inner(kept_);
  }

  int64_t results() const { return results_; }
  // The number of elements reduced into each result.
  int64_t folded() const { return folded_; }

  // out[r] = finish(state), after add(state, element) for each element of result r, starting with a copy of `initial`.
  template <class T, class R, class State, class Add, class Finish>
  void run(ParallelFor& parallel, const T* in, R* out, const State& initial, Add add, Finish finish) const {
    parallel.run(results_, grain_of(folded_), [&](int64_t begin, int64_t end) {
      Odometer<1> kept(kept_.dims, kept_.strides);
      kept.seek(begin / kept_inner_.extent);
      int64_t skipped = begin % kept_inner_.extent;
      std::vector<State> states;
      for (int64_t first = begin; first < end;) {
        // Neighbouring results are reduced together, so that memory is read along its rows.
        const int64_t count = std::min({kept_inner_.extent - skipped, end - first, kBlock});
        states.assign(static_cast<size_t>(count), initial);
        fold(in + kept.offsets()[0] + skipped * kept_inner_.stride, states, add);
        for (const State& state : states) out[first++] = finish(state);
        skipped += count;
        if (skipped < kept_inner_.extent) continue;
        skipped = 0;
        kept.next();
      }
    });
  }

 private:
  static constexpr int64_t kBlock = 256;
  struct Group {
    Dims dims;
    std::array<Dims, 1> strides;
  };
  struct Inner {
    int64_t extent = 1, stride = 1;
  };
  static Inner split_inner(Group& group) {
    if (group.dims.empty()) return {};
    const Inner inner{group.dims.back(), group.strides[0].back()};
    group.dims.pop_back();
    group.strides[0].pop_back();
    return inner;
  }

  template <class T, class State, class Add>
  void fold(const T* in, std::vector<State>& states, Add& add) const {
    if (folded_ == 0) return;
    Odometer<1> outer(reduced_.dims, reduced_.strides);
    outer.seek(0);
    for (int64_t n = folded_ / reduced_inner_.extent; n > 0; --n, outer.next()) {
      const T* row = in + outer.offsets()[0];
      if (states.size() == 1) {
        State state = states[0];
        for (int64_t i = 0; i < reduced_inner_.extent; ++i) add(state, row[i * reduced_inner_.stride]);
        states[0] = state;
        continue;
      }
      for (int64_t i = 0; i < reduced_inner_.extent; ++i, row += reduced_inner_.stride) {
        for (size_t k = 0; k < states.size(); ++k) add(states[k], row[static_cast<int64_t>(k) * kept_inner_.stride]);
      }
    }
  }

  Group kept_, reduced_;  // without their innermost dims
  Inner kept_inner_, reduced_inner_;
  int64_t results_ = 1, folded_ = 1;
};

}  // namespace tenon
