// Operators that only move elements. The source of each result element is found by running the reference on the
// elements' indices. Where it is a sum over axes, as for pads, tiles and resizing to nearest elements, the kernel gets
// a list for each axis, otherwise one list for all elements.
#include <algorithm>
#include <numeric>

#include <tenon/ir/builder.hpp>
#include <tenon/ops/movement.hpp>
#include <tenon/ops/resize.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/compute_source.hpp"
#include "opencl/compute/windows.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

using irgen::KernelRequest;

// Largest result for which that is done: a list of as many indices is needed meanwhile.
constexpr int64_t kMostElements = int64_t{1} << 27;

// The indices that the reference moves begin at 1.
constexpr int64_t kZero = 0, kFill = -1;

// n: 0 rank, 1 the first element, then extents, then the offset of each axis's list (0: one list for all elements,
// which follows). Lists hold distances from the first element; OUTSIDE where nothing is read.
constexpr std::string_view kPlacementBody = R"(
    const long rank = n[0], first = n[1], last = n[1 + rank];
    __global const long *extents = n + 2, *lists = n + 2 + rank;
    const long row = item * last;
    if (lists[0] == 0) {
      for (long j = 0; j < last; ++j) {
        const long from = n[2 + 2 * rank + row + j];
        Y(row + j, from == OUTSIDE ? FILL : X(first + from));
      }
    } else {
      long rest = item, at = first;
      int inside = 1;
      for (long d = rank - 2; d >= 0; --d) {
        const long from = n[lists[d] + rest % extents[d]];
        rest /= extents[d];
        inside &= from != OUTSIDE;
        at += from;
      }
      __global const long* list = n + lists[rank - 1];
      for (long j = 0; j < last; ++j) Y(row + j, inside && list[j] != OUTSIDE ? X(at + list[j]) : FILL);
    }
)";
constexpr int64_t kOutside = INT64_MIN;

// The operator's result for the elements' indices.
Result<Tensor> moved_numbers(const Op& op, const Dims& x, const Dims& y) {
  Graph graph("places");
  Builder builder(graph.body());
  std::vector<Value*> operands{graph.body().add_input("x", Type(kI64, Shape(x)))};
  for (size_t i = 1; i < op.operand_count(); ++i) {
    const Value* operand = op.operand(i);
    const Tensor* constant = operand ? constant_of(operand) : nullptr;
    if (isa<Pad>(op) && i == 2 && operand)
      operands.push_back(builder.constant_scalar(kI64, kFill));
    else if (operand && !constant)
      return error(Code::unsupported, "operand ", i, " of ", op.describe(), " is known at a run only");
    else
      operands.push_back(constant ? builder.constant(*constant) : nullptr);
  }
  TENON_TRY(result, builder.op(op.name(), operands, op.attributes()));
  graph.body().add_output(result, "y");
  TENON_TRY(numbers, Tensor::allocate(kI64, x));
  const auto all = numbers.mutable_as<int64_t>();
  std::iota(all.begin(), all.end(), int64_t{1});
  TENON_TRY(interpreter, Interpreter::prepare(graph));
  const Datum input(std::move(numbers));
  TENON_TRY(made, interpreter->run(std::span(&input, 1)));
  Tensor moved = made[0].tensor();
  if (moved.dims() != y)
    return error(Code::internal, op.describe(), " gives ", moved.dims(), " where ", y, " is expected");
  return moved;
}

// A list for each axis, relative to the element at position `anchor`; empty when sources are not sums over axes.
std::vector<std::vector<int64_t>> lists_of_axes(std::span<const int64_t> places, const Dims& dims, size_t anchor) {
  std::vector<std::vector<int64_t>> lists(dims.size());
  const int64_t first = places[anchor];
  int64_t stride = 1;
  for (size_t d = dims.size(); d-- > 0; stride *= dims[d]) {
    const int64_t here = static_cast<int64_t>(anchor) / stride % dims[d];
    for (int64_t i = 0; i < dims[d]; ++i) {
      const int64_t at = places[static_cast<size_t>(static_cast<int64_t>(anchor) + (i - here) * stride)];
      lists[d].push_back(at <= 0 ? kOutside : at - first);
    }
  }
  for (size_t i = 0; i < places.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), sum = first;
    bool inside = true;
    for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) {
      const int64_t step = lists[d][static_cast<size_t>(rest % dims[d])];
      inside = inside && step != kOutside;
      if (inside) sum += step;
    }
    if (inside ? places[i] != sum : places[i] > 0) return {};
  }
  return lists;
}

