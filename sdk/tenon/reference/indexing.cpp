#include <tenon/ops/indexing.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <tenon/reference/carrier.hpp>
#include <tenon/reference/elements.hpp>
#include <tenon/reference/evaluator.hpp>
#include <tenon/reference/loops.hpp>

namespace tenon {
namespace {

size_t axis_of(const EvalContext& context, int64_t fallback, int64_t rank) {
  const int64_t axis = context.attr<int64_t>("axis", fallback);
  return static_cast<size_t>(axis < 0 ? axis + rank : axis);
}

int64_t product(std::span<const int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// The indices converted to non-negative; an error names the first that is out of range.
Result<std::vector<int64_t>> positions(const Tensor& indices, int64_t extent, size_t axis) {
  std::vector<int64_t> out = indices.to_ints();
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] < -extent || out[i] >= extent) {
      return error(Code::invalid_argument, "index ", out[i], " (number ", i, " of ", indices, ") is outside [", -extent,
                   ", ", extent - 1, "] for axis ", axis);
    }
    if (out[i] < 0) out[i] += extent;
  }
  return out;
}

// ---- Where things lie ----

// Runs of equal length, one per index: the offset of each run in the indexed tensor. On the other side they are
// contiguous.
struct Runs {
  std::vector<int64_t> offsets;
  int64_t length = 1;
};

// For GatherElements and ScatterElements.
Result<Runs> element_runs(const Tensor& data, const Tensor& indices, size_t axis) {
  TENON_TRY(at, positions(indices, data.dim(axis), axis));
  const Dims strides = row_major_strides(data.dims());
  for (int64_t i = 0; i < indices.size(); ++i) {
    int64_t rest = i, offset = at[static_cast<size_t>(i)] * strides[axis];
    for (size_t d = indices.dims().size(); d-- > 0; rest /= indices.dim(d)) {
      if (d != axis) offset += rest % indices.dim(d) * strides[d];
    }
    at[static_cast<size_t>(i)] = offset;
  }
  return Runs{std::move(at), 1};
}

// For GatherND and ScatterND.
Result<Runs> slice_runs(const Tensor& data, const Tensor& indices, size_t batch) {
  const auto addressed = static_cast<size_t>(indices.dims().back());
  const Dims strides = row_major_strides(data.dims());
  const std::span<const int64_t> dims(data.dims());
  const int64_t count = product(std::span(indices.dims()).first(indices.dims().size() - 1));
  const int64_t batches = product(dims.first(batch));
  const std::vector<int64_t> given = indices.to_ints();
  Runs runs{std::vector<int64_t>(static_cast<size_t>(count)), product(dims.subspan(batch + addressed))};
  for (int64_t i = 0; i < count; ++i) {
    int64_t& offset = runs.offsets[static_cast<size_t>(i)];
    offset = i / (count / batches) * product(dims.subspan(batch));
    for (size_t k = 0; k < addressed; ++k) {
      const int64_t index = given[static_cast<size_t>(i) * addressed + k], extent = dims[batch + k];
      if (index < -extent || index >= extent) {
        return error(Code::invalid_argument, "index ", index, " at place ", k, " of position ", i, " is outside [",
                     -extent, ", ", extent - 1, "] for axis ", batch + k, " of ", data);
      }
      offset += (index < 0 ? index + extent : index) * strides[batch + k];
    }
  }
  return runs;
}

// ---- Gather ----

// Result 0: the runs of operand 0, concatenated.
Result<void> gather_runs(EvalContext& context, const Runs& runs) {
  TENON_TRY(data, spread(context.tensor(0)));
  TENON_TRY(out, SpreadOutput::open(context, 0));
  const auto count = static_cast<int64_t>(runs.offsets.size());
  dispatch_storage(data.element(), [&]<class T>() {
    const T* from = storage_of_elements<T>(data);
    T* to = storage_of_elements<T>(out.tensor());
    context.parallel().run(count, grain_of(runs.length), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        std::copy_n(from + runs.offsets[static_cast<size_t>(i)], runs.length, to + i * runs.length);
      }
    });
  });
  return out.close();
}

Result<void> gather(EvalContext& context) {
  const Tensor &data = context.tensor(0), &indices = context.tensor(1);
  const size_t axis = axis_of(context, 0, data.rank());
  const AxisView view(data.dims(), axis);
  TENON_TRY(at, positions(indices, view.extent, axis));
  Runs runs{{}, view.inner};
  runs.offsets.reserve(static_cast<size_t>(view.outer) * at.size());
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    for (const int64_t index : at) runs.offsets.push_back((outer * view.extent + index) * view.inner);
  }
  return gather_runs(context, runs);
}

