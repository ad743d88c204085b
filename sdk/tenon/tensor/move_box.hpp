// Moves of boxes of elements between strided places.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include <tenon/support/export.hpp>

namespace tenon {

// A dim of a box, in elements and in bytes from one to the next.
struct BoxDim {
  int64_t extent = 0;
  int64_t to_stride = 0, from_stride = 0;
};

// `count` elements of `bytes` bytes, as one after the other.
TENON_API void move_row(std::byte* to, int64_t to_stride, const std::byte* from, int64_t from_stride, int64_t count,
                        size_t bytes);

// Leaves out dims of one element, and joins neighbours that follow on in memory on both sides; how many are left, in
// order, the innermost first.
TENON_API size_t join_dims(std::span<BoxDim> dims);

// A whole box, the first of `dims` innermost. The places have the box, and are the same or do not overlap; gaps of the
// source may be read. `dims` are changed (join_dims). Where elements follow on along one
// dim of the source and along another one of the destination, these two are transposed in tiles of vectors; else row
// by row in the order of the dims.
TENON_API void move_box(std::byte* to, const std::byte* from, std::span<BoxDim> dims, size_t bytes);

}  // namespace tenon
