// Compute kernels: operators that no snippet says, one family a file, as OpenCL C that reads its sizes from a table of
// numbers. A source is made for an operator's attributes and element types, and serves all extents.
//
//   void tenon_compute(__global const long* words, long first, __global uchar* q0 ..., [__global int* fault])
//
// A body of such a source (compute_source.hpp) does the work of one `item`; items are independent, and a launch shares
// them among as many work items as the device likes.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/irgen/kernel_source.hpp>
#include <tenon/target/description.hpp>
#include <tenon/tensor/shape.hpp>

namespace tenon::opencl {

inline constexpr std::string_view kComputeKernel = "tenon_compute";

// What sources are made for.
struct ComputeTarget {
  const TargetDescription& description;
  int64_t work_group = 1;  // work items; 1: neighbouring items go to the same one, as a CPU likes
  int tile_rows = 8;       // rows of a tile of 16 columns that products and convolutions keep in registers
};

// Extents of what a call is given.
struct CallShapes {
  std::vector<Dims> operands;  // by operand of the operator; empty for those that are absent
  std::vector<Dims> results;
};

// One launch for some extents. `numbers` are what the body reads as n[0], n[1] ...
struct ComputeLaunch {
  std::vector<int64_t> numbers;
  int64_t items = 0;
};

// Immutable; the operator's graph outlives it.
struct ComputeKernel {
  std::string source;
  std::function<Result<ComputeLaunch>(const CallShapes&)> launch;
  bool can_fail = false;       // the source has the port `fault`: kFaultNumber is written where data are wrong
  std::vector<bool> operands;  // by operand of the operator: is it there?
  size_t results = 0;
};

// Code::unsupported with a reason where there is none. Operands that decide about extents must be constants.
Result<std::shared_ptr<const ComputeKernel>> compute_kernel(const irgen::KernelRequest& request,
                                                            const ComputeTarget& target);
// Is the operator one of the families, whatever its types are?
bool has_compute_kernel(const Op& op);
// Can it be had once the deciding operands are known? "" or the reason why not.
std::string why_no_compute(const Op& op, const ComputeTarget& target);

// The operands of an operator whose values its extents, or its kernel, depend on: the pads of a Pad, the shape of a
// Reshape. They are constants, or a plan is made for each value.
std::vector<size_t> deciding_operands(const Op& op);

// A row of the families' table.
struct ComputeRow {
  std::string_view op;
  Result<ComputeKernel> (*make)(const irgen::KernelRequest&, const ComputeTarget&);
};
std::span<const ComputeRow> product_rows();      // MatMul, Gemm ...
std::span<const ComputeRow> convolution_rows();  // Conv, ConvTranspose ...
std::span<const ComputeRow> pooling_rows();      // pools, LRN
std::span<const ComputeRow> indexing_rows();     // Gather, Scatter ...
std::span<const ComputeRow> placement_rows();    // Pad, Tile, Resize of nearest elements ...: elements at other places
std::span<const ComputeRow> resampling_rows();   // Resize by weights
std::span<const ComputeRow> line_rows();         // CumSum, TopK ...: along an axis, in order
std::span<const ComputeRow> loss_rows();

}  // namespace tenon::opencl