Result<void> gather_elements(EvalContext& context) {
  const Tensor& data = context.tensor(0);
  if (data.rank() == 0) return context.set_output(0, data), Result<void>();
  TENON_TRY(runs, element_runs(data, context.tensor(1), axis_of(context, 0, data.rank())));
  return gather_runs(context, runs);
}

Result<void> gather_nd(EvalContext& context) {
  TENON_TRY(runs, slice_runs(context.tensor(0), context.tensor(1),
                             static_cast<size_t>(context.attr<int64_t>("batch_dims", 0))));
  return gather_runs(context, runs);
}

// ---- Scatter ----

template <class T, class F>
void reduce_runs(const Runs& runs, const T* from, T* to, F f) {
  for (const int64_t offset : runs.offsets) {
    for (int64_t i = 0; i < runs.length; ++i) to[offset + i] = f(to[offset + i], *from++);
  }
}

// Integers wrap around, which signed types of C++ do not.
template <class T>
T wrapping(T a, T b, bool multiply) {
  if constexpr (std::is_floating_point_v<T>)
    return multiply ? a * b : a + b;
  else
    return static_cast<T>(multiply ? static_cast<uint64_t>(a) * static_cast<uint64_t>(b)
                                   : static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// Result 0: operand 0, with operand 2 written to the runs in order.
Result<void> scatter_runs(EvalContext& context, const Runs& runs) {
  const auto reduction = context.attr<std::string>("reduction", "none");
  if (reduction == "none") {
    TENON_TRY(data, spread(context.tensor(0)));
    TENON_TRY(updates, spread(context.tensor(2)));
    TENON_TRY(out, SpreadOutput::open(context, 0));
    copy_run(data, 0, out.tensor(), 0, data.size());
    dispatch_storage(data.element(), [&]<class T>() {
      reduce_runs(runs, storage_of_elements<T>(updates), storage_of_elements<T>(out.tensor()),
                  [](const T&, const T& b) { return b; });
    });
    return out.close();
  }
  TENON_TRY(data, to_carrier(context.tensor(0)));
  TENON_TRY(updates, to_carrier(context.tensor(2)));
  TENON_TRY(out, CarrierOutput::open(context, 0));
  with_carrier(data.element(), [&]<class T>() {
    const T* from = updates.as<T>().data();
    T* to = out.template data<T>();
    std::copy_n(data.as<T>().data(), data.size(), to);
    if (reduction == "add")
      reduce_runs(runs, from, to, [](T a, T b) { return wrapping(a, b, false); });
    else if (reduction == "mul")
      reduce_runs(runs, from, to, [](T a, T b) { return wrapping(a, b, true); });
    else if (reduction == "max")
      reduce_runs(runs, from, to, [](T a, T b) { return a != a || a > b ? a : b; });
    else
      reduce_runs(runs, from, to, [](T a, T b) { return a != a || a < b ? a : b; });
  });
  return out.close();
}

Result<void> scatter_elements(EvalContext& context) {
  const Tensor &data = context.tensor(0), &indices = context.tensor(1);
  if (data.rank() == 0) return error(Code::invalid_argument, "ScatterElements on a scalar has no axis");
  TENON_TRY(runs, element_runs(data, indices, axis_of(context, 0, data.rank())));
  return scatter_runs(context, runs);
}

Result<void> scatter_nd(EvalContext& context) {
  TENON_TRY(runs, slice_runs(context.tensor(0), context.tensor(1), 0));
  return scatter_runs(context, runs);
}

Result<void> tensor_scatter(EvalContext& context) {
  TENON_TRY(cache, spread(context.tensor(0)));
  TENON_TRY(update, spread(context.tensor(1)));
  TENON_TRY(out, SpreadOutput::open(context, 0));
  const size_t axis = axis_of(context, -2, cache.rank());
  const AxisView view(cache.dims(), axis);
  const int64_t length = update.dim(axis), batch = cache.dim(0);
  const std::vector<int64_t> starts =
      context.has_operand(2) ? context.tensor(2).to_ints() : std::vector<int64_t>(static_cast<size_t>(batch), 0);
  if (static_cast<int64_t>(starts.size()) != batch) {
    return error(Code::invalid_argument, "TensorScatter has ", starts.size(), " write_indices for a batch of ", batch);
  }
  const bool circular = context.attr<std::string>("mode", "linear") == "circular";
  copy_run(cache, 0, out.tensor(), 0, cache.size());
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    const int64_t start = starts[static_cast<size_t>(outer / (view.outer / batch))];
    const int64_t room = circular ? view.extent : view.extent - length;
    if (start < 0 || start > room) {
      return error(Code::invalid_argument, "TensorScatter writes ", length, " steps from ", start,
                   " on into a cache of ", view.extent, "; mode circular would wrap around");
    }
    for (int64_t t = 0; t < length; ++t) {
      const int64_t step = circular ? (start + t) % view.extent : start + t;
      copy_run(update, (outer * length + t) * view.inner, out.tensor(), (outer * view.extent + step) * view.inner,
               view.inner);
    }
  }
  return out.close();
}

// ---- Compress, OneHot, NonZero ----

Result<void> compress(EvalContext& context) {
  TENON_TRY(in, spread(context.tensor(0)));
  TENON_TRY(out, SpreadOutput::open(context, 0));
  const bool flat = !context.op().attributes().has("axis");
  const Dims dims = flat ? Dims{in.size()} : in.dims();
  const AxisView view(dims, flat ? 0 : axis_of(context, 0, in.rank()));
  std::vector<int64_t> kept;
  const auto condition = context.tensor(1).as<uint8_t>();
  for (size_t i = 0; i < condition.size(); ++i) {
    if (!condition[i]) continue;
    kept.push_back(static_cast<int64_t>(i));
    if (kept.back() < view.extent) continue;
    return error(Code::invalid_argument, "the condition of Compress takes element ", i, " of an axis of ", view.extent);
  }
  int64_t to = 0;
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    for (const int64_t index : kept) {
      copy_run(in, (outer * view.extent + index) * view.inner, out.tensor(), to, view.inner);
      to += view.inner;
    }
  }
  return out.close();
}

