// Aligned heap blocks. kAlignBytes is a cache line and the widest vector of any CPU target.
#pragma once
#include <cstddef>
#include <memory>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

inline constexpr size_t kAlignBytes = 64;

struct TENON_API AlignedFree {
  void operator()(std::byte* p) const;
};
using AlignedBytes = std::unique_ptr<std::byte[], AlignedFree>;

// `size` bytes (0 allowed: a unique non-null pointer), uninitialised. An impossible size or an exhausted heap is
// Code::resource_exhausted, never an abort. From 2 MB on, large pages are requested from the kernel, which may not
// grant them.
TENON_API Result<AlignedBytes> allocate_aligned(size_t size, size_t align = kAlignBytes);

// The most bytes that a tensor whose size comes from a model's own numbers (ConstantOfShape, Expand, Range ...) may
// take, so that a kilobyte of input cannot ask for a terabyte: 16 GiB, or TENON_TENSOR_LIMIT bytes. Read once.
TENON_API size_t tensor_bytes_limit();

}  // namespace tenon
