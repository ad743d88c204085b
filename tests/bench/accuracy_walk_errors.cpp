#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "accuracy_walk_blocks.hpp"

namespace tenon::test {

double largest_ulp_error(const float* __restrict got, const double* __restrict exact, size_t count) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  constexpr uint64_t kExponent = uint64_t{0x7ff} << 52, kLeast = uint64_t{1023 - 126} << 52, kUlp = uint64_t{23} << 52;
  double largest = 0;
  for (size_t i = 0; i < count; ++i) {
    const double of = exact[i], at = got[i];
    const auto rounded = static_cast<float>(of);
    const uint64_t exponent = std::max(std::bit_cast<uint64_t>(of) & kExponent, kLeast);
    const double ulps = std::abs(at - of) / std::bit_cast<double>(exponent - kUlp);
    const bool same = std::bit_cast<uint32_t>(rounded) == std::bit_cast<uint32_t>(got[i]) || (at != at && of != of);
    const bool far = !(ulps <= 1e30) || std::abs(rounded) == std::numeric_limits<float>::infinity() ||
                     (at == 0 && of == 0);  // not finite, or zeros of two signs
    const double error = same ? 0 : far ? kInfinite : ulps;
    largest = error > largest ? error : largest;
  }
  return largest;
}

}  // namespace tenon::test
