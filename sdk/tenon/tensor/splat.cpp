#include <tenon/tensor/splat.hpp>

#include <algorithm>
#include <cstring>

#include <tenon/tensor/numeric.hpp>

namespace tenon {

bool is_splat(const Tensor& tensor) {
  if (tensor.size() < 2) return false;
  if (tensor.element().is_string()) {
    const auto texts = tensor.as<std::string>();
    return std::ranges::all_of(texts, [&](const std::string& text) { return text == texts[0]; });
  }
  const int bits = tensor.element().bits();
  if (tensor.element().byte_addressable()) {
    const size_t step = static_cast<size_t>(bits) / 8;
    return std::memcmp(tensor.data(), tensor.data() + step, tensor.bytes() - step) == 0;
  }
  const uint64_t first = load_bits(tensor.data(), bits, 0);
  for (int64_t i = 1; i < tensor.size(); ++i)
    if (load_bits(tensor.data(), bits, i) != first) return false;
  return true;
}

Result<Tensor> first_element(const Tensor& tensor) {
  TENON_CHECK(tensor.size() > 0 && !tensor.element().is_string(), "the first element of ", tensor);
  TENON_TRY(made, Tensor::zeros(tensor.element(), {}));
  const int bits = tensor.element().bits();
  if (tensor.element().byte_addressable())
    std::memcpy(made.mutable_data(), tensor.data(), made.bytes());
  else
    store_bits(made.mutable_data(), bits, 0, load_bits(tensor.data(), bits, 0));
  return made;
}

}  // namespace tenon
