// The one convention between graphs and programs: dims are reversed. Dim d of a tensor of rank r is dim r - 1 - d of
// its buffer. Dim 0 of a buffer is thus the one with unit stride, as everywhere in programs, and a row-major tensor is
// a dense buffer. Minima are 0 unless a part of a value is meant.
#pragma once
#include <vector>

#include <tenon/ir/bounds_rule.hpp>
#include <tenon/program/ir/kernel.hpp>
#include <tenon/program/ir/statement.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/shape.hpp>

namespace tenon::irgen {

// A whole shape, dense. An unknown dim is an error that names it.
TENON_API Result<std::vector<program::Dim>> program_dims(const Shape& shape);
// A box of a tensor, inclusive at both ends, as index ranges of its buffer.
TENON_API program::Box program_box(const Box& box);
TENON_API program::Box program_box(const StaticBox& box);

inline Dims extents_of(const StaticBox& box) {
  Dims extents;
  for (const StaticRange& range : box) extents.push_back(range.extent());
  return extents;
}

// The extents that a kernel gets, as dims of a tensor.
TENON_API Dims tensor_dims(const program::BufferView& view);
// Whether the view's elements are a row-major tensor without gaps.
TENON_API bool is_dense(const program::BufferView& view);

}  // namespace tenon::irgen
