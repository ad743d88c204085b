#include <tenon/ops/reduce.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <type_traits>

#include <tenon/reference/carrier.hpp>

namespace tenon {
namespace {

// The type of sums and products of a carrier: f64 for floats, unsigned for integers, because these wrap around.
template <class T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
template <class T>
Wide<T> widened(T x) {
  return static_cast<Wide<T>>(x);
}
template <class T>
Wide<T> wide_magnitude(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return std::abs(static_cast<double>(x));
  else
    return x < T{0} ? uint64_t{0} - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
}

Result<ReductionPlan> plan_of(EvalContext& context) {
  const Tensor& data = context.tensor(0);
  TENON_TRY(folded, folded_axes(context.op(), data.rank(),
                                context.has_operand(1) ? context.tensor(1).to_ints() : std::vector<int64_t>()));
  return ReductionPlan(data.dims(), folded);
}

// Calls body<T>(plan, in, out) in the carrier of operand 0.
template <class Body>
Result<void> reduce(EvalContext& context, Body body) {
  TENON_TRY(plan, plan_of(context));
  TENON_TRY(x, to_carrier(context.tensor(0)));
  TENON_TRY(y, CarrierOutput::open(context, 0));
  with_carrier(x.element(), [&]<class T>() { body.template operator()<T>(plan, x.as<T>().data(), y.data<T>()); });
  return y.close();
}

// out = sum of f(x); f returns the wide type.
template <class F>
Result<void> reduce_sum_of(EvalContext& context, F f) {
  return reduce(context, [&]<class T>(const ReductionPlan& plan, const T* in, T* out) {
    plan.run(
        context.parallel(), in, out, Wide<T>{0}, [f](Wide<T>& sum, T x) { sum += f(x); },
        [](Wide<T> sum) { return static_cast<T>(sum); });
  });
}

Result<void> reduce_sum(EvalContext& context) {
  return reduce_sum_of(context, [](auto x) { return widened(x); });
}
Result<void> reduce_l1(EvalContext& context) {
  return reduce_sum_of(context, [](auto x) { return wide_magnitude(x); });
}
Result<void> reduce_sum_square(EvalContext& context) {
  return reduce_sum_of(context, [](auto x) { return widened(x) * widened(x); });
}

Result<void> reduce_prod(EvalContext& context) {
  return reduce(context, [&]<class T>(const ReductionPlan& plan, const T* in, T* out) {
    plan.run(
        context.parallel(), in, out, Wide<T>{1}, [](Wide<T>& product, T x) { product *= widened(x); },
        [](Wide<T> product) { return static_cast<T>(product); });
  });
}

template <class T>
T quotient(Wide<T> sum, int64_t count) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(sum / static_cast<double>(count));
  else if (count == 0)
    return 0;
  else if constexpr (std::is_signed_v<T>)
    return static_cast<T>(static_cast<int64_t>(sum) / count);
  else
    return static_cast<T>(sum / static_cast<uint64_t>(count));
}

Result<void> reduce_mean(EvalContext& context) {
  return reduce(context, [&]<class T>(const ReductionPlan& plan, const T* in, T* out) {
    plan.run(
        context.parallel(), in, out, Wide<T>{0}, [](Wide<T>& sum, T x) { sum += widened(x); },
        [count = plan.folded()](Wide<T> sum) { return quotient<T>(sum, count); });
  });
}

// The result of a reduction over no elements: `sign` times infinity, or the limit of the integer type. It is the limit
// of the element type, not of the carrier: -128 for i8.
template <class T>
T end_of_range(ElementType element, bool upper) {
  if constexpr (std::is_floating_point_v<T>) {
    return upper ? std::numeric_limits<T>::infinity() : -std::numeric_limits<T>::infinity();
  } else {
    if (element.is_bool()) return upper;
    const int bits = element.bits();
    if constexpr (std::is_unsigned_v<T>) return upper ? ~uint64_t{0} >> (64 - bits) : 0;
    const auto greatest = static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
    return static_cast<T>(upper ? greatest : -greatest - 1);
  }
}

template <class Better>
Result<void> reduce_extreme(EvalContext& context, bool from_upper, Better better) {
  return reduce(context, [&]<class T>(const ReductionPlan& plan, const T* in, T* out) {
    plan.run(
        context.parallel(), in, out, end_of_range<T>(context.tensor(0).element(), from_upper),
        [better](T& best, T x) {
          if (better(x, best) || x != x) best = x;
        },
        [](T best) { return best; });
  });
}
Result<void> reduce_max(EvalContext& context) { return reduce_extreme(context, false, std::greater<>()); }
Result<void> reduce_min(EvalContext& context) { return reduce_extreme(context, true, std::less<>()); }

// ---- Through f64, whatever the element type ----

template <class State, class Add, class Finish>
Result<void> reduce_in_double(EvalContext& context, const State& initial, Add add, Finish finish) {
  TENON_TRY(plan, plan_of(context));
  TENON_TRY(x, to_carrier(context.tensor(0)));
  TENON_TRY(result, context.output(0));
  TENON_TRY(y, Tensor::allocate(kF64, result->dims()));
  with_carrier(x.element(), [&]<class T>() {
    plan.run(
        context.parallel(), x.as<T>().data(), y.mutable_as<double>().data(), initial,
        [add](State& state, T value) { add(state, static_cast<double>(value)); }, finish);
  });
  return store_converted(*result, y);
}

Result<void> reduce_l2(EvalContext& context) {
  return reduce_in_double(
      context, 0.0, [](double& sum, double x) { sum += x * x; }, [](double sum) { return std::sqrt(sum); });
}

Result<void> reduce_log_sum(EvalContext& context) {
  return reduce_in_double(
      context, 0.0, [](double& sum, double x) { sum += x; }, [](double sum) { return std::log(sum); });
}

// sum of e^x = e^greatest * scaled
struct ExpSum {
  double greatest = -std::numeric_limits<double>::infinity();
  double scaled = 0;
};

Result<void> reduce_log_sum_exp(EvalContext& context) {
  return reduce_in_double(
      context, ExpSum(),
      [](ExpSum& sum, double x) {
        if (x == sum.greatest) {
          // Also if both are infinite and their difference would be NaN; e^-infinity adds nothing.
          if (x != -std::numeric_limits<double>::infinity()) sum.scaled += 1;
        } else if (x < sum.greatest) {
          sum.scaled += std::exp(x - sum.greatest);
        } else {
          sum.scaled = sum.scaled * std::exp(sum.greatest - x) + 1;
          sum.greatest = x;
        }
      },
      [](const ExpSum& sum) { return sum.greatest + std::log(sum.scaled); });
}

// ---- Positions ----

template <class Better>
Result<void> arg_extreme(EvalContext& context, Better better) {
  const Tensor& data = context.tensor(0);
  TENON_TRY(axis, normalize_axis(context.attr<int64_t>("axis", 0), data.rank()));
  const bool last = context.attr<int64_t>("select_last_index", 0) != 0;
  TENON_TRY(x, to_carrier(data));
  TENON_TRY(y, context.output(0));
  const AxisView view(data.dims(), static_cast<size_t>(axis));
  int64_t* out = y->mutable_as<int64_t>().data();
  with_carrier(x.element(), [&]<class T>() {
    const T* in = x.as<T>().data();
    view.run(context.parallel(), [=](int64_t line, int64_t offset) {
      int64_t best = 0;
      for (int64_t i = 1; i < view.extent; ++i) {
        const T value = in[offset + i * view.inner], leader = in[offset + best * view.inner];
        const bool is_nan = value != value, leads_nan = leader != leader;
        const bool ties = value == leader || (is_nan && leads_nan);
        if (ties ? last : is_nan || (!leads_nan && better(value, leader))) best = i;
      }
      out[line] = best;
    });
  });
  return {};
}
Result<void> arg_max(EvalContext& context) { return arg_extreme(context, std::greater<>()); }
Result<void> arg_min(EvalContext& context) { return arg_extreme(context, std::less<>()); }

// ---- Running sums and products ----

// The C++ type of the carrier of elements that are T in memory.
template <class T>
using CarrierOf =
    std::conditional_t<std::is_same_v<T, float>, float,
                       std::conditional_t<!std::is_integral_v<T>, double,
                                          std::conditional_t<std::is_unsigned_v<T>, uint64_t,
                                                             std::conditional_t<sizeof(T) == 8, int64_t, int32_t>>>>;

struct Scan {
  int64_t first = 0;
  bool exclusive = false, reverse = false;
};

// `lines` adjacent lines together, so that memory is read along its rows; `at`: offset of the first of them.
template <class T, class Combine>
void scan_lines(const Scan& scan, const AxisView& view, const T* in, T* out, int64_t at,
                std::span<Wide<CarrierOf<T>>> states, Combine combine) {
  using Carrier = CarrierOf<T>;
  using State = Wide<Carrier>;
  const auto lines = static_cast<int64_t>(states.size()), step = scan.reverse ? -view.inner : view.inner;
  if (scan.reverse) at += (view.extent - 1) * view.inner;
  const auto next_of = [&](State state, int64_t place) {
    const State next = combine(state, widened(static_cast<Carrier>(in[place])));
    out[place] = static_cast<T>(static_cast<Carrier>(scan.exclusive ? state : next));
    return next;
  };
  if (lines == 1) {
    auto state = static_cast<State>(scan.first);
    for (int64_t n = 0; n < view.extent; ++n, at += step) state = next_of(state, at);
    return;
  }
  std::ranges::fill(states, static_cast<State>(scan.first));
  for (int64_t n = 0; n < view.extent; ++n, at += step)
    for (int64_t k = 0; k < lines; ++k)
      states[static_cast<size_t>(k)] = next_of(states[static_cast<size_t>(k)], at + k);
}

template <class T, class Combine>
void scan_all(ParallelFor& parallel, const Scan& scan, const AxisView& view, const T* in, T* out, Combine combine) {
  constexpr int64_t kLines = 256;
  const int64_t lines = std::min(view.inner, kLines), blocks = lines == 0 ? 0 : (view.inner + lines - 1) / lines;
  parallel.run(view.outer * blocks, grain_of(view.extent * lines), [&](int64_t begin, int64_t end) {
    std::array<Wide<CarrierOf<T>>, kLines> states;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * lines;
      scan_lines(scan, view, in, out, i / blocks * view.extent * view.inner + first,
                 std::span(states).first(static_cast<size_t>(std::min(lines, view.inner - first))), combine);
    }
  });
}

