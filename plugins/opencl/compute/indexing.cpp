// Gathers and scatters. An index out of range is reported in the port `fault`, and element 0 is read.
//
// Scatters apply updates in order: a single item has all updates that may affect the same element.
#include <tenon/ops/indexing.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/compute_source.hpp"
#include "opencl/compute/windows.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

using irgen::KernelRequest;

constexpr std::string_view kPlace = R"(static long place(long index, long extent, int* wrong) {
  const long at = index < 0 ? index + extent : index;
  if (at >= 0 && at < extent) return at;
  *wrong = 1;
  return 0;
}
)";

size_t axis_of(const Op& op, int64_t fallback, size_t rank) {
  const int64_t axis = op.attr<int64_t>("axis", fallback);
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

int64_t product(const Dims& dims, size_t begin, size_t end) {
  int64_t made = 1;
  for (size_t d = begin; d < end; ++d) made *= dims[d];
  return made;
}

// Operands that are only moved are raw bits; indices are i64.
ComputeSource moving_source(const KernelRequest& request, const ComputeTarget& target) {
  ComputeSource source(request, target);
  source.load_raw("X", 0);
  source.load("INDEX", 1, kI64);
  source.store_raw("Y", 0);
  source.functions(kPlace);
  source.can_fail();
  return source;
}

// ---- Gather ----

Result<ComputeKernel> make_gather(const KernelRequest& request, const ComputeTarget& target) {
  ComputeSource source = moving_source(request, target);
  // n: 0 indices, 1 extent of the axis, 2 elements after it.
  constexpr std::string_view kBody = R"(
    const long count = n[0], extent = n[1], inner = n[2];
    int wrong = 0;
    const long from = (item / count * extent + place(INDEX(item % count), extent, &wrong)) * inner;
    if (wrong) FAULT;
    for (long j = 0; j < inner; ++j) Y(item * inner + j, X(from + j));
)";
  const Op* op = &request.op;
  return source.kernel(kBody, [op](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims& data = shapes.operands[0];
    const size_t axis = axis_of(*op, 0, data.size());
    const int64_t count = elements_of(shapes.operands[1]);
    return ComputeLaunch{{count, data[axis], product(data, axis + 1, data.size())}, product(data, 0, axis) * count};
  });
}

// n: 0 rank, 1 axis, then extents of the data, then those of the indices.
constexpr std::string_view kElementBody = R"(
    const long rank = n[0], axis = n[1];
    __global const long *extents = n + 2, *counts = n + 2 + rank;
    long rest = item, at = 0, stride = 1;
    int wrong = 0;
    for (long d = rank - 1; d >= 0; --d) {
      long index = rest % counts[d];
      rest /= counts[d];
      if (d == axis) index = place(INDEX(item), extents[d], &wrong);
      at += index * stride;
      stride *= extents[d];
    }
    if (wrong) FAULT;
    Y(item, X(at));
)";

ComputeLaunch element_launch(const Op& op, const Dims& data, const Dims& indices, int64_t items) {
  ComputeLaunch made{{int64_t(data.size()), int64_t(axis_of(op, 0, data.size()))}, items};
  made.numbers.insert(made.numbers.end(), data.begin(), data.end());
  made.numbers.insert(made.numbers.end(), indices.begin(), indices.end());
  return made;
}

Result<ComputeKernel> make_gather_elements(const KernelRequest& request, const ComputeTarget& target) {
  ComputeSource source = moving_source(request, target);
  const Op* op = &request.op;
  return source.kernel(kElementBody, [op](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims& indices = shapes.operands[1];
    return element_launch(*op, shapes.operands[0], indices, elements_of(indices));
  });
}

// n: 0 positions of a tuple, 1 elements of a slice, 2 tuples of a batch, 3 elements of a batch of data, then extent and
// stride of each position.
constexpr std::string_view kTupleAt =
    R"(static long tuple_at(__global const long* n, __global const uchar* a1, long tuple, int* wrong) {
  long at = 0;
  for (long d = 0; d < n[0]; ++d) at += place(INDEX(tuple * n[0] + d), n[4 + 2 * d], wrong) * n[5 + 2 * d];
  return at;
}
)";

ComputeLaunch tuple_launch(const Dims& data, const Dims& indices, size_t batch) {
  const auto depth = static_cast<size_t>(indices.back());
  const int64_t inner = product(data, batch + depth, data.size());
  ComputeLaunch made{
      {int64_t(depth), inner, product(indices, batch, indices.size() - 1), product(data, batch, data.size())},
      product(indices, 0, indices.size() - 1)};
  for (size_t d = 0; d < depth; ++d)
    made.numbers.insert(made.numbers.end(), {data[batch + d], product(data, batch + d + 1, data.size())});
  return made;
}

Result<ComputeKernel> make_gather_nd(const KernelRequest& request, const ComputeTarget& target) {
  ComputeSource source = moving_source(request, target);
  source.functions(kTupleAt);
  constexpr std::string_view kBody = R"(
    const long inner = n[1];
    int wrong = 0;
    const long from = item / n[2] * n[3] + tuple_at(n, a1, item, &wrong);
    if (wrong) FAULT;
    for (long j = 0; j < inner; ++j) Y(item * inner + j, X(from + j));
)";
  const Op* op = &request.op;
  return source.kernel(kBody, [op](const CallShapes& shapes) -> Result<ComputeLaunch> {
    return tuple_launch(shapes.operands[0], shapes.operands[1],
                        static_cast<size_t>(op->attr<int64_t>("batch_dims", 0)));
  });
}

