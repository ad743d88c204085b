// The position of an element of an epilogue's space along each dim, for ports that vary over some dims.
//
// A division takes as long as dozens of multiply-adds. The host therefore passes a reciprocal beside each extent, and a
// position is computed from the previous one: nothing is divided for elements of the same line or of the next.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tenon/tensor/shape.hpp>

namespace tenon::opencl {

// OpenCL C, for a space of `rank` >= 2 dims, with f from place_numbers():
//   struct tenon_place                    at0, at1 ... along each dim
//   tenon_place_of(f, e)                  position of element e
//   tenon_place_behind(f, place, e, j)    position of element e + j, given the position of e
std::string place_functions(size_t rank);

// The extents, then the reciprocal of each: the quotient of any element's index and the extent is the upper half of the
// product with it; 0 where no 64-bit number does that, and the device divides.
std::vector<int64_t> place_numbers(const Dims& extents);

}  // namespace tenon::opencl
