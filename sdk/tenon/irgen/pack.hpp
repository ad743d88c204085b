// Boxes with gaps, in another order or in a ring, from and to dense memory: what a kernel that takes dense tensors
// needs around it. No heap.
#pragma once
#include <cstddef>

#include <tenon/program/ir/kernel.hpp>
#include <tenon/support/export.hpp>

namespace tenon::irgen {

// The elements of the view, dim 0 fastest, without gaps.
TENON_API void pack(const program::BufferView& from, std::byte* to);
TENON_API void unpack(const std::byte* from, const program::BufferView& to);

}  // namespace tenon::irgen
