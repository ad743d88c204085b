// Evaluators in tests: one operator on tensors, and tensors of every kind of element for operators that move elements.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include <tenon/reference/interpreter.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon::testing {

// All results of the operator; empty, with a failed test, if it is refused.
inline std::vector<Datum> evaluated_all(Name op, std::vector<Datum> operands, const Attributes& attributes = {},
                                        size_t results = 1) {
  auto made = evaluate(op, std::move(operands), attributes, results);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().to_string());
  return made.ok() ? *std::move(made) : std::vector<Datum>(results, Datum(Tensor()));
}
inline Tensor evaluated(Name op, std::vector<Datum> operands, const Attributes& attributes = {}) {
  return evaluated_all(op, std::move(operands), attributes)[0].tensor();
}
// The text of the refusal.
inline std::string error_of(Name op, std::vector<Datum> operands, const Attributes& attributes = {},
                            size_t results = 1) {
  const auto made = evaluate(op, std::move(operands), attributes, results);
  return made.ok() ? "no error" : made.error().to_string();
}

inline Tensor ints(const std::vector<int64_t>& values) {
  return Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

// One type for each way in which elements are stored.
inline const std::vector<ElementType> kSampleTypes = {
    kF32, kF64, kBF16, kI8, kU64, kBool, kI4, kU2, kF4E2M1, kString, kC64, kC128, ElementType(ElementKind::uint, 12)};

// Element `index` as text, whatever the type: its number, its bits, or the string.
inline std::string element_text(const Tensor& tensor, int64_t index) {
  const ElementType element = tensor.element();
  if (element.is_string()) return tensor.as<std::string>()[index];
  const int whole = element.bits() / 64;
  if (whole <= 1) return std::to_string(load_bits(tensor.data(), element.bits(), index));
  return std::to_string(load_bits(tensor.data(), 64, index * 2)) + ":" +
         std::to_string(load_bits(tensor.data(), 64, index * 2 + 1));
}

// Elements that identify their positions as far as the type has values for it: bits counting up, or "s0", "s1" ...
inline Tensor iota(ElementType element, Dims dims) {
  Tensor out = *Tensor::zeros(element, std::move(dims));
  for (int64_t i = 0; i < out.size(); ++i) {
    const auto value = static_cast<uint64_t>(i);
    if (element.is_string())
      out.mutable_as<std::string>()[i] = "s" + std::to_string(i);
    else if (element.is_bool())
      out.mutable_as<uint8_t>()[i] = value % 2;
    else if (element.bits() == 128)
      store_bits(out.mutable_data(), 64, 2 * i + 1, value);
    else
      store_bits(out.mutable_data(), element.bits(), i,
                 element.bits() == 64 ? value : value & ((uint64_t{1} << element.bits()) - 1));
  }
  return out;
}

// Compares every element of `y` with the text that `expected` gives for its index.
inline void expect_elements(const Tensor& y, const Dims& dims,
                            const std::function<std::string(const Dims&)>& expected) {
  ASSERT_EQ(y.dims(), dims);
  Dims index(dims.size());
  for (int64_t i = 0; i < y.size(); ++i) {
    int64_t rest = i;
    for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) index[d] = rest % dims[d];
    ASSERT_EQ(element_text(y, i), expected(index)) << "element " << str(index) << " of " << y.to_string();
  }
}
// The element of `x` at an index, as text.
inline std::string at(const Tensor& x, const Dims& index) {
  int64_t offset = 0;
  for (size_t d = 0; d < index.size(); ++d) offset = offset * x.dim(d) + index[d];
  return element_text(x, offset);
}

}  // namespace tenon::testing
