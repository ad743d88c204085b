// Epilogue: an elementwise snippet fused to a compute kernel. Its body is computed on vectors of the kernel's results
// while these are in registers, so that the results themselves are never in memory.
//
// The body's space is that of the kernel's result: both are dense and row-major, so elements have the same linear
// index. The other inputs of the body vary over some of its dims.
#pragma once
#include <string>

#include <tenon/snippet/body/body.hpp>
#include <tenon/support/result.hpp>

#include "opencl/compute/compute.hpp"

namespace tenon::opencl {

struct Epilogue {
  snippet::Body body;
  size_t result = 0;  // the input that is the kernel's result
};

// Whether it has so few instructions that a copy for each vector of a tile pays.
inline bool is_short(const Epilogue& epilogue) {
  return epilogue.body.inputs.size() <= 3 && epilogue.body.nodes.size() <= 3;
}

// Stores results as they are.
Epilogue plain_epilogue(ElementType element);

// The reason why the body cannot be the epilogue of a kernel whose result is its input `result`: it reduces, or an
// output has another space. "" when it can.
std::string why_no_epilogue(const snippet::Body& body, size_t result);

// OpenCL C. A kernel's body uses these macros:
//   PLACE(place, e);                       defines `place`, the position of element e, the first of a line of results
//                                          (places.hpp)
//   PLACE_BEHIND(to, place, e, j);         the same for element e + j
//   FINISH(place, e, j, count, x);         stores `count` results (1 to lanes), the vector x, from element e + j on
//   FINISH_WHOLE(place, e, j, x);          stores a whole vector that is in one line, as told by
//   IN_LINE(place, length)                 whether the elements before e + length are in one line
// They call the function
//   void tenon_finish(__global const long* f, long e, int count, int whole, V x, [struct tenon_place place,] ports...)
// where f has the body's place_numbers(). Ports: e0, e1 ... for inputs except the result, r0, r1 ... for outputs.
struct EpilogueSource {
  std::string functions;
  std::string finish;  // the macros
  size_t rank = 0;     // of the body's space
};
// `lanes`: of the vectors x.
Result<EpilogueSource> write_epilogue(const Epilogue& epilogue, int lanes, const ComputeTarget& target);

}  // namespace tenon::opencl
