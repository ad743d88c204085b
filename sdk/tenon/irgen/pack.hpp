// Copies between dense memory and boxes that have gaps, are permuted or lie in a ring buffer, for kernels that take
// only dense tensors. No heap allocation.
#pragma once
#include <cstddef>

#include <tenon/program/ir/kernel.hpp>
#include <tenon/support/export.hpp>

namespace tenon::irgen {

// Writes the elements of the view without gaps, dim 0 fastest.
TENON_API void pack(const program::BufferView& from, std::byte* to);
TENON_API void unpack(const std::byte* from, const program::BufferView& to);

}  // namespace tenon::irgen
