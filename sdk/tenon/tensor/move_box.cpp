#include <tenon/tensor/move_box.hpp>

#include <algorithm>
#include <cstring>

#include <tenon/tensor/reorder_tiles_internal.hpp>
#include <tenon/tensor/reorder_vectors_internal.hpp>

namespace tenon {
namespace {

// Steps that are compile-time constants become vector shuffles.
template <class T, int64_t kStep>
void move_stepped(std::byte* to, const std::byte* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * sizeof(T), from + i * kStep * sizeof(T), sizeof(T));
}

// Starts at the last byte. Every machine can reverse pairs of bytes in vectors, but not all can reverse bytes.
void move_turned_bytes(std::byte* to, const std::byte* from, int64_t count) {
  const int64_t pairs = count / 2;
  for (int64_t i = 0; i < pairs; ++i) {
    uint16_t pair;
    std::memcpy(&pair, from - 1 - 2 * i, sizeof(pair));
    pair = static_cast<uint16_t>(pair << 8 | pair >> 8);
    std::memcpy(to + 2 * i, &pair, sizeof(pair));
  }
  if (count % 2 != 0) to[count - 1] = from[1 - count];
}

template <class T>
void move_strided(std::byte* to, int64_t to_stride, const std::byte* from, int64_t from_stride, int64_t count) {
  constexpr int64_t kSize = sizeof(T);
  const std::byte* const last = from + (count - 1) * from_stride;
  const bool apart = to + count * kSize <= std::min(from, last) || std::max(from, last) + kSize <= to;
  if (to_stride == kSize && apart) {
    switch (from_stride) {
      case -kSize: return kSize == 1 ? move_turned_bytes(to, from, count) : move_stepped<T, -1>(to, from, count);
      case 0: return move_stepped<T, 0>(to, from, count);
      case 2 * kSize: return move_stepped<T, 2>(to, from, count);
      case 3 * kSize: return move_stepped<T, 3>(to, from, count);
      case 4 * kSize: return move_stepped<T, 4>(to, from, count);
      default: break;
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + i * from_stride, sizeof(T));
    std::memcpy(to + i * to_stride, &value, sizeof(T));
  }
}

struct Wide16 {
  uint64_t low, high;
};

// Calls inner(to, from) for each index of `dims`.
template <class Inner>
void for_each_place(std::byte* to, const std::byte* from, std::span<const BoxDim> dims, const Inner& inner) {
  if (dims.empty()) return inner(to, from);
  const BoxDim& dim = dims.back();
  for (int64_t i = 0; i < dim.extent; ++i, to += dim.to_stride, from += dim.from_stride)
    for_each_place(to, from, dims.first(dims.size() - 1), inner);
}

// Puts the dim along which the destination is dense first and that along which the source is dense second; false if
// there are no two such dims.
bool finds_matrix(std::span<BoxDim> dims, int64_t bytes) {
  const auto rows = std::ranges::find(dims, bytes, &BoxDim::to_stride);
  if (rows == dims.end() || rows->from_stride == bytes) return false;
  const auto columns = std::ranges::find(dims, bytes, &BoxDim::from_stride);
  if (columns == dims.end() || columns->to_stride < 0) return false;
  const size_t first = std::min(rows, columns) - dims.begin(), second = std::max(rows, columns) - dims.begin();
  const bool rows_first = rows < columns;
  std::rotate(dims.begin(), dims.begin() + first, dims.begin() + first + 1);
  std::rotate(dims.begin() + 1, dims.begin() + second, dims.begin() + second + 1);
  if (!rows_first) std::swap(dims[0], dims[1]);
  return true;
}

void move_matrices(std::byte* to, const std::byte* from, std::span<const BoxDim> dims, int64_t bytes) {
  int64_t moved = bytes;
  for (const BoxDim& dim : dims) moved *= dim.extent;
  const BoxDim &rows = dims[0], &columns = dims[1];
  const BoxDim matrices = dims.size() > 2 ? dims[2] : BoxDim{.extent = 1};
  for_each_place(to, from, dims.subspan(std::min<size_t>(dims.size(), 3)), [&](std::byte* t, const std::byte* f) {
    detail::transpose({.source = f,
                       .destination = t,
                       .rows = rows.extent,
                       .columns = columns.extent,
                       .source_pitch = rows.from_stride,
                       .destination_pitch = columns.to_stride,
                       .count = matrices.extent,
                       .source_step = matrices.from_stride,
                       .destination_step = matrices.to_stride,
                       .non_temporal = moved >= detail::kFarBytes},
                      bytes);
  });
}

}  // namespace

void move_row(std::byte* to, int64_t to_stride, const std::byte* from, int64_t from_stride, int64_t count,
              size_t bytes) {
  if (to == from && (to_stride == from_stride || count <= 1)) return;
  const int64_t dense = static_cast<int64_t>(bytes);
  if (to_stride == dense && from_stride == dense && (to < from || to >= from + count * dense)) {
    std::memmove(to, from, static_cast<size_t>(count) * bytes);
    return;
  }
  switch (bytes) {
    case 1: return move_strided<uint8_t>(to, to_stride, from, from_stride, count);
    case 2: return move_strided<uint16_t>(to, to_stride, from, from_stride, count);
    case 4: return move_strided<uint32_t>(to, to_stride, from, from_stride, count);
    case 8: return move_strided<uint64_t>(to, to_stride, from, from_stride, count);
    default: return move_strided<Wide16>(to, to_stride, from, from_stride, count);
  }
}

size_t join_dims(std::span<BoxDim> dims) {
  size_t rank = 0;
  for (const BoxDim& dim : dims) {
    if (dim.extent == 1) continue;
    BoxDim* before = rank > 0 ? &dims[rank - 1] : nullptr;
    if (before && dim.to_stride == before->extent * before->to_stride &&
        dim.from_stride == before->extent * before->from_stride)
      before->extent *= dim.extent;
    else
      dims[rank++] = dim;
  }
  return rank;
}

void move_box(std::byte* to, const std::byte* from, std::span<BoxDim> dims, size_t bytes) {
  if (std::ranges::find(dims, 0, &BoxDim::extent) != dims.end()) return;
  dims = dims.first(join_dims(dims));
  if (dims.empty()) {
    if (to != from) std::memmove(to, from, bytes);
    return;
  }
  const auto element = static_cast<int64_t>(bytes);
  if (to != from && detail::has_zero_rows(element) && finds_matrix(dims, element))
    return move_matrices(to, from, dims, element);
  const BoxDim& row = dims[0];
  const int64_t run = row.extent * element;
  if (to != from && row.to_stride == element && row.from_stride == element && run <= detail::kShortRun) {
    return for_each_place(to, from, dims.subspan(1),
                          [&](std::byte* t, const std::byte* f) { detail::copy_short(t, f, run); });
  }
  for_each_place(to, from, dims.subspan(1), [&](std::byte* t, const std::byte* f) {
    move_row(t, row.to_stride, f, row.from_stride, row.extent, bytes);
  });
}

}  // namespace tenon