template <class Combine>
Result<void> scan(EvalContext& context, int64_t first, Combine combine) {
  const Tensor& x = context.tensor(0);
  TENON_TRY(axis, normalize_axis(context.tensor(1).int_at(0), x.rank()));
  const Scan scan{first, context.attr<int64_t>("exclusive", 0) != 0, context.attr<int64_t>("reverse", 0) != 0};
  TENON_TRY(y, context.output(0));
  const AxisView view(x.dims(), static_cast<size_t>(axis));
  const bool has_type = dispatch_number(x.element(), [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>)
      scan_all(context.parallel(), scan, view, x.as<T>().data(), y->mutable_as<T>().data(), combine);
  });
  if (has_type) return {};
  TENON_TRY(carried, to_carrier(x));
  TENON_TRY(written, CarrierOutput::open(context, 0));
  with_carrier(x.element(), [&]<class T>() {
    scan_all(context.parallel(), scan, view, carried.as<T>().data(), written.data<T>(), combine);
  });
  return written.close();
}
Result<void> cum_sum(EvalContext& context) { return scan(context, 0, std::plus<>()); }
Result<void> cum_prod(EvalContext& context) { return scan(context, 1, std::multiplies<>()); }

const EvaluatorRegistration kReduceRegistered({
    {ReduceSum::kName, reduce_sum},
    {ReduceMean::kName, reduce_mean},
    {ReduceMax::kName, reduce_max},
    {ReduceMin::kName, reduce_min},
    {ReduceProd::kName, reduce_prod},
    {ReduceL1::kName, reduce_l1},
    {ReduceL2::kName, reduce_l2},
    {ReduceLogSum::kName, reduce_log_sum},
    {ReduceLogSumExp::kName, reduce_log_sum_exp},
    {ReduceSumSquare::kName, reduce_sum_square},
    {ArgMax::kName, arg_max},
    {ArgMin::kName, arg_min},
    {CumSum::kName, cum_sum},
    {CumProd::kName, cum_prod},
});

}  // namespace
}  // namespace tenon
