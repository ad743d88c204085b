// Floats of every format in kernels that exist only for f32 and f64: narrower ones are converted to f32, computed in
// f32, and rounded once at the end.
#pragma once
#include <cstring>
#include <utility>

#include <tenon/reference/evaluator.hpp>
#include <tenon/tensor/numeric.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon {

// f64 for f64, f32 for every other float.
inline ElementType work_type(ElementType element) { return element == kF64 ? kF64 : kF32; }

// `tensor` in element type `work`: the tensor itself if it already has that type.
inline Result<Tensor> in_work_type(const Tensor& tensor, ElementType work) {
  if (tensor.element() == work) return tensor;
  return convert(tensor, work);
}

// A result that is computed in a different element type from the one that it is returned in.
class WorkResult {
 public:
  static Result<WorkResult> make(EvalContext& context, size_t i, ElementType work) {
    TENON_TRY(out, context.output(i));
    return of(out, work);
  }
  Tensor& tensor() { return work_.valid() ? work_ : *out_; }
  template <class T>
  T* data() {
    return tensor().template mutable_as<T>().data();
  }
  // To be called last: rounds to the element type of the result.
  Result<void> deliver() {
    if (!work_.valid()) return {};
    TENON_TRY(rounded, convert(work_, out_->element()));
    if (rounded.bytes() != 0) std::memcpy(out_->mutable_data(), rounded.data(), rounded.bytes());
    return {};
  }

 private:
  static Result<WorkResult> of(Tensor* out, ElementType work) {
    WorkResult result;
    result.out_ = out;
    if (out->element() != work) {
      TENON_TRY(made, Tensor::allocate(work, out->dims()));
      result.work_ = std::move(made);
    }
    return result;
  }
  Tensor* out_ = nullptr;
  Tensor work_;
};

// Runs body.template operator()<float>() or <double>(): the C++ type of work_type().
template <class Body>
auto with_work_type(ElementType work, Body&& body) {
  return work == kF64 ? body.template operator()<double>() : body.template operator()<float>();
}

}  // namespace tenon
