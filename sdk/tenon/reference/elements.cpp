#include <tenon/reference/elements.hpp>

#include <algorithm>
#include <cstring>

#include <tenon/tensor/numeric.hpp>

namespace tenon {
namespace {

bool needs_spreading(ElementType element) { return !element.is_string() && !element.byte_addressable(); }
ElementType spread_type(ElementType element) { return element.bits() <= 8 ? kU8 : kU64; }

// ---- Strided copies ----

struct Axis {
  int64_t extent, from, to;  // strides
};

// Without axes of extent 1, and with neighbours joined that both sides step through alike.
std::vector<Axis> joined_axes(const Dims& dims, const Dims& from, const Dims& to) {
  std::vector<Axis> axes;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    const Axis axis{dims[d], from[d], to[d]};
    if (!axes.empty() && axes.back().from == axis.from * axis.extent && axes.back().to == axis.to * axis.extent) {
      axes.back() = {axes.back().extent * axis.extent, axis.from, axis.to};
    } else {
      axes.push_back(axis);
    }
  }
  return axes;
}

template <class T>
void copy_line(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t count) {
  if (to_stride == 1 && from_stride == 1) {
    std::copy_n(from, count, to);
  } else if (to_stride == 1 && from_stride == 0) {
    std::fill_n(to, count, *from);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

// A plane where one side runs along `a` and the other along `b`: in squares, so that both sides' cache lines are used
// up.
template <class T>
void copy_plane(const T* from, T* to, const Axis& a, const Axis& b) {
  constexpr int64_t kSquare = 16;
  for (int64_t i0 = 0; i0 < a.extent; i0 += kSquare) {
    const int64_t i1 = std::min(i0 + kSquare, a.extent);
    for (int64_t j0 = 0; j0 < b.extent; j0 += kSquare) {
      const int64_t j1 = std::min(j0 + kSquare, b.extent);
      for (int64_t i = i0; i < i1; ++i) {
        copy_line(from + i * a.from + j0 * b.from, b.from, to + i * a.to + j0 * b.to, b.to, j1 - j0);
      }
    }
  }
}

// The last two of `axes` are the plane, the others are counted through.
template <class T>
void copy_planes(const T* from, T* to, std::span<const Axis> axes, int64_t begin, int64_t end) {
  const auto outer = axes.first(axes.size() - 2);
  for (int64_t position = begin; position < end; ++position) {
    const T* source = from;
    T* target = to;
    int64_t rest = position;
    for (size_t d = outer.size(); d-- > 0;) {
      const int64_t index = rest % outer[d].extent;
      rest /= outer[d].extent;
      source += index * outer[d].from;
      target += index * outer[d].to;
    }
    copy_plane(source, target, axes[axes.size() - 2], axes.back());
  }
}

// Element-copies that are worth a task of their own.
constexpr int64_t kTaskElements = 16384;

template <class T>
void copy_axes(ParallelFor& parallel, const T* from, T* to, std::vector<Axis> axes) {
  while (axes.size() < 2) axes.insert(axes.begin(), Axis{1, 0, 0});
  // The axis along which `from` is dense becomes the plane's other side.
  const auto dense = std::find_if(axes.begin(), axes.end() - 1, [](const Axis& axis) { return axis.from == 1; });
  if (dense != axes.end() - 1) std::rotate(dense, dense + 1, axes.end() - 1);
  int64_t planes = 1;
  for (size_t d = 0; d + 2 < axes.size(); ++d) planes *= axes[d].extent;
  const int64_t plane = axes[axes.size() - 2].extent * axes.back().extent;
  if (planes > 1) {
    parallel.run(planes, std::max<int64_t>(1, kTaskElements / plane),
                 [&](int64_t begin, int64_t end) { copy_planes<T>(from, to, axes, begin, end); });
    return;
  }
  const Axis& rows = axes[axes.size() - 2];
  const Axis& columns = axes.back();
  const bool by_rows = rows.extent > 1;
  const Axis& split = by_rows ? rows : columns;
  const int64_t cost = by_rows ? columns.extent : 1;
  parallel.run(split.extent, std::max<int64_t>(1, kTaskElements / cost), [&](int64_t begin, int64_t end) {
    const Axis part{end - begin, split.from, split.to};
    copy_plane(from + begin * split.from, to + begin * split.to, by_rows ? part : rows, by_rows ? columns : part);
  });
}

}  // namespace

// ---- Spreading ----

Result<Tensor> spread(const Tensor& tensor) {
  if (!needs_spreading(tensor.element())) return tensor;
  const int bits = tensor.element().bits();
  TENON_TRY(out, Tensor::allocate(spread_type(tensor.element()), tensor.dims()));
  dispatch_storage(out.element(), [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      T* to = storage_of_elements<T>(out);
      for (int64_t i = 0; i < tensor.size(); ++i) to[i] = static_cast<T>(load_bits(tensor.data(), bits, i));
    }
  });
  return out;
}

Result<SpreadOutput> SpreadOutput::of(Tensor result) {
  SpreadOutput output;
  output.result_ = std::move(result);
  if (needs_spreading(output.result_.element())) {
    TENON_TRY(written, Tensor::allocate(spread_type(output.result_.element()), output.result_.dims()));
    output.written_ = std::move(written);
  } else {
    output.written_ = output.result_;
  }
  return output;
}

Result<SpreadOutput> SpreadOutput::open(EvalContext& context, size_t i) {
  TENON_TRY(result, context.output(i));
  return of(*result);
}
Result<SpreadOutput> SpreadOutput::open(EvalContext& context, size_t i, ElementType element, Dims dims) {
  TENON_TRY(result, context.output(i, element, std::move(dims)));
  return of(*result);
}
Result<SpreadOutput> SpreadOutput::make(ElementType element, Dims dims) {
  TENON_TRY(result, Tensor::allocate(element, std::move(dims)));
  return of(std::move(result));
}

Result<void> SpreadOutput::close() {
  if (!needs_spreading(result_.element())) return {};
  const int bits = result_.element().bits();
  dispatch_storage(written_.element(), [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      const T* from = storage_of_elements<T>(std::as_const(written_));
      for (int64_t i = 0; i < written_.size(); ++i) store_bits(result_.mutable_data(), bits, i, from[i]);
    }
  });
  return {};
}

