// The layout of attention heads in memory.
#pragma once
#include <algorithm>
#include <cstdint>

#include <tenon/tensor/shape.hpp>

namespace tenon::opencl {

// [B, H, L, D], or [B, L, H * D] with a stated number of heads: extents, and distances in elements between batches,
// heads and rows.
struct HeadsOf {
  int64_t batch, heads, length, size, from_batch, from_head, from_row;

  HeadsOf(const Dims& dims, int64_t stated) {
    const bool packed = dims.size() == 3;
    batch = dims[0];
    heads = packed ? stated : dims[1];
    length = packed ? dims[1] : dims[2];
    size = packed ? dims[2] / std::max<int64_t>(1, stated) : dims[3];
    from_batch = heads * length * size;
    from_head = packed ? size : length * size;
    from_row = packed ? dims[2] : size;
  }
};

}  // namespace tenon::opencl
