#include <tenon/ops/arithmetic.hpp>

#include <cmath>
#include <cstring>
#include <type_traits>

#include <tenon/reference/carrier.hpp>

namespace tenon {
namespace {

template <class T>
constexpr bool kIsInt = std::is_integral_v<T>;
template <class T>
constexpr bool kIsSigned = kIsInt<T>&& std::is_signed_v<T>;

// Signed overflow is undefined in C++, so wrap-around arithmetic is unsigned.
template <class T>
auto bits(T value) {
  if constexpr (kIsSigned<T>)
    return static_cast<std::make_unsigned_t<T>>(value);
  else
    return value;
}

template <class T>
T add(T a, T b) {
  return static_cast<T>(bits(a) + bits(b));
}
template <class T>
T subtract(T a, T b) {
  return static_cast<T>(bits(a) - bits(b));
}
template <class T>
T multiply(T a, T b) {
  return static_cast<T>(bits(a) * bits(b));
}

// Not 0 - x for floats: that would lose the sign of -0.
template <class T>
T negate(T x) {
  if constexpr (kIsInt<T>)
    return subtract(T{0}, x);
  else
    return -x;
}

template <class T>
T divide(T a, T b) {
  if constexpr (kIsInt<T>) {
    if (b == 0) return 0;
    if constexpr (kIsSigned<T>) {
      if (b == -1) return negate(a);
    }
  }
  return a / b;
}

// Has the sign of a.
template <class T>
T c_remainder(T a, T b) {
  if constexpr (!kIsInt<T>)
    return std::fmod(a, b);
  else {
    if (b == 0) return 0;
    if constexpr (kIsSigned<T>) {
      if (b == -1) return 0;
    }
    return a % b;
  }
}

// Has the sign of b.
template <class T>
T floor_remainder(T a, T b) {
  const T remainder = c_remainder(a, b);
  if constexpr (std::is_unsigned_v<T>)
    return remainder;
  else
    return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

template <class T, class E>
T integer_power(T base, E exponent) {
  if constexpr (kIsSigned<E>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if constexpr (kIsSigned<T>) {
        if (base == -1) return exponent % 2 == 0 ? 1 : -1;
      }
      return 0;
    }
  }
  T result = 1;
  for (; exponent != 0; exponent /= 2, base = multiply(base, base)) {
    if (exponent % 2 != 0) result = multiply(result, base);
  }
  return result;
}

// A special case for squares, the exponent in most models.
double float_power(double base, double exponent) { return exponent == 2 ? base * base : std::pow(base, exponent); }

template <class T>
T magnitude(T x) {
  if constexpr (!kIsInt<T>)
    return std::abs(x);
  else if constexpr (kIsSigned<T>)
    return x < 0 ? negate(x) : x;
  else
    return x;
}

template <class T>
T sign(T x) {
  if constexpr (std::is_unsigned_v<T>)
    return x != 0;
  else
    return x > 0 ? T{1} : x < 0 ? T{-1} : x == 0 ? T{0} : x;
}

template <class T>
T greater_of(T a, T b) {
  return a > b || a != a ? a : b;
}
template <class T>
T less_of(T a, T b) {
  return a < b || a != a ? a : b;
}

// ---- Evaluators ----

// Makes evaluators from functions of carriers: F is a generic lambda.
template <auto F>
Result<void> number_pairs(EvalContext& context) {
  return map_number_pairs(context, F);
}
template <auto F>
Result<void> numbers(EvalContext& context) {
  return map_numbers(context, F);
}
template <auto F>
Result<void> floats(EvalContext& context) {
  return map_floats(context, F);
}
template <double (*F)(double)>
Result<void> doubles(EvalContext& context) {
  return map_floats(context, [](auto x) { return static_cast<decltype(x)>(F(static_cast<double>(x))); });
}
// Bit operations, which have no float types.
template <auto F>
Result<void> int_pairs(EvalContext& context) {
  return map_number_pairs(context, []<class T>(T a, T b) -> T {
    if constexpr (kIsInt<T>)
      return static_cast<T>(F(a, b));
    else
      return a;
  });
}

Result<void> remainder(EvalContext& context) {
  if (context.attr<int64_t>("fmod") != 0)
    return map_number_pairs(context, [](auto a, auto b) { return c_remainder(a, b); });
  return map_number_pairs(context, [](auto a, auto b) { return floor_remainder(a, b); });
}

Result<void> power(EvalContext& context) {
  const ElementType base = context.tensor(0).element(), exponent = context.tensor(1).element();
  const bool integers = base.is_int() && exponent.is_int();
  // An integer base under a float exponent is computed in f64 and cast back.
  TENON_TRY(x, !integers && base.is_int() ? convert(context.tensor(0), kF64) : to_carrier(context.tensor(0)));
  TENON_TRY(y, to_element(context.tensor(1), !integers ? kF64 : exponent.is_signed_int() ? kI64 : kU64));
  TENON_TRY(result, context.output(0));
  TENON_TRY(z, Tensor::allocate(x.element(), result->dims()));
  const BroadcastPlan<2> plan(z.dims(), {x.dims(), y.dims()});
  with_carrier(x.element(), [&]<class T>() {
    const auto raise = [&]<class E>(auto f) {
      map_elements(context.parallel(), plan, x.as<T>().data(), y.as<E>().data(), z.mutable_as<T>().data(), f);
    };
    if constexpr (!kIsInt<T>) {
      raise.template operator()<double>([](T a, double b) { return static_cast<T>(float_power(a, b)); });
    } else if (y.element() == kI64) {
      raise.template operator()<int64_t>([](T a, int64_t b) { return integer_power(a, b); });
    } else {
      raise.template operator()<uint64_t>([](T a, uint64_t b) { return integer_power(a, b); });
    }
  });
  return store_converted(*result, z);
}

Result<void> shift(EvalContext& context) {
  const bool left = context.attr<std::string>("direction") == "LEFT";
  return map_number_pairs(context, [left]<class T>(T a, T b) -> T {
    if constexpr (!std::is_same_v<T, uint64_t>)
      return a;  // unsigned integers only
    else if (b >= 64)
      return 0;
    else
      return left ? a << b : a >> b;
  });
}

// f(... f(f(x0, x1), x2) ..., xn) in element type `in`, which is a carrier.
template <class F>
Result<Tensor> fold_operands(EvalContext& context, const Dims& dims, ElementType in, F f) {
  TENON_TRY(result, Tensor::allocate(in, dims));
  TENON_TRY(so_far, to_element(context.tensor(0), in));
  if (context.operand_count() == 1) return so_far;
  for (size_t i = 1; i < context.operand_count(); ++i) {
    TENON_TRY(next, to_element(context.tensor(i), in));
    const BroadcastPlan<2> plan(dims, {so_far.dims(), next.dims()});
    with_carrier(in, [&]<class T>() {
      map_elements(context.parallel(), plan, so_far.as<T>().data(), next.as<T>().data(), result.mutable_as<T>().data(),
                   f);
    });
    so_far = result;
  }
  return so_far;
}

template <auto F>
Result<void> folded(EvalContext& context) {
  TENON_TRY(y, context.output(0));
  TENON_TRY(folded, fold_operands(context, y->dims(), carrier_of(y->element()), F));
  return store_converted(*y, folded);
}

// Float sums are computed in f64 and rounded once.
ElementType sum_carrier(ElementType element) { return element.is_float() ? kF64 : carrier_of(element); }

Result<void> total(EvalContext& context) {
  TENON_TRY(y, context.output(0));
  const bool rounds_once = context.operand_count() <= 2;
  const ElementType in = rounds_once ? carrier_of(y->element()) : sum_carrier(y->element());
  TENON_TRY(sum, fold_operands(context, y->dims(), in, [](auto a, auto b) { return add(a, b); }));
  return store_converted(*y, sum);
}

Result<void> mean(EvalContext& context) {
  TENON_TRY(y, context.output(0));
  TENON_TRY(sum, fold_operands(context, y->dims(), kF64, [](auto a, auto b) { return add(a, b); }));
  TENON_TRY(quotient, Tensor::allocate(kF64, y->dims()));
  const auto count = static_cast<double>(context.operand_count());
  map_elements(context.parallel(), sum.as<double>().data(), quotient.mutable_as<double>().data(), sum.size(),
               [count](double x) { return x / count; });
  return store_converted(*y, quotient);
}

double exponential(double x) { return std::exp(x); }
double logarithm(double x) { return std::log(x); }

const EvaluatorRegistration kArithmeticRegistered({
    {Add::kName, number_pairs<[](auto a, auto b) { return add(a, b); }>},
    {Sub::kName, number_pairs<[](auto a, auto b) { return subtract(a, b); }>},
    {Mul::kName, number_pairs<[](auto a, auto b) { return multiply(a, b); }>},
    {Div::kName, number_pairs<[](auto a, auto b) { return divide(a, b); }>},
    {Mod::kName, remainder},
    {Pow::kName, power},
    {BitShift::kName, shift},
    {BitwiseAnd::kName, int_pairs<[](auto a, auto b) { return a & b; }>},
    {BitwiseOr::kName, int_pairs<[](auto a, auto b) { return a | b; }>},
    {BitwiseXor::kName, int_pairs<[](auto a, auto b) { return a ^ b; }>},
    {BitwiseNot::kName, numbers<[](auto x) { return subtract(static_cast<decltype(x)>(-1), x); }>},
    {Neg::kName, numbers<[](auto x) { return negate(x); }>},
    {Abs::kName, numbers<[](auto x) { return magnitude(x); }>},
    {Sign::kName, numbers<[](auto x) { return sign(x); }>},
    {Reciprocal::kName, floats<[](auto x) { return 1 / x; }>},
    {Sqrt::kName, floats<[](auto x) { return std::sqrt(x); }>},
    {Ceil::kName, floats<[](auto x) { return std::ceil(x); }>},
    {Floor::kName, floats<[](auto x) { return std::floor(x); }>},
    {Round::kName, floats<[](auto x) { return std::rint(x); }>},
    {Exp::kName, doubles<exponential>},
    {Log::kName, doubles<logarithm>},
    {Max::kName, folded<[](auto a, auto b) { return greater_of(a, b); }>},
    {Min::kName, folded<[](auto a, auto b) { return less_of(a, b); }>},
    {Sum::kName, total},
    {Mean::kName, mean},
});

}  // namespace
}  // namespace tenon
