// Plain OpenCL C, hand-written for CPUs with vectors of 16 floats: the reference for comparison in opencl_bench. Each
// function returns the variants of one kernel that are worth trying for its extents, which are constants of the source;
// the bench measures all and takes the best.
//
// Arguments of each kernel: its operands in the order of the operator, then the result; all floats. Work groups have
// one item and share the jobs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::opencl {

struct HandKernel {
  std::string name;  // of the form
  std::string source;
  size_t groups = 16;  // if there are fewer jobs, the rest do nothing
};

// Multiply-adds without dependences on memory: 24 sums in registers, `steps` each. Three buffers.
HandKernel peak_by_hand(int64_t steps);

// c[batch][m][n] = a[batch][m][k] * b[batch][k][n], or b[n][k] transposed; bias[n] is added, then Relu.
struct HandProduct {
  int64_t m = 1, n = 1, k = 1, batch = 1;
  bool transposed = false, bias = false, relu = false;
  bool swapped = false;  // b is the first operand: a convolution of 1x1
};
std::vector<HandKernel> product_by_hand(const HandProduct& product);

// y[outputs][out][out] from x[channels][size][size] and w[outputs][channels][kernel][kernel], padded by kernel / 2.
struct HandConv {
  int64_t channels = 1, size = 1, outputs = 1, kernel = 3, stride = 1;
  bool relu = false;
  int64_t out() const { return (size + 2 * (kernel / 2) - kernel) / stride + 1; }
};
std::vector<HandKernel> conv_by_hand(const HandConv& conv);
// One kernel per channel: w[channels][1][kernel][kernel].
std::vector<HandKernel> depthwise_by_hand(const HandConv& conv);
// The maximum of 3x3, stride 2, padded by 1.
std::vector<HandKernel> max_pool_by_hand(const HandConv& pool);

}  // namespace tenon::opencl
