// Moving elements without looking at them: one copy routine for every element type.
//
// Elements that do not fill whole bytes (4-bit integers and the like) are spread to whole bytes first and packed again
// afterwards, so that evaluators of movement see whole bytes or strings only:
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

// The tensor itself, or its elements' bits one to an unsigned integer (u8, else u64) where they do not fill whole
// bytes.
Result<Tensor> spread(const Tensor& tensor);

// Result `i`, to be written as spread() gives operands.
class SpreadOutput {
 public:
  // Of the type that the shape rule gives, or of a type that only the evaluator knows.
  static Result<SpreadOutput> open(EvalContext& context, size_t i);
  static Result<SpreadOutput> open(EvalContext& context, size_t i, ElementType element, Dims dims);
  // For results that are no operator's: elements of a sequence.
  static Result<SpreadOutput> make(ElementType element, Dims dims);

  Tensor& tensor() { return written_; }
  const Dims& dims() const { return written_.dims(); }
  // Packs what was written.
  Result<void> close();
  // The packed tensor, of make().
  const Tensor& result() const { return result_; }

 private:
  static Result<SpreadOutput> of(Tensor result);
  Tensor result_, written_;
};

// Where a block of elements lies in a tensor, in elements; a stride may be 0 or negative.
struct ElementBlock {
  int64_t offset = 0;
  Dims strides;
};

// to[block] = from[block] for every index in `dims`. Element types must be alike and fill whole bytes, or be strings;
// the tensors must not overlap; `to_block` must not visit an element twice.
void copy_elements(ParallelFor& parallel, const Tensor& from, const ElementBlock& from_block, Tensor& to,
                   const ElementBlock& to_block, const Dims& dims);

// Axis d of `to` is axis perm[d] of `from`, which is seen under the shape `dims`.
void copy_transposed(ParallelFor& parallel, const Tensor& from, const Dims& dims, std::span<const int64_t> perm,
                     Tensor& to);

// Element (i, j, ...) of `to` is element places[0][i] + places[1][j] + ... of `from`; there are as many places as axes
// and extents of `to`. Element types must be alike and fill whole bytes, or be strings.
void copy_gathered(ParallelFor& parallel, const Tensor& from, const std::vector<Dims>& places, Tensor& to);

// `count` elements in a row.
void copy_run(const Tensor& from, int64_t from_offset, Tensor& to, int64_t to_offset, int64_t count);

// Zeros, false, or empty strings.
void fill_zero(Tensor& to);

// All of `to` = element `index` of `from`.
void fill_elements(ParallelFor& parallel, const Tensor& from, int64_t index, Tensor& to);

// The bytes of one complex f64 element, moved as one.
struct Bytes16 {
  uint64_t low, high;
};

// Runs body.template operator()<T>() with the C++ type as which elements of a spread tensor move.
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
