// Access to single elements of a body's values and ports: for oracles, which iterate over tensors rather than loops.
#pragma once
#include <cstdint>
#include <vector>

#include <tenon/snippet/body/body.hpp>
#include <tenon/support/export.hpp>
#include <tenon/tensor/shape.hpp>

namespace tenon::snippet {

// Of a dense tensor over the dims in `set`, whose extents are those of the body's dims.
TENON_API int64_t element_count(DimSet set, const Dims& extents);
// For each element of a tensor over `to`, in row-major order: the index of its element in a tensor over `from`.
TENON_API std::vector<size_t> element_places(DimSet from, DimSet to, const Dims& extents);

// The memory layout of a port.
struct PortLayout {
  std::vector<int64_t> strides;  // bytes from one element to the next along each dim; 0 where it does not vary
  int64_t begin_bytes = 0;       // from the tensor's first element to the port's
  int64_t bytes = 0;             // of the port's own elements
};
TENON_API PortLayout layout_of(const BodyPort& port, DimSet varies, const Dims& extents);

// The bits of a lane that holds an element of type `memory`, and back. Lanes of f16 and bf16 are rounded to nearest.
TENON_API uint64_t lane_of_memory(ElementType memory, uint64_t bits);
TENON_API uint64_t memory_of_lane(ElementType memory, uint64_t bits);

}  // namespace tenon::snippet
