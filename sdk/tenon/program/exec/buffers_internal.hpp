// Inside the room: buffers with numeric bounds, and how statements derive one from another. Used by the reference;
// binding does the same with expressions.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/program/ir/kernel.hpp>
#include <tenon/program/ir/program.hpp>
#include <tenon/support/memory.hpp>
#include <tenon/support/result.hpp>

namespace tenon::program::detail {

// The location of a buffer's bytes: an allocation, or memory of the caller.
struct MemoryBlock {
  AlignedBytes owned;          // of an allocation
  std::byte* begin = nullptr;  // of slot 0
  int64_t bytes = 0;           // of one slot
  int64_t slots = 1;
  BufferId root = -1;
  bool freed = false;
};

// A buffer as visible somewhere in the program. `base` is that of slot 0.
struct BoundBuffer {
  std::byte* base = nullptr;
  std::vector<DimView> dims;
  ElementType element;
  std::shared_ptr<MemoryBlock> memory;

  BufferView view() const { return {base, dims, element}; }
};

// A Dim with numbers in place of expressions.
struct DimNumbers {
  int64_t min = 0;
  int64_t extent = 0;
  std::optional<int64_t> stride;
  int64_t fold = 0;
};

// Dense strides where none are given, no fold where it has no effect. Fails on a negative extent and on overflow.
Result<std::vector<DimView>> make_dims(const std::vector<DimNumbers>& numbers, ElementType element);

// Bytes from the base down to the lowest byte of any element (<= 0), and up to the end of the highest; 0, 0 when empty.
struct Spread {
  int64_t low = 0;
  int64_t high = 0;
  int64_t bytes() const { return high - low; }
};
Result<Spread> spread_of(const std::vector<DimView>& dims, ElementType element);
// Of the elements of the box only: its actual places; a ring that it wraps around counts as a whole.
Spread spread_of_box(const BufferView& view);

struct RangeNumbers {
  int64_t min = 0;
  int64_t extent = 0;
};
// Restricts dim d of `buffer` to the range, as defined for Crop.
void crop_dim(BoundBuffer& buffer, size_t d, RangeNumbers range);
// Drops dim d, fixed at `index`.
void slice_dim(BoundBuffer& buffer, size_t d, int64_t index);

// Removes the fold of dims whose box does not wrap around their ring.
void make_linear(BoundBuffer& buffer);

}  // namespace tenon::program::detail
