// How items of a work group reduce their slices of a product's inner extent (group_slices.cpp): in sub-groups where the
// device has them, then in local memory.
#pragma once
#include <string_view>

#include "opencl/compute/compute_source.hpp"

namespace tenon::opencl {

enum class SliceFold : uint8_t { halves, shuffles, reductions };

// `by_columns`: items of adjacent slices are adjacent; otherwise `apart` items are between them.
SliceFold slice_fold_of(bool by_columns, const ComputeTarget& target);

// Defines OWN, the number of an item in its work group. SLICES is a power of two. TOGETHER of them have their items in
// one sub-group, whatever its size: EACH_STEP(TOGETHER) { ADD_STEP(x, TOGETHER); } leaves the sum of their x in each.
void define_slice_fold(ComputeSource& source, SliceFold fold, int64_t apart, int lanes);

// For `sums[r]`, vectors of columns: stores their sums in parts[SUMS_AT(row, vector)], for the item that finishes them.
// For `found[i]`, elements: stores the sums of each TOGETHER slices in `pieces`, SLICES / TOGETHER of them for each.
std::string_view slice_fold_text(bool by_columns, SliceFold fold);

}  // namespace tenon::opencl
