#include "opencl/compute/compute.hpp"

#include <algorithm>

#include <tenon/ir/builder.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/epilogue.hpp"

namespace tenon::opencl {
namespace {

struct Deciding {
  std::string_view op;
  std::vector<size_t> operands;
};

// From what the operators' shape rules and the families require.
const std::vector<Deciding>& deciding_table() {
  static const std::vector<Deciding> kTable = {
      {"Reshape", {1}},        {"Expand", {1}},          {"Squeeze", {1}},         {"Unsqueeze", {1}},
      {"Slice", {1, 2, 3, 4}}, {"Split", {1}},           {"Pad", {1, 3}},          {"Tile", {1}},
      {"Trilu", {1}},          {"Resize", {1, 2, 3}},    {"Upsample", {1}},        {"CenterCropPad", {1}},
      {"TopK", {1}},           {"CumSum", {1}},          {"CumProd", {1}},         {"OneHot", {1}},
      {"ReduceSum", {1}},      {"ReduceMean", {1}},      {"ReduceMax", {1}},       {"ReduceMin", {1}},
      {"ReduceProd", {1}},     {"ReduceL1", {1}},        {"ReduceL2", {1}},        {"ReduceSumSquare", {1}},
      {"ReduceLogSum", {1}},   {"ReduceLogSumExp", {1}}, {"ReverseSequence", {1}}, {"Compress", {1}},
      {"AffineGrid", {1}},     {"Col2Im", {1, 2}},       {"ConstantOfShape", {0}}, {"Range", {0, 1, 2}},
      {"HannWindow", {0}},     {"HammingWindow", {0}},   {"BlackmanWindow", {0}},
  };
  return kTable;
}

const ComputeRow* find_row(const Op& op) {
  for (const auto rows :
       {product_rows(), convolution_rows(), pooling_rows(), indexing_rows(), placement_rows(), resampling_rows(),
        line_rows(), loss_rows(), attention_rows(), recurrent_rows(), streaming_rows(), sampling_rows(),
        deformed_rows(), quantised_rows(), tensor_product_rows(), generator_rows(), small_float_rows()})
    for (const ComputeRow& row : rows)
      if (op.name().str() == row.op) return &row;
  return nullptr;
}

Result<ComputeKernel> make(const ComputeRow& row, const irgen::KernelRequest& request, const ComputeTarget& target) {
  if (row.make) return row.make(request, target);
  return row.make_with(request, target, plain_epilogue(request.results[0].element()));
}

}  // namespace

std::vector<size_t> deciding_operands(const Op& op) {
  for (const Deciding& row : deciding_table())
    if (op.name().str() == row.op) return row.operands;
  return {};
}

Result<std::shared_ptr<const ComputeKernel>> compute_kernel(const irgen::KernelRequest& request,
                                                            const ComputeTarget& target) {
  const ComputeRow* row = find_row(request.op);
  if (!row) return error(Code::unsupported, request.op.name(), " has no compute kernel");
  TENON_TRY(made, make(*row, request, target));
  return std::make_shared<const ComputeKernel>(std::move(made));
}

Result<std::shared_ptr<const ComputeKernel>> compute_kernel(const irgen::KernelRequest& request,
                                                            const ComputeTarget& target, const Epilogue& epilogue) {
  const ComputeRow* row = find_row(request.op);
  if (!row || !row->make_with) return error(Code::unsupported, request.op.name(), " takes no epilogue");
  TENON_TRY(made, row->make_with(request, target, epilogue));
  return std::make_shared<const ComputeKernel>(std::move(made));
}

bool takes_epilogue(const Op& op) {
  const ComputeRow* row = find_row(op);
  return row && row->make_with;
}

bool has_compute_kernel(const Op& op) { return find_row(op) != nullptr; }

std::string why_no_compute(const Op& op, const ComputeTarget& target) {
  const ComputeRow* row = find_row(op);
  if (!row) return str(op.name(), " has no compute kernel");
  const auto made = make(*row, irgen::request_for(op), target);
  return made.ok() ? std::string() : made.error().message();
}

}  // namespace tenon::opencl