// ---- Scatter ----

// Defines X, UPDATE, Y and GET_Y, and TAKE(old, new), by the attribute `reduction`.
Result<ComputeSource> scatter_source(const KernelRequest& request, const ComputeTarget& target) {
  const auto reduction = request.op.attr<std::string>("reduction", "none");
  ElementType work = work_type_of(request.operands[0].element());
  if (!work.valid() || !raw_type_of(request.operands[0].element()).valid())
    return error(Code::unsupported, "elements of ", request.operands[0].element(), " have no form on the device");
  ComputeSource source(request, target);
  source.load("X", 0, work);
  source.load("INDEX", 1, kI64);
  source.load("UPDATE", 2, work);
  source.load_stored("Y", 0, work);
  source.define("T", scalar_name(work));
  source.define("TAKE(a, b)", reduction == "add"   ? "((a) + (b))"
                              : reduction == "mul" ? "((a) * (b))"
                              : reduction == "max" ? "(BEATS(b, a) ? (b) : (a))"
                              : reduction == "min" ? "(BEATS(a, b) ? (b) : (a))"
                                                   : "(b)");
  source.define("BEATS(a, b)", work.is_float() ? "((a) > (b) || isnan(a) || isnan(b))" : "((a) > (b))");
  source.functions(kPlace);
  source.can_fail();
  return source;
}

Result<ComputeKernel> make_scatter_elements(const KernelRequest& request, const ComputeTarget& target) {
  TENON_TRY(source, scatter_source(request, target));
  // An item is a line along the axis. n as above.
  constexpr std::string_view kBody = R"(
    const long rank = n[0], axis = n[1], extent = n[2 + axis], count = n[2 + rank + axis];
    __global const long *extents = n + 2, *counts = n + 2 + rank;
    long rest = item, at = 0, stride = 1, step = 1, update = 0, update_stride = 1, update_step = 1;
    int inside = 1, wrong = 0;
    for (long d = rank - 1; d >= 0; --d) {
      if (d == axis) {
        step = stride, update_step = update_stride;
      } else {
        const long index = rest % extents[d];
        rest /= extents[d];
        inside &= index < counts[d];
        at += index * stride, update += index * update_stride;
      }
      stride *= extents[d], update_stride *= counts[d];
    }
    for (long j = 0; j < extent; ++j) Y(at + j * step, X(at + j * step));
    for (long j = 0; inside && j < count; ++j) {
      const long from = update + j * update_step, to = at + place(INDEX(from), extent, &wrong) * step;
      if (!wrong) Y(to, TAKE(GET_Y(to), UPDATE(from)));
    }
    if (wrong) FAULT;
)";
  const Op* op = &request.op;
  return source.kernel(kBody, [op](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims& data = shapes.operands[0];
    if (data.empty()) return error(Code::unsupported, "a scalar has no axis");
    const size_t axis = axis_of(*op, 0, data.size());
    const int64_t lines = product(data, 0, axis) * product(data, axis + 1, data.size());
    return element_launch(*op, data, shapes.operands[1], lines);
  });
}

Result<ComputeKernel> make_scatter_nd(const KernelRequest& request, const ComputeTarget& target) {
  TENON_TRY(source, scatter_source(request, target));
  source.functions(kTupleAt);
  // An item is one element of every slice.
  constexpr std::string_view kBody = R"(
    const long inner = n[1], tuples = n[2], all = n[3];
    int wrong = 0;
    for (long j = item; j < all; j += inner) Y(j, X(j));
    for (long tuple = 0; tuple < tuples; ++tuple) {
      const long to = tuple_at(n, a1, tuple, &wrong) + item;
      if (!wrong) Y(to, TAKE(GET_Y(to), UPDATE(tuple * inner + item)));
    }
    if (wrong) FAULT;
)";
  return source.kernel(kBody, [](const CallShapes& shapes) -> Result<ComputeLaunch> {
    ComputeLaunch made = tuple_launch(shapes.operands[0], shapes.operands[1], 0);
    made.items = made.numbers[1];
    return made;
  });
}

// ---- OneHot ----

Result<ComputeKernel> make_one_hot(const KernelRequest& request, const ComputeTarget& target) {
  const ElementType index = work_type_of(request.operands[0].element());
  ComputeSource source(request, target);
  source.load("INDEX", 0, index);
  source.load_raw("VALUE", 2);
  source.store_raw("Y", 0);
  // n: 0 depth, 1 indices after the axis.
  constexpr std::string_view kBody = R"(
    const long depth = n[0], inner = n[1], position = item / inner % depth;
    const long index = (long)INDEX(item / inner / depth * inner + item % inner);
    Y(item, VALUE(position == (index < 0 ? index + depth : index) ? 1 : 0));
)";
  const Op* op = &request.op;
  return source.kernel(kBody, [op](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims& y = shapes.results[0];
    const size_t axis = axis_of(*op, -1, y.size());
    return ComputeLaunch{{y[axis], product(y, axis + 1, y.size())}, elements_of(y)};
  });
}

constexpr ComputeRow kIndexingRows[] = {
    {Gather::kName, make_gather},        {GatherElements::kName, make_gather_elements},
    {GatherND::kName, make_gather_nd},   {ScatterElements::kName, make_scatter_elements},
    {ScatterND::kName, make_scatter_nd}, {OneHot::kName, make_one_hot}};

}  // namespace

std::span<const ComputeRow> indexing_rows() { return kIndexingRows; }

}  // namespace tenon::opencl
