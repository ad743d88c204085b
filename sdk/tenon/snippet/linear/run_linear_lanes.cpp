#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <unordered_map>

#include <tenon/reference/interpreter.hpp>
#include <tenon/snippet/linear/run_linear.hpp>
#include <tenon/support/str.hpp>
#include <tenon/tensor/numeric.hpp>

namespace tenon::snippet {
namespace {

template <class T>
T from_bits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
uint64_t to_bits(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

// f(T()) with the C++ type of a numeric lane; false for booleans.
template <class F>
bool with_lane_type(ElementType element, F f) {
  if (element == kF32) return f(float()), true;
  if (element == kF64) return f(double()), true;
  if (element == kI32) return f(int32_t()), true;
  if (element == kU32) return f(uint32_t()), true;
  if (element == kI64) return f(int64_t()), true;
  if (element == kU64) return f(uint64_t()), true;
  return false;
}

template <class T>
auto wrapping(T value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<std::make_unsigned_t<T>>(value);
  else
    return value;
}

template <class T>
T divide(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(0 - wrapping(a));
  }
  return a / b;
}
template <class T>
bool is_nan(T value) {
  return value != value;
}

struct Binary {
  Name op;
  template <class T>
  T operator()(T a, T b) const {
    static const Name kAdd("Add"), kSub("Sub"), kMul("Mul"), kDiv("Div"), kMax("Max"), kMin("Min"), kLow("ClampLow"),
        kHigh("ClampHigh");
    if (op == kAdd) return static_cast<T>(wrapping(a) + wrapping(b));
    if (op == kSub) return static_cast<T>(wrapping(a) - wrapping(b));
    if (op == kMul) return static_cast<T>(wrapping(a) * wrapping(b));
    if (op == kDiv) return divide(a, b);
    if (op == kMax) return a > b || is_nan(a) ? a : b;
    if (op == kMin) return a < b || is_nan(a) ? a : b;
    if (op == kLow) return a < b ? b : a;
    return a > b ? b : a;
  }
};
bool is_binary(Name op) {
  for (const char* name : {"Add", "Sub", "Mul", "Div", "Max", "Min", "ClampLow", "ClampHigh"})
    if (op == name) return true;
  return false;
}

// Like ONNX's Cast, without saturation of integers.
template <class To, class From>
To converted(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (is_nan(value)) return 0;
    const double whole = std::trunc(static_cast<double>(value));
    if (whole <= static_cast<double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (whole >= std::ldexp(1.0, std::numeric_limits<To>::digits)) return std::numeric_limits<To>::max();
    return static_cast<To>(whole);
  } else {
    return static_cast<To>(value);
  }
}

uint64_t convert_lane(uint64_t bits, ElementType from, ElementType to) {
  uint64_t made = 0;
  if (from.is_bool()) {
    with_lane_type(to, [&](auto t) { made = to_bits(static_cast<decltype(t)>(bits)); });
    return made;
  }
  with_lane_type(from, [&](auto f) {
    const auto value = from_bits<decltype(f)>(bits);
    if (!with_lane_type(to, [&](auto t) { made = to_bits(converted<decltype(t)>(value)); })) made = value != 0;
  });
  return made;
}

Result<ElementType> narrow_type(const Attributes& attributes) {
  const Attribute* to = attributes.find("to");
  const std::string* name = to ? to->get_if<std::string>() : nullptr;
  const std::optional<ElementType> element = name ? ElementType::parse(*name) : std::nullopt;
  if (element) return *element;
  return error(Code::invalid_argument, "the attribute 'to' names no element type");
}

uint64_t wrap_lane(uint64_t bits, ElementType to) {
  const int unused = 32 - to.bits();
  const uint32_t high = static_cast<uint32_t>(bits) << unused;
  return to.is_signed_int() ? static_cast<uint32_t>(static_cast<int32_t>(high) >> unused) : high >> unused;
}

Result<LaneBits> round_or_wrap(Name op, const Attributes& attributes, ElementType from, const LaneBits& x) {
  TENON_TRY(to, narrow_type(attributes));
  LaneBits made;
  for (const uint64_t bits : x) {
    if (op == "Wrap") {
      made.push_back(wrap_lane(bits, to));
      continue;
    }
    const double value = from == kF32 ? from_bits<float>(bits) : from_bits<double>(bits);
    const double rounded = decode_float(to, encode_float(to, value));
    made.push_back(from == kF32 ? to_bits(static_cast<float>(rounded)) : to_bits(rounded));
  }
  return made;
}

Result<Tensor> tensor_of(ElementType element, const LaneBits& lanes) {
  TENON_TRY(tensor, Tensor::allocate(element, {static_cast<int64_t>(lanes.size())}));
  const size_t bytes = static_cast<size_t>(element.bits()) / 8;
  for (size_t i = 0; i < lanes.size(); ++i) std::memcpy(tensor.mutable_data() + i * bytes, &lanes[i], bytes);
  return tensor;
}

// Names of the dialect that differ from those of the generic operators.
struct Generic {
  Name op;
  Attributes attributes;
};
Generic generic_of(Name op, const Attributes& attributes) {
  if (op == "RoundEven") return {"Round", {}};
  if (op == "Fmod") return {"Mod", {{"fmod", 1}}};
  if (op == "ShiftLeft") return {"BitShift", {{"direction", "LEFT"}}};
  if (op == "ShiftRight") return {"BitShift", {{"direction", "RIGHT"}}};
  return {op, attributes};
}

Result<LaneBits> evaluate_generic(Name op, const Attributes& attributes, std::span<const ElementType> from,
                                  std::span<const LaneBits> operands, ElementType to) {
  std::vector<Datum> data;
  for (size_t i = 0; i < operands.size(); ++i) {
    TENON_TRY(tensor, tensor_of(from[i], operands[i]));
    data.emplace_back(std::move(tensor));
  }
  const Generic generic = generic_of(op, attributes);
  TENON_TRY(results, evaluate(generic.op, std::move(data), generic.attributes));
  const Tensor& made = results[0].tensor();
  if (made.element() != to) return error(Code::internal, op, " makes ", made.element(), ", not ", to);
  LaneBits lanes(static_cast<size_t>(made.size()), 0);
  const size_t bytes = static_cast<size_t>(to.bits()) / 8;
  for (size_t i = 0; i < lanes.size(); ++i) std::memcpy(&lanes[i], made.data() + i * bytes, bytes);
  return lanes;
}

}  // namespace

Result<LaneBits> evaluate_lanes(Name op, const Attributes& attributes, std::span<const ElementType> from,
                                std::span<const LaneBits> operands, ElementType to) {
  LaneBits made;
  if (operands.size() == 2 && is_binary(op)) {
    const bool numbers = with_lane_type(to, [&](auto t) {
      using T = decltype(t);
      const Binary work{op};
      for (size_t i = 0; i < operands[0].size(); ++i)
        made.push_back(to_bits<T>(work(from_bits<T>(operands[0][i]), from_bits<T>(operands[1][i]))));
    });
    if (numbers) return made;
  }
  if (op == "BitCast") return operands[0];
  if (op == "Convert") {
    for (const uint64_t bits : operands[0]) made.push_back(convert_lane(bits, from[0], to));
    return made;
  }
  if (op == "Round" || op == "Wrap") return round_or_wrap(op, attributes, from[0], operands[0]);
  if (op == "Where") {
    for (size_t i = 0; i < operands[0].size(); ++i) made.push_back(operands[operands[0][i] ? 1 : 2][i]);
    return made;
  }
  if (op == "Expm1") {
    for (const uint64_t bits : operands[0])
      made.push_back(to == kF32 ? to_bits(static_cast<float>(std::expm1(static_cast<double>(from_bits<float>(bits)))))
                                : to_bits(std::expm1(from_bits<double>(bits))));
    return made;
  }
  if (op == "NotEqual") {
    TENON_TRY(equal, evaluate_generic("Equal", attributes, from, operands, to));
    for (uint64_t& bits : equal) bits = bits ? 0 : 1;
    return equal;
  }
  return evaluate_generic(op, attributes, from, operands, to);
}

}  // namespace tenon::snippet
