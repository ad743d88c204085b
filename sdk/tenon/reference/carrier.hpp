// Carriers: the few C++ types in which evaluators compute, so that each formula is compiled a few times and serves
// every element type.
//
//   f32            float           integers up to 32 bits signed   int32_t
//   other floats   double          wider signed integers           int64_t
//   bool           int32_t         unsigned integers               uint64_t
//
// A carrier represents every value of its element types exactly. In the conversion back, floats are rounded once and
// integers keep their low bits: sums, differences and products wrap around in every width, as in two's complement.
#pragma once
#include <array>
#include <cstring>
#include <utility>

#include <tenon/reference/evaluator.hpp>
#include <tenon/reference/loops.hpp>
#include <tenon/tensor/numeric.hpp>

namespace tenon {

constexpr ElementType carrier_of(ElementType element) {
  if (element.is_float()) return element == kF32 ? kF32 : kF64;
  if (element.is_unsigned_int()) return kU64;
  return element.is_signed_int() && element.bits() > 32 ? kI64 : kI32;
}

// Runs body.template operator()<T>() with the carrier's C++ type, and returns what it returns.
template <class Body>
auto with_carrier(ElementType element, Body&& body) {
  const ElementType carrier = carrier_of(element);
  if (carrier == kF32) return body.template operator()<float>();
  if (carrier == kF64) return body.template operator()<double>();
  if (carrier == kU64) return body.template operator()<uint64_t>();
  if (carrier == kI64) return body.template operator()<int64_t>();
  return body.template operator()<int32_t>();
}
// The same for float element types only: float or double.
template <class Body>
auto with_float_carrier(ElementType element, Body&& body) {
  if (element == kF32) return body.template operator()<float>();
  return body.template operator()<double>();
}

// The tensor in another element type, or in its carrier; the tensor itself if it already has that type.
inline Result<Tensor> to_element(const Tensor& tensor, ElementType element) {
  if (tensor.element() == element) return tensor;
  return convert(tensor, element);
}
inline Result<Tensor> to_carrier(const Tensor& tensor) { return to_element(tensor, carrier_of(tensor.element())); }

// Copies `from`, of the same shape, into `into` with its element type.
inline Result<void> store_converted(Tensor& into, const Tensor& from) {
  TENON_TRY(converted, to_element(from, into.element()));
  if (converted.bytes() != 0) std::memcpy(into.mutable_data(), converted.data(), converted.bytes());
  return {};
}

// Result `i`, written in its carrier type: directly into the result where that is its element type.
//   TENON_TRY(y, CarrierOutput::open(context, 0));
//   float* out = y.data<float>(); ...
//   return y.close();
class CarrierOutput {
 public:
  static Result<CarrierOutput> open(EvalContext& context, size_t i) {
    TENON_TRY(result, context.output(i));
    const ElementType carrier = carrier_of(result->element());
    if (carrier == result->element()) return CarrierOutput(result, *result);
    TENON_TRY(written, Tensor::allocate(carrier, result->dims()));
    return CarrierOutput(result, std::move(written));
  }
  const Dims& dims() const { return result_->dims(); }
  int64_t size() const { return result_->size(); }
  ElementType carrier() const { return written_.element(); }
  template <class T>
  T* data() {
    return written_.mutable_as<T>().data();
  }
  // Converts what was written into the result.
  Result<void> close() {
    if (written_.element() == result_->element()) return {};
    return store_converted(*result_, written_);
  }

 private:
  CarrierOutput(Tensor* result, Tensor written) : result_(result), written_(std::move(written)) {}
  Tensor* result_;
  Tensor written_;
};

// Result 0 = f(operand 0), elementwise; f maps carriers of numbers, or of floats.
template <class F>
Result<void> map_numbers(EvalContext& context, F f) {
  TENON_TRY(x, to_carrier(context.tensor(0)));
  TENON_TRY(y, CarrierOutput::open(context, 0));
  with_carrier(x.element(),
               [&]<class T>() { map_elements(context.parallel(), x.as<T>().data(), y.data<T>(), x.size(), f); });
  return y.close();
}
template <class F>
Result<void> map_floats(EvalContext& context, F f) {
  TENON_TRY(x, to_carrier(context.tensor(0)));
  TENON_TRY(y, CarrierOutput::open(context, 0));
  with_float_carrier(x.element(),
                     [&]<class T>() { map_elements(context.parallel(), x.as<T>().data(), y.data<T>(), x.size(), f); });
  return y.close();
}

// Result 0 = f(operand 0, operand 1), both of the same element type and broadcast.
template <class F>
Result<void> map_number_pairs(EvalContext& context, F f) {
  TENON_TRY(a, to_carrier(context.tensor(0)));
  TENON_TRY(b, to_carrier(context.tensor(1)));
  TENON_TRY(y, CarrierOutput::open(context, 0));
  const BroadcastPlan<2> plan(y.dims(), {a.dims(), b.dims()});
  with_carrier(a.element(), [&]<class T>() {
    map_elements(context.parallel(), plan, a.as<T>().data(), b.as<T>().data(), y.data<T>(), f);
  });
  return y.close();
}

}  // namespace tenon