Result<void> one_hot(EvalContext& context) {
  TENON_TRY(indices, to_element(context.tensor(0), kI64));
  TENON_TRY(values, spread(context.tensor(2)));
  TENON_TRY(out, SpreadOutput::open(context, 0));
  const AxisView view(out.dims(), axis_of(context, -1, static_cast<int64_t>(out.dims().size())));
  fill_elements(context.parallel(), values, 0, out.tensor());
  const auto at = indices.as<int64_t>();
  for (int64_t line = 0; line < view.lines(); ++line) {
    const int64_t index = at[static_cast<size_t>(line)];
    if (index < -view.extent || index >= view.extent) continue;
    const int64_t position = index < 0 ? index + view.extent : index;
    copy_run(values, 1, out.tensor(), view.offset(line) + position * view.inner, 1);
  }
  return out.close();
}

Result<void> non_zero(EvalContext& context) {
  TENON_TRY(x, spread(context.tensor(0)));
  std::vector<int64_t> found;
  // By value: -0.0 is zero although its bits are not.
  const bool by_value = context.tensor(0).element().is_float();
  dispatch_storage(x.element(), [&]<class T>() {
    const T* data = storage_of_elements<T>(x);
    for (int64_t i = 0; i < x.size(); ++i) {
      bool zero = false;
      if constexpr (std::is_same_v<T, std::string>)
        zero = data[i].empty();
      else if constexpr (std::is_same_v<T, Bytes16>)
        zero = data[i].low == 0 && data[i].high == 0;
      else
        zero = data[i] == 0;
      if (!zero && by_value) zero = context.tensor(0).double_at(i) == 0;
      if (!zero) found.push_back(i);
    }
  });
  const auto count = static_cast<int64_t>(found.size());
  TENON_TRY(out, context.output(0, kI64, {x.rank(), count}));
  auto y = out->mutable_as<int64_t>();
  const Dims strides = row_major_strides(x.dims());
  for (size_t d = 0; d < strides.size(); ++d) {
    for (int64_t i = 0; i < count; ++i) {
      y[d * static_cast<size_t>(count) + static_cast<size_t>(i)] =
          found[static_cast<size_t>(i)] / strides[d] % x.dim(d);
    }
  }
  return {};
}

// ---- By order ----

// NaN equals NaN and is the greatest.
template <class T>
bool less(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(b) ? !std::isnan(a) : a < b;
  else
    return a < b;
}

// The distinct ones of `count` slices of `length` contiguous elements each, as lists of their members; ascending.
template <class T>
std::vector<std::vector<int64_t>> equal_slices(const T* data, int64_t count, int64_t length) {
  const auto before = [&](int64_t a, int64_t b) {
    return std::lexicographical_compare(data + a * length, data + (a + 1) * length, data + b * length,
                                        data + (b + 1) * length, less<T>);
  };
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), before);
  std::vector<std::vector<int64_t>> groups;
  for (const int64_t slice : order) {
    if (groups.empty() || before(groups.back()[0], slice)) groups.emplace_back();
    groups.back().push_back(slice);
  }
  return groups;
}

// The slices of `x` along an axis, concatenated.
Result<Tensor> slices_in_a_row(EvalContext& context, const Tensor& x, size_t axis) {
  TENON_TRY(in, spread(x));
  const AxisView view(x.dims(), axis);
  TENON_TRY(out, SpreadOutput::make(x.element(), {view.extent, view.outer, view.inner}));
  copy_transposed(context.parallel(), in, {view.outer, view.extent, view.inner}, std::vector<int64_t>{1, 0, 2},
                  out.tensor());
  TENON_OK(out.close());
  return out.result();
}

