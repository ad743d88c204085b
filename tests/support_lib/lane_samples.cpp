#include <support_lib/lane_samples.hpp>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <tenon/tensor/numeric.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::test {

namespace {

std::vector<uint64_t> special_values(ElementType element) {
  std::vector<uint64_t> out;
  if (element == kBool) return {0, 1};
  if (element == kF32) {
    for (const uint32_t magnitude :
         {0x0u,        0x1u,        0x7fffffu,   0x800000u,   0x33000000u, 0x3effffffu, 0x3f000000u,
          0x3f000001u, 0x3f7fffffu, 0x3f800000u, 0x3fc00000u, 0x40000000u, 0x40200000u, 0x40490fdbu,
          0x41200000u, 0x4b000001u, 0x4effffffu, 0x4f000000u, 0x4f7fffffu, 0x4f800000u, 0x5effffffu,
          0x5f000000u, 0x5f7fffffu, 0x5f800000u, 0x7f7fffffu, 0x7f800000u, 0x7fc00001u})
      for (const uint32_t sign : {0u, 0x80000000u}) out.push_back(magnitude | sign);
    return out;
  }
  if (element == kF64) {
    for (const double magnitude : {0.0,
                                   5e-324,
                                   2.2250738585072014e-308,
                                   1e-45,
                                   0.49999999999999994,
                                   0.5,
                                   1.0,
                                   1.5,
                                   2.5,
                                   3.0,
                                   65519.99,
                                   65520.0,
                                   2147483647.0,
                                   2147483648.0,
                                   4294967295.0,
                                   4294967296.0,
                                   4503599627370497.5,
                                   9223372036854774784.0,
                                   9223372036854775808.0,
                                   18446744073709549568.0,
                                   18446744073709551616.0,
                                   3.4028235677973366e38,
                                   1e300,
                                   std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<double>::quiet_NaN()})
      for (const double value : {magnitude, -magnitude}) out.push_back(std::bit_cast<uint64_t>(value));
    return out;
  }
  const uint64_t mask = element.bits() == 64 ? ~uint64_t{0} : 0xffffffffu;
  for (const uint64_t value : {uint64_t{0},
                               uint64_t{1},
                               uint64_t{2},
                               uint64_t{3},
                               uint64_t{7},
                               uint64_t{31},
                               uint64_t{32},
                               uint64_t{63},
                               uint64_t{64},
                               uint64_t{127},
                               uint64_t{128},
                               uint64_t{255},
                               uint64_t{32768},
                               uint64_t{16777217},
                               uint64_t{0x7fffffff},
                               uint64_t{0x80000000},
                               uint64_t{0xffffffff},
                               (uint64_t{1} << 53) + 1,
                               uint64_t{0x7fffffffffffffff},
                               uint64_t{1} << 63})
    for (const uint64_t signed_value : {value, uint64_t{0} - value}) out.push_back(signed_value & mask);
  return out;
}

}  // namespace

std::vector<uint64_t> sample(ElementType element, size_t count, uint32_t seed) {
  std::vector<uint64_t> out = special_values(element);
  std::mt19937_64 random(seed);
  while (out.size() < count) {
    uint64_t bits = random();
    if (element.is_int()) bits >>= random() % 64;  // of all magnitudes
    if (element.is_int() && random() % 2 != 0) bits = uint64_t{0} - bits;
    if (element.is_float() && random() % 2 != 0) {  // of human size
      const double value =
          std::ldexp(static_cast<double>(static_cast<int64_t>(bits)), -static_cast<int>(random() % 80));
      bits = element == kF64 ? std::bit_cast<uint64_t>(value) : std::bit_cast<uint32_t>(static_cast<float>(value));
    }
    if (element.bits() <= 32) bits &= 0xffffffffu;
    out.push_back(element.is_bool() ? bits & 1 : bits);
  }
  out.resize(count);
  return out;
}

std::vector<Column> sample_columns(ElementType element, size_t operands, uint32_t seed) {
  const std::vector<uint64_t> special = special_values(element);
  const size_t pairs = special.size() * special.size();
  const size_t count = (pairs + 4096) / 64 * 64;
  std::vector<Column> columns;
  for (size_t i = 0; i < operands; ++i) {
    columns.push_back({element, sample(element, count, seed + static_cast<uint32_t>(i))});
    for (size_t at = 0; at < pairs; ++at)
      columns[i].bits[at] = special[i == 0 ? at / special.size() : (at + 7 * (i - 1)) % special.size()];
  }
  return columns;
}

double ulp_error(float got, double exact) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) && std::isnan(got) ? 0 : kInfinite;
  const auto rounded = static_cast<float>(exact);
  if (std::isinf(rounded) || std::isinf(got)) return rounded == got ? 0 : kInfinite;
  if (got == 0 && exact == 0) return std::signbit(got) == std::signbit(exact) ? 0 : kInfinite;
  const int exponent = std::max(exact == 0 ? -126 : std::ilogb(exact), -126);
  return std::abs(got - exact) / std::ldexp(1.0, exponent - 23);
}

// The lanes as a tensor, converted to one type after another.
std::vector<uint64_t> converted(const Column& column, std::span<const ElementType> route) {
  auto tensor = *Tensor::allocate(column.element, {static_cast<int64_t>(column.bits.size())});
  const auto bytes = static_cast<size_t>(column.element.bits() / 8);
  for (size_t i = 0; i < column.bits.size(); ++i)
    std::memcpy(reinterpret_cast<std::byte*>(tensor.mutable_data()) + i * bytes, &column.bits[i], bytes);
  for (const ElementType to : route) tensor = *convert(tensor, to);
  std::vector<uint64_t> bits(column.bits.size());
  const auto out_bytes = static_cast<size_t>(route.back().bits() / 8);
  for (size_t i = 0; i < bits.size(); ++i) std::memcpy(&bits[i], tensor.data() + i * out_bytes, out_bytes);
  return bits;
}

bool is_nan(ElementType element, uint64_t bits) {
  if (element == kF32) return std::isnan(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return element == kF64 && std::isnan(std::bit_cast<double>(bits));
}

}  // namespace tenon::test
