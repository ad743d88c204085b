#include <tenon/program/move_box.hpp>

#include <algorithm>
#include <array>
#include <cstring>

#include <tenon/program/kernel.hpp>

namespace tenon::program {
namespace {

template <class T>
void move_strided(std::byte* to, int64_t to_stride, const std::byte* from, int64_t from_stride, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + i * from_stride, sizeof(T));
    std::memcpy(to + i * to_stride, &value, sizeof(T));
  }
}

struct Wide16 {
  uint64_t low, high;
};

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

void move_box(std::byte* to, const std::byte* from, std::span<BoxDim> dims, size_t bytes) {
  size_t rank = 0;
  for (const BoxDim& dim : dims) {
    if (dim.extent == 0) return;
    if (dim.extent == 1) continue;
    BoxDim* before = rank > 0 ? &dims[rank - 1] : nullptr;
    if (before && dim.to_stride == before->extent * before->to_stride &&
        dim.from_stride == before->extent * before->from_stride)
      before->extent *= dim.extent;
    else
      dims[rank++] = dim;
  }
  if (rank == 0) {
    if (to != from) std::memmove(to, from, bytes);
    return;
  }
  std::array<int64_t, kMaxRank> at{};
  while (true) {
    move_row(to, dims[0].to_stride, from, dims[0].from_stride, dims[0].extent, bytes);
    size_t d = 1;
    for (; d < rank; ++d) {
      to += dims[d].to_stride, from += dims[d].from_stride;
      if (++at[d] < dims[d].extent) break;
      to -= dims[d].extent * dims[d].to_stride, from -= dims[d].extent * dims[d].from_stride;
      at[d] = 0;
    }
    if (d == rank) return;
  }
}

}  // namespace tenon::program