Result<void> put_list(EvalContext& context, size_t i, const std::vector<int64_t>& list) {
  if (!context.wants(i)) return {};
  TENON_TRY(out, context.output(i, kI64, {static_cast<int64_t>(list.size())}));
  std::copy(list.begin(), list.end(), out->mutable_as<int64_t>().begin());
  return {};
}

Result<void> unique(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const bool flat = !context.op().attributes().has("axis");
  const Dims dims = flat ? Dims{x.size()} : x.dims();
  const size_t axis = flat ? 0 : axis_of(context, 0, x.rank());
  const AxisView view(dims, axis);
  TENON_TRY(seen, x.reshaped(dims));
  TENON_TRY(rows, slices_in_a_row(context, seen, axis));
  std::vector<std::vector<int64_t>> groups;
  const int64_t length = view.outer * view.inner;
  if (x.element().is_string()) {
    groups = equal_slices(rows.as<std::string>().data(), view.extent, length);
  } else {
    TENON_TRY(numbers, to_carrier(rows));
    with_carrier(numbers.element(),
                 [&]<class T>() { groups = equal_slices(numbers.as<T>().data(), view.extent, length); });
  }
  if (context.attr<int64_t>("sorted", 1) == 0) std::sort(groups.begin(), groups.end());

  std::vector<int64_t> first, counts, inverse(static_cast<size_t>(view.extent));
  for (size_t g = 0; g < groups.size(); ++g) {
    first.push_back(groups[g][0]);
    counts.push_back(static_cast<int64_t>(groups[g].size()));
    for (const int64_t member : groups[g]) inverse[static_cast<size_t>(member)] = static_cast<int64_t>(g);
  }
  TENON_OK(put_list(context, 1, first));
  TENON_OK(put_list(context, 2, inverse));
  TENON_OK(put_list(context, 3, counts));
  Dims to = dims;
  to[axis] = static_cast<int64_t>(first.size());
  TENON_TRY(in, spread(seen));
  TENON_TRY(out, SpreadOutput::open(context, 0, x.element(), to));
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    for (size_t g = 0; g < first.size(); ++g) {
      copy_run(in, (outer * view.extent + first[g]) * view.inner, out.tensor(),
               (outer * to[axis] + static_cast<int64_t>(g)) * view.inner, view.inner);
    }
  }
  return out.close();
}

// The indices of the first k elements of a line in sorted order.
template <class T>
void first_in_order(const T* line, int64_t stride, int64_t k, bool largest, std::vector<int64_t>& order) {
  std::iota(order.begin(), order.end(), int64_t{0});
  std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
    const T &x = line[a * stride], &y = line[b * stride];
    if (less(x, y) || less(y, x)) return largest ? less(y, x) : less(x, y);
    return a < b;
  });
}

Result<void> top_k(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  TENON_TRY(keys, to_carrier(x));
  TENON_TRY(in, spread(x));
  TENON_TRY(values, SpreadOutput::open(context, 0));
  TENON_TRY(indices, context.output(1));
  const size_t axis = axis_of(context, -1, x.rank());
  const AxisView from(x.dims(), axis), to(values.dims(), axis);
  const bool largest = context.attr<int64_t>("largest", 1) != 0;
  int64_t* places = indices->mutable_as<int64_t>().data();
  with_carrier(keys.element(), [&]<class T>() {
    const T* data = keys.as<T>().data();
    context.parallel().run(from.lines(), grain_of(from.extent), [&](int64_t begin, int64_t end) {
      std::vector<int64_t> order(static_cast<size_t>(from.extent));
      for (int64_t line = begin; line < end; ++line) {
        first_in_order(data + from.offset(line), from.inner, to.extent, largest, order);
        for (int64_t i = 0; i < to.extent; ++i) {
          const int64_t place = order[static_cast<size_t>(i)];
          places[to.offset(line) + i * to.inner] = place;
          copy_run(in, from.offset(line) + place * from.inner, values.tensor(), to.offset(line) + i * to.inner, 1);
        }
      }
    });
  });
  return values.close();
}

const EvaluatorRegistration kIndexingRegistered({
    {Gather::kName, gather},
    {GatherElements::kName, gather_elements},
    {GatherND::kName, gather_nd},
    {ScatterElements::kName, scatter_elements},
    {ScatterND::kName, scatter_nd},
    {TensorScatter::kName, tensor_scatter},
    {Compress::kName, compress},
    {OneHot::kName, one_hot},
    {NonZero::kName, non_zero},
    {Unique::kName, unique},
    {TopK::kName, top_k},
});

}  // namespace
}  // namespace tenon
