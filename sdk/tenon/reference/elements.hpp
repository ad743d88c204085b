// Moving elements regardless of their type: one copy routine for every element type.
//
// Elements that do not fill whole bytes (such as 4-bit integers) are first widened to whole bytes ("spread") and packed
// again afterwards, so that evaluators of movement handle only whole bytes or strings:
//
//   TENON_TRY(x, spread(context.tensor(0)));
//   TENON_TRY(y, SpreadOutput::open(context, 0));
//   copy_elements(context.parallel(), x, {.strides = ...}, y.tensor(), {.strides = ...}, dims);
//   return y.close();
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tenon/reference/evaluator.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon {

// The tensor itself, or, where its elements do not fill whole bytes, their bits as one unsigned integer each (u8, else
// u64).
Result<Tensor> spread(const Tensor& tensor);

// Result `i`, to be written in the form in which spread() gives operands.
class SpreadOutput {
 public:
  // Has the type that the shape rule gives, or a type that only the evaluator knows.
  static Result<SpreadOutput> open(EvalContext& context, size_t i);
  static Result<SpreadOutput> open(EvalContext& context, size_t i, ElementType element, Dims dims);
  // For tensors that are not results of an operator: elements of a sequence.
  static Result<SpreadOutput> make(ElementType element, Dims dims);

  Tensor& tensor() { return written_; }
  const Dims& dims() const { return written_.dims(); }
  // Packs what was written.
  Result<void> close();
  // The packed tensor, after make().
  const Tensor& result() const { return result_; }

 private:
  static Result<SpreadOutput> of(Tensor result);
  Tensor result_, written_;
};

// The position of a block of elements in a tensor, in elements; a stride may be 0 or negative.
struct ElementBlock {
  int64_t offset = 0;
  Dims strides;
};

// to[block] = from[block] for every index in `dims`. Both must have the same element type, of whole bytes or strings;
// the tensors must not overlap; `to_block` must not visit an element twice.
void copy_elements(ParallelFor& parallel, const Tensor& from, const ElementBlock& from_block, Tensor& to,
                   const ElementBlock& to_block, const Dims& dims);

// Axis d of `to` is axis perm[d] of `from`, which is interpreted with the shape `dims`.
void copy_transposed(ParallelFor& parallel, const Tensor& from, const Dims& dims, std::span<const int64_t> perm,
                     Tensor& to);

// Element (i, j, ...) of `to` is element places[0][i] + places[1][j] + ... of `from`; `places` has one list per axis of
// `to`, with one entry per index. Both must have the same element type, of whole bytes or strings.
void copy_gathered(ParallelFor& parallel, const Tensor& from, const std::vector<Dims>& places, Tensor& to);

// Copies `count` contiguous elements.
void copy_run(const Tensor& from, int64_t from_offset, Tensor& to, int64_t to_offset, int64_t count);

// Zeros, false, or empty strings.
void fill_zero(Tensor& to);

// Fills `to` with element `index` of `from`.
void fill_elements(ParallelFor& parallel, const Tensor& from, int64_t index, Tensor& to);

// The bytes of one c128 element, moved as a unit.
struct Bytes16 {
  uint64_t low, high;
};

// Runs body.template operator()<T>() with the C++ type in which elements of a spread tensor are moved.
template <class Body>
void dispatch_storage(ElementType element, Body&& body) {
  switch (element.is_string() ? 0 : element.bits()) {
    case 0: body.template operator()<std::string>(); break;
    case 8: body.template operator()<uint8_t>(); break;
    case 16: body.template operator()<uint16_t>(); break;
    case 32: body.template operator()<uint32_t>(); break;
    case 64: body.template operator()<uint64_t>(); break;
    default: body.template operator()<Bytes16>(); break;
  }
}
template <class T>
const T* storage_of_elements(const Tensor& tensor) {
  return reinterpret_cast<const T*>(tensor.data());
}
template <class T>
T* storage_of_elements(Tensor& tensor) {
  return reinterpret_cast<T*>(tensor.mutable_data());
}

}  // namespace tenon