Result<ComputeLaunch> launch_of(const Op& op, const CallShapes& shapes) {
  Dims y = shapes.results[0];
  const int64_t size = elements_of(y);
  if (size > kMostElements || elements_of(shapes.operands[0]) > kMostElements)
    return error(Code::unsupported, op.describe(), " makes ", size, " elements; ", kMostElements,
                 " are the most whose places are listed");
  TENON_TRY(moved, moved_numbers(op, shapes.operands[0], y));
  const auto places = moved.as<int64_t>();
  if (y.empty()) y = {1};
  const auto known = std::ranges::find_if(places, [](int64_t place) { return place > 0; });
  const size_t anchor = known == places.end() ? 0 : static_cast<size_t>(known - places.begin());
  const int64_t first = known == places.end() ? 1 : *known;
  const auto lists = known == places.end() ? std::vector<std::vector<int64_t>>() : lists_of_axes(places, y, anchor);
  const auto rank = static_cast<int64_t>(y.size());
  ComputeLaunch made{{rank, first - 1}, y.back() == 0 ? 0 : size / y.back()};
  made.numbers.insert(made.numbers.end(), y.begin(), y.end());
  int64_t begin = 2 + 2 * rank;
  for (int64_t d = 0; d < rank; ++d) {
    made.numbers.push_back(lists.empty() ? 0 : begin);
    begin += y[static_cast<size_t>(d)];
  }
  if (lists.empty()) {
    for (const int64_t place : places) made.numbers.push_back(place <= 0 ? kOutside : place - first);
  } else {
    for (const auto& list : lists) made.numbers.insert(made.numbers.end(), list.begin(), list.end());
  }
  return made;
}

Result<ComputeKernel> make_placement(const KernelRequest& request, const ComputeTarget& target) {
  const Op* op = &request.op;
  ComputeSource source(request, target);
  source.load_raw("X", 0);
  source.store_raw("Y", 0);
  source.define("OUTSIDE", "LONG_MIN");
  if (isa<Pad>(*op) && op->operand(2)) {
    source.load_raw("FILL_OF", 2);
    source.define("FILL", "FILL_OF(0)");
  } else {
    static_assert(kZero == 0);
    source.define("FILL", 0);
  }
  return source.kernel(kPlacementBody, [op](const CallShapes& shapes) { return launch_of(*op, shapes); });
}

Result<ComputeKernel> make_nearest(const KernelRequest& request, const ComputeTarget& target) {
  if (request.op.attr<std::string>("mode", "nearest") != "nearest") return error(Code::unsupported, "weights");
  if (request.op.attr<float>("extrapolation_value", 0.0f) != 0)
    return error(Code::unsupported, "an extrapolation_value other than 0 has no form for nearest elements");
  return make_placement(request, target);
}

constexpr ComputeRow kPlacementRows[] = {{Pad::kName, make_placement},          {Tile::kName, make_placement},
                                         {Slice::kName, make_placement},        {Trilu::kName, make_placement},
                                         {DepthToSpace::kName, make_placement}, {"SpaceToDepth", make_placement},
                                         {"CenterCropPad", make_placement},     {"ReverseSequence", make_placement},
                                         {"Compress", make_placement},          {"Upsample", make_nearest}};

}  // namespace

std::span<const ComputeRow> placement_rows() { return kPlacementRows; }
Result<ComputeKernel> make_nearest_resize(const KernelRequest& request, const ComputeTarget& target) {
  return make_nearest(request, target);
}

}  // namespace tenon::opencl
