// Einsum, one result element per item for any labels, and Det.
#include <algorithm>
#include <map>

#include <tenon/ops/matmul.hpp>
#include <tenon/support/str.hpp>
#include <tenon/tensor/shape.hpp>

#include "opencl/compute/compute_source.hpp"
#include "opencl/compute/windows.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

using irgen::KernelRequest;

// ---- Einsum ----

// n: 0 labels of the result, 1 labels that are summed over, 2 terms of a sum, then for each label, the last one first,
// its extent and its stride in every operand.
constexpr std::string_view kEinsumBody = R"(
    const long kept = n[0], summed = n[1], terms = n[2];
    __global const long* label = n + 3;
    long base[OPERANDS], rest = item;
    for (int i = 0; i < OPERANDS; ++i) base[i] = 0;
    for (long d = 0; d < kept; ++d, label += 1 + OPERANDS) {
      for (int i = 0; i < OPERANDS; ++i) base[i] += rest % label[0] * label[1 + i];
      rest /= label[0];
    }
    S sum = 0;
    for (long term = 0; term < terms; ++term) {
      long at[OPERANDS], left = term;
      for (int i = 0; i < OPERANDS; ++i) at[i] = base[i];
      __global const long* inner = label;
      for (long d = 0; d < summed; ++d, inner += 1 + OPERANDS) {
        for (int i = 0; i < OPERANDS; ++i) at[i] += left % inner[0] * inner[1 + i];
        left /= inner[0];
      }
      sum += PRODUCT;
    }
    Y(item, sum);
)";

Result<ComputeLaunch> einsum_launch(const EinsumLabels& labels, const CallShapes& shapes) {
  std::map<int, int64_t> extents;
  std::map<int, Dims> steps;
  const size_t operands = labels.operands.size();
  for (size_t i = 0; i < operands; ++i) {
    const Dims& dims = shapes.operands[i];
    const Dims strides = row_major_strides(dims);
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      const int label = labels.operands[i][axis];
      int64_t& extent = extents.try_emplace(label, 1).first->second;
      if (dims[axis] != 1) extent = dims[axis];
      // An extent of 1 is broadcast; a repeated label selects the diagonal.
      steps.try_emplace(label, Dims(operands, 0)).first->second[i] += dims[axis] == 1 ? 0 : strides[axis];
    }
  }
  std::vector<int> summed;
  for (const auto& [label, extent] : extents)
    if (std::ranges::find(labels.output, label) == labels.output.end()) summed.push_back(label);
  ComputeLaunch made{{static_cast<int64_t>(labels.output.size()), static_cast<int64_t>(summed.size()), 1},
                     elements_of(shapes.results[0])};
  const auto add = [&](int label) {
    made.numbers.push_back(extents[label]);
    made.numbers.insert(made.numbers.end(), steps[label].begin(), steps[label].end());
  };
  for (size_t i = labels.output.size(); i-- > 0;) add(labels.output[i]);
  for (const int label : summed) {
    made.numbers[2] *= extents[label];
    add(label);
  }
  return made;
}

Result<ComputeKernel> make_einsum(const KernelRequest& request, const ComputeTarget& target) {
  const ElementType work = work_type_of(request.operands[0].element());
  std::vector<int64_t> ranks;
  for (const Type& type : request.operands) {
    if (!type.shape().ranked()) return error(Code::unsupported, "the rank of an operand is not known");
    ranks.push_back(type.shape().rank());
  }
  TENON_TRY(labels, EinsumLabels::parse(request.op.attr<std::string>("equation"), ranks));
  ComputeSource source(request, target);
  std::string product;
  for (size_t i = 0; i < ranks.size(); ++i) {
    source.load(str("X", i, "_"), i, work);
    product += str(i ? " * " : "", "(S)X", i, "_(at[", i, "])");
  }
  source.define("OPERANDS", ranks.size());
  source.define("S", scalar_name(sum_type_of(work, target)));
  source.define("PRODUCT", product);
  source.store("Y", 0, work);
  return source.kernel(kEinsumBody, [labels](const CallShapes& shapes) { return einsum_launch(labels, shapes); });
}

// ---- Det ----

// Gaussian elimination with partial pivoting; one matrix per item, in registers.
constexpr std::string_view kDetBody = R"(
    S a[N * N], product = 1;
    for (int i = 0; i < N * N; ++i) a[i] = (S)X(item * N * N + i);
    for (int column = 0; column < N; ++column) {
      int pivot = column;
      for (int row = column + 1; row < N; ++row)
        if (fabs(a[row * N + column]) > fabs(a[pivot * N + column])) pivot = row;
      if (a[pivot * N + column] == 0) {
        product = 0;
        break;
      }
      if (pivot != column) {
        product = -product;
        for (int j = 0; j < N; ++j) {
          const S held = a[pivot * N + j];
          a[pivot * N + j] = a[column * N + j], a[column * N + j] = held;
        }
      }
      product *= a[column * N + column];
      for (int row = column + 1; row < N; ++row) {
        const S factor = a[row * N + column] / a[column * N + column];
        for (int j = column; j < N; ++j) a[row * N + j] -= factor * a[column * N + j];
      }
    }
    Y(item, product);
)";
constexpr int64_t kMostMatrixRows = 32;

Result<ComputeKernel> make_det(const KernelRequest& request, const ComputeTarget& target) {
  const ElementType work = work_type_of(request.operands[0].element());
  const auto dims = request.operands[0].shape().static_dims();
  const int64_t rows = dims && !dims->empty() ? dims->back() : 0;
  if (!work.is_float() || rows < 1 || rows > kMostMatrixRows)
    return error(Code::unsupported, "matrices of ", rows, " rows; 1 to ", kMostMatrixRows, " known ones have a form");
  ComputeSource source(request, target);
  source.define("S", scalar_name(sum_type_of(work, target)));
  source.define("N", rows);
  source.load("X", 0, work);
  source.store("Y", 0, work);
  return source.kernel(kDetBody, [](const CallShapes& shapes) -> Result<ComputeLaunch> {
    return ComputeLaunch{{}, elements_of(shapes.results[0])};
  });
}

constexpr ComputeRow kTensorProductRows[] = {{Einsum::kName, make_einsum}, {Det::kName, make_det}};

}  // namespace

std::span<const ComputeRow> tensor_product_rows() { return kTensorProductRows; }

}  // namespace tenon::opencl
