// Compiled so that the compiler uses the vector functions of the C library (libmvec: within 4 ulp of f64).
#include "accuracy_walk_blocks.hpp"

#include <string_view>
#include <type_traits>

#include <support_lib/math_functions.hpp>

namespace tenon::test {
namespace {

struct InBlocks {};

template <class Function>
void block(const float* __restrict x, double* __restrict y, size_t count) {
  for (size_t i = 0; i < count; ++i) y[i] = Function{}(static_cast<double>(x[i]));
}

}  // namespace

std::vector<MathBlock> math_blocks() {
  std::vector<MathBlock> blocks;
  each_math_function<InBlocks>([&](std::string_view, const Attributes&, auto function) {
    if constexpr (std::is_invocable_v<decltype(function), double>)
      blocks.push_back(&block<decltype(function)>);
    else
      blocks.push_back(nullptr);
  });
  return blocks;
}

}  // namespace tenon::test
