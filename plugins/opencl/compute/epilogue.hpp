// Epilogue: the elementwise snippet behind a compute kernel, as part of it. Its body is emitted on vectors of the
// kernel's results while these are in registers, so that the results themselves never see memory.
//
// The body's space is the kernel's result, element by element: both are dense and row-major, so that the number of an
// element in one is its number in the other. What else the body reads varies over some of its dims.
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

// Few instructions: worth a copy for each vector of a tile.
inline bool is_short(const Epilogue& epilogue) {
  return epilogue.body.inputs.size() <= 3 && epilogue.body.nodes.size() <= 3;
}

// Stores results as they are.
Epilogue plain_epilogue(ElementType element);

// Why the body cannot be the epilogue of a kernel whose result is its input `result`: it reduces, or an output has
// another space. "" when it can.
std::string why_no_epilogue(const snippet::Body& body, size_t result);

// OpenCL C. What a kernel's body calls:
//   PLACE(place, e);                       names where element e, the first of a line of results, lies (places.hpp)
//   PLACE_BEHIND(to, place, e, j);         the same of element e + j
//   FINISH(place, e, j, count, x);         `count` results (1 to lanes), the vector x, from element e + j on
//   FINISH_WHOLE(place, e, j, x);          of all lanes, in one line: where
//   IN_LINE(place, length)                 has said so for the elements before e + length
// The function behind them is
//   void tenon_finish(__global const long* f, long e, int count, int whole, V x, [struct tenon_place place,] ports...)
// where f has the body's place_numbers(). Ports: e0, e1 ... of inputs but the result, r0, r1 ... of outputs.
struct EpilogueSource {
  std::string functions;
  std::string finish;  // the macros
  size_t rank = 0;     // of the body's space
};
// `lanes`: of the vectors x.
Result<EpilogueSource> write_epilogue(const Epilogue& epilogue, int lanes, const ComputeTarget& target);

}  // namespace tenon::opencl
