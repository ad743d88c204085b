#include <tenon/tensor/words.hpp>

#include <algorithm>

#include <tenon/tensor/reorder.hpp>

namespace tenon {
namespace {

// The extents of the digits that count words, if these are all words.
Dims word_dims(const Layout& layout) {
  const int64_t all = layout.banks() * layout.words_per_bank();
  Dims banks, address;
  int64_t reached = 1;
  for (const LayoutDigit& digit : layout.digits()) {
    if (digit.space == LayoutSpace::lane) continue;
    (digit.space == LayoutSpace::address ? address : banks).push_back(digit.extent);
    reached *= digit.extent;
  }
  if (!layout.has_digits() || layout.is_ragged() || layout.is_view() || reached != all) return {all};
  banks.insert(banks.end(), address.begin(), address.end());
  return banks;
}

std::span<const std::byte> bytes_of(const Tensor& tensor) { return {tensor.data(), tensor.bytes()}; }
std::span<std::byte> bytes_of(Tensor& tensor) { return {tensor.mutable_data(), tensor.bytes()}; }

Result<void> check_tensor(const Tensor& tensor, const Layout& layout) {
  if (tensor.dims() == layout.shape() && tensor.element().bits() == layout.element_bits()) return {};
  return error(Code::invalid_argument, "a layout of ", layout.shape(), " with ", layout.element_bits(),
               " bits each for a tensor ", tensor);
}

}  // namespace

Result<TensorType> words_type(const Layout& layout) {
  if (layout.word_bits() > 64) {
    return error(Code::unsupported, "words of ", layout.word_bits(), " bits are no integers; at most 64 are possible");
  }
  const bool dense = layout.bytes_per_bank() * 8 == layout.words_per_bank() * layout.word_bits();
  if (layout.banks() > 1 && !dense) {
    return error(Code::unsupported, "banks of ", layout.words_per_bank(), " words of ", layout.word_bits(),
                 " bits end within a byte or behind their last word");
  }
  return TensorType{ElementType(ElementKind::uint, static_cast<uint8_t>(layout.word_bits())), Shape(word_dims(layout))};
}

Result<Tensor> as_words(const Tensor& tensor, const Layout& layout, ParallelFor& parallel) {
  TENON_OK(check_tensor(tensor, layout));
  TENON_TRY(type, words_type(layout));
  TENON_TRY(row_major, Layout::row_major(layout.shape(), layout.element_bits()));
  TENON_TRY(plan, plan_reorder(row_major, layout));
  TENON_TRY(words, Tensor::zeros(type.element, *type.shape.static_dims()));
  // A bank may continue after its last word (size=128B).
  TENON_TRY(bytes, Tensor::zeros(kU8, {layout.bytes()}));
  if (plan.kind() == ReorderKind::no_op) {
    std::copy_n(tensor.data(), std::min(tensor.bytes(), words.bytes()), words.mutable_data());
    return words;
  }
  TENON_OK(plan.run(bytes_of(tensor), bytes_of(bytes), parallel));
  std::copy_n(bytes.data(), words.bytes(), words.mutable_data());
  return words;
}

Result<Tensor> from_words(const Tensor& words, const Layout& layout, ElementType element, ParallelFor& parallel) {
  TENON_TRY(type, words_type(layout));
  if (words.element() != type.element || words.dims() != *type.shape.static_dims()) {
    return error(Code::invalid_argument, "the words of this layout are ", Type(type), ", given are ", words);
  }
  if (element.bits() != layout.element_bits()) {
    return error(Code::invalid_argument, "a layout of elements of ", layout.element_bits(), " bits for ", element);
  }
  TENON_TRY(row_major, Layout::row_major(layout.shape(), layout.element_bits()));
  TENON_TRY(plan, plan_reorder(layout, row_major));
  TENON_TRY(bytes, Tensor::zeros(kU8, {layout.bytes()}));
  std::copy_n(words.data(), words.bytes(), bytes.mutable_data());
  TENON_TRY(tensor, Tensor::zeros(element, layout.shape()));
  if (plan.kind() == ReorderKind::no_op) {
    std::copy_n(bytes.data(), tensor.bytes(), tensor.mutable_data());
  } else {
    TENON_OK(plan.run(bytes_of(bytes), bytes_of(tensor), parallel));
  }
  return tensor;
}

}  // namespace tenon
