// Writes the text of random graphs that consist of one kind of operator.
#pragma once
#include <random>

#include <tenon/support/str.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::opencl::testing {

// Lines of operators on f32 inputs whose elements are integers from -3 to 3, so that sums are exact in any order.
class RandomLines {
 public:
  explicit RandomLines(uint32_t seed) : random_(seed) {}

  size_t inputs() const { return inputs_.size(); }
  Tensor input(size_t i) {
    Tensor made = *Tensor::allocate(kF32, inputs_[i]);
    for (float& value : made.mutable_as<float>()) value = static_cast<float>(one_of(7)) - 3;
    return made;
  }

 protected:
  int64_t one_of(int64_t count) { return std::uniform_int_distribution<int64_t>(0, count - 1)(random_); }
  int64_t extent(int64_t most) { return 1 + one_of(one_of(3) == 0 ? most : std::min<int64_t>(most, 9)); }
  std::string add_input(const Dims& dims) {
    inputs_.push_back(dims);
    return str("%x", inputs_.size() - 1);
  }
  std::string add(std::string_view expression) {
    lines_ += str("  %v", values_, " = ", expression, "\n");
    return str("%v", values_++);
  }
  std::string graph(std::string_view outputs) const {
    std::string inputs;
    for (size_t i = 0; i < inputs_.size(); ++i) inputs += str(i ? ", " : "", "%x", i, ": ", dims_text(inputs_[i]));
    return str("graph @g(", inputs, ") -> (", outputs, ") {\n", lines_, "}");
  }

 private:
  static std::string dims_text(const Dims& dims) {
    std::string text = "f32[";
    for (size_t d = 0; d < dims.size(); ++d) text += str(d ? "," : "", dims[d]);
    return text + "]";
  }

  std::mt19937 random_;
  std::vector<Dims> inputs_;
  std::string lines_;
  int values_ = 0;
};

}  // namespace tenon::opencl::testing
