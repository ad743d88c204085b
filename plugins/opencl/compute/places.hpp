// Where an element of an epilogue's space lies: its place along each dim, for ports that vary over some of them.
//
// A division takes a processor as long as dozens of multiply-adds do, so the host sends a reciprocal beside each
// extent, and a place is made of the one before it: nothing is divided for what lies in the same line or in the next.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tenon/tensor/shape.hpp>

namespace tenon::opencl {

// OpenCL C, for a space of `rank` >= 2 dims, f as place_numbers() gives it:
//   struct tenon_place                    at0, at1 ... along each dim
//   tenon_place_of(f, e)                  of element e
//   tenon_place_behind(f, place, e, j)    of element e + j, where e lies at `place`
std::string place_functions(size_t rank);

// The extents, then for each its reciprocal: a number that gives the quotient of every element's number by the extent
// as the upper half of a product; 0 where there is none of 64 bits, and the device divides.
std::vector<int64_t> place_numbers(const Dims& extents);

}  // namespace tenon::opencl