// ---- Copies ----

void copy_elements(ParallelFor& parallel, const Tensor& from, const ElementBlock& from_block, Tensor& to,
                   const ElementBlock& to_block, const Dims& dims) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return;
  dispatch_storage(from.element(), [&]<class T>() {
    copy_axes<T>(parallel, storage_of_elements<T>(from) + from_block.offset,
                 storage_of_elements<T>(to) + to_block.offset, joined_axes(dims, from_block.strides, to_block.strides));
  });
}

void copy_transposed(ParallelFor& parallel, const Tensor& from, const Dims& dims, std::span<const int64_t> perm,
                     Tensor& to) {
  const Dims strides = row_major_strides(dims);
  Dims to_dims, from_strides;
  for (const int64_t axis : perm) {
    to_dims.push_back(dims[static_cast<size_t>(axis)]);
    from_strides.push_back(strides[static_cast<size_t>(axis)]);
  }
  copy_elements(parallel, from, {0, from_strides}, to, {0, row_major_strides(to_dims)}, to_dims);
}

void copy_run(const Tensor& from, int64_t from_offset, Tensor& to, int64_t to_offset, int64_t count) {
  dispatch_storage(from.element(), [&]<class T>() {
    std::copy_n(storage_of_elements<T>(from) + from_offset, count, storage_of_elements<T>(to) + to_offset);
  });
}

void fill_zero(Tensor& to) {
  dispatch_storage(to.element(), [&]<class T>() { std::fill_n(storage_of_elements<T>(to), to.size(), T()); });
}

void fill_elements(ParallelFor& parallel, const Tensor& from, int64_t index, Tensor& to) {
  copy_elements(parallel, from, {index, {0}}, to, {0, {1}}, {to.size()});
}

}  // namespace tenon
