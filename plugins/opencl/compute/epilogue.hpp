// Epilogue: the elementwise snippet behind a compute kernel, as part of it. Its body is emitted on vectors of the
// kernel's results while these are in registers, so that the results themselves never see memory.
//
// The body's space is the kernel's result, element by element: both are dense and row-major, so that the number of an
// element in one is its number in the other. What else the body reads varies over some of its dims.
#pragma once
#include <string>

#include <tenon/snippet/body.hpp>
#include <tenon/support/result.hpp>

#include "opencl/compute/compute.hpp"

namespace tenon::opencl {

struct Epilogue {
  snippet::Body body;
  size_t result = 0;  // the input that is the kernel's result
};

// Few instructions and no reads but of results: worth a copy where they are wanted.
inline bool is_short(const Epilogue& epilogue) {
  return epilogue.body.inputs.size() == 1 && epilogue.body.nodes.size() <= 2;
}

// Stores results as they are.
Epilogue plain_epilogue(ElementType element);

// Why the body cannot be the epilogue of a kernel whose result is its input `result`: it reduces, or an output has
// another space. "" when it can.
std::string why_no_epilogue(const snippet::Body& body, size_t result);

// OpenCL C. The function is
//   void tenon_finish(__global const long* f, long e, int count, V x, ports...)
// with `count` results (1 to lanes) x from element e on; f has the extents of the body's dims. Ports: e0, e1 ... of
// inputs but the result, r0, r1 ... of outputs.
struct EpilogueSource {
  std::string functions;
  std::string finish;  // #define FINISH(e, count, x)
  size_t extents = 0;  // numbers of f
};
// `lanes`: of the vectors that FINISH is given.
Result<EpilogueSource> write_epilogue(const Epilogue& epilogue, int lanes, const ComputeTarget& target);

}  // namespace tenon::opencl
