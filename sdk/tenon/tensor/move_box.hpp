// Copying boxes of elements between strided arrays.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include <tenon/support/export.hpp>

namespace tenon {

// A dim of a box: its extent in elements, and strides in bytes.
struct BoxDim {
  int64_t extent = 0;
  int64_t to_stride = 0, from_stride = 0;
};

// Copies `count` elements of `bytes` bytes; the result is as if in order, one at a time.
TENON_API void move_row(std::byte* to, int64_t to_stride, const std::byte* from, int64_t from_stride, int64_t count,
                        size_t bytes);

// Removes dims of one element, and merges adjacent dims that are contiguous on both sides; returns the number of
// remaining dims, in order, innermost first.
TENON_API size_t join_dims(std::span<BoxDim> dims);

// Copies a whole box; the first of `dims` is innermost. Source and destination contain the box, and are the same or do
// not overlap; gaps of the source may be read. `dims` are modified (join_dims). If elements are contiguous along one
// dim of the source and along another one of the destination, these two are transposed in tiles of vectors; otherwise
// rows are copied in the order of the dims.
TENON_API void move_box(std::byte* to, const std::byte* from, std::span<BoxDim> dims, size_t bytes);

}  // namespace tenon
