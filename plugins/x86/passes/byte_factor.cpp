#include "x86/passes/byte_factor.hpp"

#include <cstdlib>

namespace tenon::x86 {
namespace {

constexpr int kOfProduct = 4;    // instructions of a product
constexpr int kMostDoubled = 2;  // shifts of at most so many bits are done by adding a value to itself, once a bit

// The factor 2^high, or 2^high combined with 2^low.
struct Factor {
  int high = 0, low = -1;                // low -1: none
  bool minus = false, negative = false;  // 2^high - 2^low; the negated whole

  // Whether x 2^high is computed from x 2^low.
  bool doubles_low() const { return low > 0 && high - low <= kMostDoubled; }
  int instructions() const {
    const auto shift = [](int bits) { return bits > kMostDoubled ? 2 : bits; };
    const int lower = low < 0 ? 0 : shift(low);
    return lower + shift(doubles_low() ? high - low : high) + (low >= 0) + (negative && !minus);
  }
};

std::optional<Factor> factor_of(int32_t constant) {
  const auto value = static_cast<int8_t>(constant);
  const int magnitude = std::abs(int{value});
  std::optional<Factor> best;
  const auto offer = [&](Factor one) {
    one.negative = value < 0;
    if (one.instructions() < (best ? best->instructions() : kOfProduct)) best = one;
  };
  for (int high = 0; high < 8; ++high) {
    if (magnitude == 1 << high) offer({.high = high});
    for (int low = 0; low < high; ++low) {
      if (magnitude == (1 << high) + (1 << low)) offer({.high = high, .low = low});
      if (magnitude == (1 << high) - (1 << low)) offer({.high = high, .low = low, .minus = true});
    }
  }
  return best;
}

}  // namespace

std::optional<RegisterId> multiply_bytes(LinearKernel& kernel, RegisterId x, int32_t constant, int label,
                                         std::vector<Instruction>& made) {
  const std::optional<Factor> by = factor_of(constant);
  if (!by) return std::nullopt;
  const auto put = [&](Name op, snippet::RegisterIds in) {
    made.push_back({.op = op, .in = std::move(in), .out = {kernel.add_lanes(kI32)}, .label = label});
    return made.back().out[0];
  };
  const auto shifted = [&](RegisterId from, int bits) {
    if (bits > kMostDoubled) {
      const RegisterId to = put("ShiftBytes", {from});
      made.back().attributes.set("bits", bits);
      return to;
    }
    for (; bits > 0; --bits) from = put("AddBytes", {from, from});
    return from;
  };
  const RegisterId low = by->low < 0 ? -1 : shifted(x, by->low);
  const RegisterId high = by->doubles_low() ? shifted(low, by->high - by->low) : shifted(x, by->high);
  if (by->minus) return by->negative ? put("SubBytes", {low, high}) : put("SubBytes", {high, low});
  const RegisterId sum = low < 0 ? high : put("AddBytes", {high, low});
  return by->negative ? put("NegBytes", {sum}) : sum;
}

}  // namespace tenon::x86
