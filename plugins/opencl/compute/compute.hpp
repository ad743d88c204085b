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

#include <tenon/codegen/jitter_table.hpp>
#include <tenon/irgen/kernel_source.hpp>
#include <tenon/target/description.hpp>
#include <tenon/tensor/shape.hpp>

#include "opencl/sub_groups.hpp"

namespace tenon::opencl {

struct Epilogue;  // epilogue.hpp

inline constexpr std::string_view kComputeKernel = "tenon_compute";

// Bounds on the tiles of products and convolutions (tile.hpp), which fit them to extents.
struct Tiling {
  int rows = 12, vectors = 4;  // of a tile in registers
  int registers = 24;          // rows times vectors
  bool local = true;           // pack into local memory what several row tiles read
  int64_t depth = 1024;        // steps of the inner extent in a packed panel
  int64_t block_rows = 1024;   // rows whose sums wait in local memory while panels change
  bool exact = false;          // rows and vectors as they are, whatever the extents
  bool operator==(const Tiling&) const = default;
};

// What sources are made for.
struct ComputeTarget {
  const TargetDescription& description;
  const codegen::JitterTable& table;  // for epilogues
  int64_t work_group = 1;             // work items; 1: neighbouring items go to the same one, as a CPU likes
  int lanes = 16;                     // of 32 bits in a vector
  int64_t local_bytes = 32 << 10, compute_units = 1;
  Tiling tiling = {};
  SubGroups sub_groups = {};
  bool comments = false;  // the operator and instruction above the lines of an epilogue that are made of them
};

// Extents of what a call is given.
struct CallShapes {
  std::vector<Dims> operands;  // by operand of the operator; empty for those that are absent
  std::vector<Dims> results;   // of the operator; with an epilogue these are in no memory
  std::vector<Dims> others;    // with an epilogue: what else it reads, then what it writes
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
  bool of_group = false;       // an item is the work of a whole work group
  std::vector<bool> operands;  // by operand of the operator: is it there?
  size_t others = 0;           // ports of the epilogue; 0: there is none
  size_t results = 0;          // of the operator, unless there is an epilogue
};

// Code::unsupported with a reason where there is none. Operands that decide about extents must be constants.
Result<std::shared_ptr<const ComputeKernel>> compute_kernel(const irgen::KernelRequest& request,
                                                            const ComputeTarget& target);
// The same with an elementwise snippet behind it (epilogue.hpp) that alone reads the operator's result.
Result<std::shared_ptr<const ComputeKernel>> compute_kernel(const irgen::KernelRequest& request,
                                                            const ComputeTarget& target, const Epilogue& epilogue);
// Has its family kernels with epilogues?
bool takes_epilogue(const Op& op);
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
  Result<ComputeKernel> (*make)(const irgen::KernelRequest&, const ComputeTarget&) = nullptr;
  // Instead, of families that take an epilogue, which may be plain_epilogue().
  Result<ComputeKernel> (*make_with)(const irgen::KernelRequest&, const ComputeTarget&, const Epilogue&) = nullptr;
};
std::span<const ComputeRow> product_rows();      // MatMul, Gemm ...
std::span<const ComputeRow> convolution_rows();  // Conv, ConvTranspose ...
std::span<const ComputeRow> pooling_rows();      // pools, LRN
std::span<const ComputeRow> indexing_rows();     // Gather, Scatter ...
std::span<const ComputeRow> placement_rows();    // Pad, Tile, Resize of nearest elements ...: elements at other places
std::span<const ComputeRow> resampling_rows();   // Resize by weights
std::span<const ComputeRow> line_rows();         // CumSum, TopK ...: along an axis, in order
std::span<const ComputeRow> loss_rows();
std::span<const ComputeRow> attention_rows();
std::span<const ComputeRow> recurrent_rows();       // RNN, GRU, LSTM
std::span<const ComputeRow> streaming_rows();       // LinearAttention ...: with a state from call to call
std::span<const ComputeRow> sampling_rows();        // GridSample, RoiAlign ...: images at points
std::span<const ComputeRow> deformed_rows();        // DeformConv, Col2Im: taps that are no block of the image
std::span<const ComputeRow> quantised_rows();       // ConvInteger, QLinearConv, QLinearMatMul
std::span<const ComputeRow> tensor_product_rows();  // Einsum, Det
std::span<const ComputeRow> generator_rows();       // ConstantOfShape, Range ...: of extents alone
std::span<const ComputeRow> small_float_rows();     // Cast from and to floats of 8 bits

}  // namespace tenon::opencl
