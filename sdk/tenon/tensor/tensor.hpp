// A dense row-major tensor in host memory: an element type, a static shape and bytes.
//
// A Tensor is a handle: copying it shares the bytes. It owns them (allocate), shares someone's ownership (share: a
// mapped file, a plugin's buffer) or borrows them (borrow: the caller keeps them alive). Reading from several threads
// is safe; writing must be synchronised by the caller. Data of constants must not be written: use a clone().
#pragma once
#include <complex>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/support/export.hpp>
#include <tenon/support/memory.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/element_type.hpp>
#include <tenon/tensor/numeric.hpp>
#include <tenon/tensor/shape.hpp>
#include <tenon/tensor/type.hpp>

namespace tenon {

class TENON_API Tensor {
 public:
  Tensor() = default;  // no tensor: valid() is false

  // Uninitialised numbers (bits after the last element are zero), empty strings. More than tensor_bytes_limit() bytes
  // are an error, so that the process is not killed for lack of memory.
  static Result<Tensor> allocate(ElementType element, Dims dims);
  static Result<Tensor> zeros(ElementType element, Dims dims);
  // Borrows `data`, which must hold storage_bytes(element, count) bytes and outlive every copy. It must be aligned for
  // the element's C++ type (complex: for its parts; packed bits: to a byte); anything else is an error.
  static Result<Tensor> borrow(ElementType element, Dims dims, void* data, size_t data_bytes);
  // Shares `owner`, which keeps `data` alive; the same conditions.
  static Result<Tensor> share(ElementType element, Dims dims, std::shared_ptr<void> owner, void* data,
                              size_t data_bytes);
  // From C++ values: of<float>({2, 2}, {1, 2, 3, 4}). The count must match.
  template <class T>
  static Tensor of(Dims dims, const std::vector<T>& values);
  template <class T>
  static Tensor scalar(T value) { return of<T>({}, {value}); }

  bool valid() const { return element_.valid(); }
  ElementType element() const { return element_; }
  const Dims& dims() const { return dims_; }
  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  int64_t dim(size_t i) const { return dims_[i]; }
  int64_t size() const { return count_; }  // elements
  size_t bytes() const { return bytes_; }  // of storage; strings: sizeof(std::string) each
  TensorType type() const { return {element_, Shape(dims_)}; }

  const std::byte* data() const { return data_; }
  std::byte* mutable_data() { return data_; }
  // Elements as C++ values; T must be the storage type of element() (storage_of in numeric.hpp).
  template <class T>
  std::span<const T> as() const { return {typed<T>(), static_cast<size_t>(count_)}; }
  template <class T>
  std::span<T> mutable_as() { return {const_cast<T*>(typed<T>()), static_cast<size_t>(count_)}; }

  // Any numeric or boolean element, by value. Exact for every type up to f64; use int_at for 64-bit integers.
  double double_at(int64_t index) const;
  int64_t int_at(int64_t index) const;  // integers and booleans; u64 beyond 2^63 wraps; floats truncate and saturate
  // Rounds and saturates as convert() does.
  void set_double(int64_t index, double value);
  void set_int(int64_t index, int64_t value);
  // All elements as int64_t: for shapes, axes and other small integer operands.
  std::vector<int64_t> to_ints() const;

  // The same bytes under another shape of the same element count.
  Result<Tensor> reshaped(Dims dims) const;
  // A copy that owns its bytes; the copy of no tensor is no tensor. An error when the heap is exhausted.
  // tensor_bytes_limit() does not apply, because existing tensors may be larger.
  Result<Tensor> clone() const;
  // Same element type, shape and bits (strings: text).
  bool identical(const Tensor& other) const;
  // The owner of the bytes; null for a borrowed tensor.
  const std::shared_ptr<void>& owner() const { return owner_; }
  // "f32[2,3]".
  std::string to_string() const;

 private:
  template <class T>
  const T* typed() const {
    TENON_CHECK(holds_storage<T>(element_), "a tensor of ", element_, " read as another C++ type");
    return reinterpret_cast<const T*>(data_);
  }

  ElementType element_;
  Dims dims_;
  int64_t count_ = 0;
  size_t bytes_ = 0;
  std::byte* data_ = nullptr;
  std::shared_ptr<void> owner_;
};

// Bytes that `count` elements take, rounded up to whole bytes; an error when that overflows.
TENON_API Result<size_t> storage_bytes(ElementType element, int64_t count);

template <class T>
Tensor Tensor::of(Dims dims, const std::vector<T>& values) {
  auto made = allocate(element_type_of<T>(), std::move(dims));
  TENON_CHECK(made.ok(), made.error().to_string());
  TENON_CHECK(made->size() == static_cast<int64_t>(values.size()), "a tensor of ", made->size(), " elements given ",
              values.size(), " values");
  auto out = made->template mutable_as<storage_of<T>>();
  for (size_t i = 0; i < values.size(); ++i) out[i] = static_cast<storage_of<T>>(values[i]);
  return *std::move(made);
}

}  // namespace tenon
