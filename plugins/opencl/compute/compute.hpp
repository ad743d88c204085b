// Compute kernels: operators that cannot be snippets, as OpenCL C that reads its sizes from a table of numbers. There
// is one file for each family of operators. A source is generated for an operator's attributes and element types, and
// serves all extents.
//   void tenon_compute(__global const long* words, long first, __global uchar* q0 ..., [__global int* fault])
//
// The body of such a source (compute_source.hpp) does the work of one `item`. Items are independent; a launch
// distributes them over any number of work items.
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

// Upper bounds of the tiles of products and convolutions (tile.hpp); choose_tile() adapts them to extents.
struct Tiling {
  int rows = 12, vectors = 4;  // of a tile in registers
  int registers = 24;          // bound of rows times vectors
  bool local = true;           // packs into local memory what several row tiles read
  int64_t depth = 1024;        // steps of the inner extent in a packed panel
  int64_t block_rows = 1024;   // rows whose sums are kept in local memory from one panel to the next
  bool exact = false;          // uses rows and vectors as they are, whatever the extents
  bool operator==(const Tiling&) const = default;
};

// Properties of the target that sources depend on.
struct ComputeTarget {
  const TargetDescription& description;
  const codegen::JitterTable& table;  // for epilogues
  int64_t work_group = 1;             // work items; 1: adjacent items are done by the same one, for locality on a CPU
  int lanes = 16;                     // 32-bit lanes of a vector
  int64_t local_bytes = 32 << 10, compute_units = 1;
  Tiling tiling = {};
  SubGroups sub_groups = {};
  bool comments = false;  // adds the operator and instruction above the lines of an epilogue
};

// Extents of the operands and results of a call.
struct CallShapes {
  std::vector<Dims> operands;  // by operand of the operator; empty for absent ones
  std::vector<Dims> results;   // of the operator; with an epilogue these are not in memory
  std::vector<Dims> others;    // with an epilogue: its other inputs, then its outputs
};

// One launch for given extents. The body reads `numbers` as n[0], n[1] ...
struct ComputeLaunch {
  std::vector<int64_t> numbers;
  int64_t items = 0;
};

// Immutable; the operator's graph must outlive it.
struct ComputeKernel {
  std::string source;
  std::function<Result<ComputeLaunch>(const CallShapes&)> launch;
  bool can_fail = false;       // the source has the port `fault`, to which it writes kFaultNumber for invalid data
  bool of_group = false;       // each item is the work of a whole work group
  std::vector<bool> operands;  // by operand of the operator: whether it is present
  size_t others = 0;           // ports of the epilogue; 0: there is none
  size_t results = 0;          // of the operator, unless there is an epilogue
};

// Code::unsupported with a reason where there is no kernel. Deciding operands must be constants.
Result<std::shared_ptr<const ComputeKernel>> compute_kernel(const irgen::KernelRequest& request,
                                                            const ComputeTarget& target);
// The same, fused with an elementwise snippet (epilogue.hpp) that is the only reader of the operator's result.
Result<std::shared_ptr<const ComputeKernel>> compute_kernel(const irgen::KernelRequest& request,
                                                            const ComputeTarget& target, const Epilogue& epilogue);
// Whether kernels of the operator's family can have epilogues.
bool takes_epilogue(const Op& op);
// Whether the operator belongs to one of the families, whatever its types.
bool has_compute_kernel(const Op& op);
// "" if there will be a kernel once the deciding operands are known, else the reason why not.
std::string why_no_compute(const Op& op, const ComputeTarget& target);

// The operands whose values determine extents, or the kernel itself: the pads of a Pad, the shape of a Reshape. They
// are constants, or a plan is made for each value.
std::vector<size_t> deciding_operands(const Op& op);

// A row of the families' table.
struct ComputeRow {
  std::string_view op;
  Result<ComputeKernel> (*make)(const irgen::KernelRequest&, const ComputeTarget&) = nullptr;
  // Set instead for families that can have an epilogue, which may be plain_epilogue().
  Result<ComputeKernel> (*make_with)(const irgen::KernelRequest&, const ComputeTarget&, const Epilogue&) = nullptr;
};
std::span<const ComputeRow> product_rows();      // MatMul, Gemm ...
std::span<const ComputeRow> convolution_rows();  // Conv, ConvTranspose ...
std::span<const ComputeRow> pooling_rows();      // pools, LRN
std::span<const ComputeRow> indexing_rows();     // Gather, Scatter ...
std::span<const ComputeRow> placement_rows();    // Pad, Tile, Resize to nearest ...: elements are only moved
std::span<const ComputeRow> resampling_rows();   // Resize with weights
std::span<const ComputeRow> line_rows();         // CumSum, TopK ...: along an axis, in order
std::span<const ComputeRow> loss_rows();
std::span<const ComputeRow> attention_rows();
std::span<const ComputeRow> recurrent_rows();       // RNN, GRU, LSTM
std::span<const ComputeRow> streaming_rows();       // LinearAttention ...: with a state passed from call to call
std::span<const ComputeRow> sampling_rows();        // GridSample, RoiAlign ...: images at arbitrary points
std::span<const ComputeRow> deformed_rows();        // DeformConv, Col2Im: taps that do not form a block of the image
std::span<const ComputeRow> quantised_rows();       // ConvInteger, QLinearConv, QLinearMatMul
std::span<const ComputeRow> tensor_product_rows();  // Einsum, Det
std::span<const ComputeRow> generator_rows();       // ConstantOfShape, Range ...: elements depend on extents alone
std::span<const ComputeRow> small_float_rows();     // Cast from and to floats of 8 bits

}  // namespace tenon::opencl
