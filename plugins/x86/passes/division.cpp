// Quotients by constants as products.
//
// x / c = RN(x h + RN(x l)), where h = 1/c rounded towards 0 and l = 1/c - h (Brisebarre, Muller, Raina, "Accelerating
// correctly rounded floating-point division when the divisor is known in advance", 2004). This takes two operations
// with a throughput of one cycle, instead of a division with one of ten cycles or more. Infinities, zeros and NaN are
// correct, because h and l have the same sign.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "x86/names.hpp"
#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

constexpr int kMantissaBits = 23;
// Largest exponent of the divisor: quotients and remainders are normal numbers for most x.
constexpr int kMostExponent = 60;

// The inverse of an odd `value` modulo 2^64, by Newton's iteration.
uint64_t inverse(uint64_t value) {
  uint64_t found = value;  // correct in three bits; each step doubles that
  for (int step = 0; step < 5; ++step) found *= 2 - value * found;
  return found;
}

// The sum above differs from the quotient by less than 2^-45 of it. It can round to another number only where the
// quotient is that close to the midpoint M of two floats: X 2^bits = M C + k, with the significands X of x and C of c,
// M odd, and |k| at most 16. Checks all such X. `c` is in [1, 2).
bool rounds_correctly(float c, const QuotientFactors& by) {
  constexpr int64_t kNearest = 16, kLeast = int64_t{1} << kMantissaBits;
  const auto divisor = static_cast<int64_t>(std::ldexp(c, kMantissaBits));
  const int zeros = std::countr_zero(static_cast<uint64_t>(divisor));
  const uint64_t odd_inverse = inverse(static_cast<uint64_t>(divisor >> zeros));
  for (const int bits : {24, 25}) {  // quotients from 1 on, and below
    const int64_t period = int64_t{1} << (bits - zeros);
    for (int64_t k = -kNearest; k <= kNearest; ++k) {
      if (k == 0 || k % (int64_t{1} << zeros) != 0) continue;
      const auto first =
          static_cast<int64_t>(static_cast<uint64_t>(-(k >> zeros)) * odd_inverse & static_cast<uint64_t>(period - 1));
      const int64_t from = 2 * kLeast, missing = std::max<int64_t>(0, from - first);
      for (int64_t middle = first + (missing + period - 1) / period * period; middle < 2 * from; middle += period) {
        const int64_t significand = (middle * divisor + k) >> bits;
        if (significand < kLeast || significand >= 2 * kLeast) continue;
        const float x = std::ldexp(static_cast<float>(significand), -kMantissaBits);
        if (std::fma(x, by.high, x * by.low) != x / c) return false;
      }
    }
  }
  return true;
}

}  // namespace

std::optional<QuotientFactors> quotient_factors(float divisor) {
  int exponent = 0;
  const float c = std::frexp(std::abs(divisor), &exponent) * 2;  // in [1, 2)
  --exponent;
  if (!std::isfinite(divisor) || divisor == 0 || std::abs(exponent) > kMostExponent) return std::nullopt;
  const auto scaled = [&](float factor) { return std::copysign(std::ldexp(factor, -exponent), divisor); };
  if (c == 1) return QuotientFactors{scaled(1), 0};
  float high = 1 / c;
  if (std::fma(static_cast<double>(high), c, -1.0) > 0) high = std::nextafter(high, 0.0f);
  const auto low = static_cast<float>(std::fma(-static_cast<double>(high), c, 1.0) / c);
  for (const float l : {low, std::nextafter(low, 0.0f), std::nextafter(low, 1.0f)})
    if (rounds_correctly(c, {high, l})) return QuotientFactors{scaled(high), scaled(l)};
  return std::nullopt;
}

namespace {

// The registers of the factors; `low` -1: only a product by `high`.
struct ConstantFactors {
  RegisterId high = -1, low = -1;
};

class ConstantDivider {
 public:
  explicit ConstantDivider(LinearKernel& kernel) : kernel_(kernel), uses_(kernel) {
    for (const Instruction& one : kernel.body)
      if (is_quotient(one)) divisors_.insert(one.in[1]);
  }

  void run() {
    const auto divides = [&](const Instruction& one) { return one.op == kScalar && divisors_.contains(one.out[0]); };
    if (std::ranges::none_of(kernel_.body, divides)) return;
    std::vector<Instruction> old = std::move(kernel_.body);
    kernel_.body.clear();
    kernel_.body.reserve(old.size());
    for (Instruction& one : old) {
      if (const auto by = factors_of(one)) {
        write_quotient(one, *by);
      } else {
        const bool constant = one.op == kScalar;
        kernel_.body.push_back(std::move(one));
        if (constant && divisors_.contains(kernel_.body.back().out[0])) add_factors(Instruction(kernel_.body.back()));
      }
    }
    drop_unread(kernel_, uses_);  // constants that were only divisors
  }

 private:
  bool is_f32(RegisterId id) const { return kernel_.registers[static_cast<size_t>(id)].element == kF32; }

  bool is_quotient(const Instruction& one) const { return one.op == kDiv && !one.memory && is_f32(one.out[0]); }

  // Appends the factors after a constant that is a divisor.
  void add_factors(const Instruction& constant) {
    const RegisterId id = constant.out[0];
    if (!uses_.once(id)) return;
    const auto bits = static_cast<uint32_t>(*constant.attributes.find(kBits)->get_if<int64_t>());
    const auto by = quotient_factors(std::bit_cast<float>(bits));
    if (!by) return;
    ConstantFactors& made = factors_[id];
    made.high = write_constant(constant, by->high);
    if (by->low != 0) made.low = write_constant(constant, by->low);
  }
  RegisterId write_constant(const Instruction& like, float value) {
    Instruction one = like;
    one.out = {kernel_.add_lanes(kF32)};
    one.attributes.set(kBits, static_cast<int64_t>(std::bit_cast<uint32_t>(value)));
    kernel_.body.push_back(std::move(one));
    return kernel_.body.back().out[0];
  }

  std::optional<ConstantFactors> factors_of(const Instruction& one) const {
    if (!is_quotient(one)) return std::nullopt;
    const auto found = factors_.find(one.in[1]);
    return found == factors_.end() ? std::nullopt : std::optional(found->second);
  }

  void write_quotient(const Instruction& quotient, const ConstantFactors& by) {
    const RegisterId x = quotient.in[0], rest = by.low < 0 ? -1 : kernel_.add_lanes(kF32);
    Instruction product = quotient;
    product.op = kMul;
    product.in = {x, by.low < 0 ? by.high : by.low};
    if (by.low >= 0) product.out = {rest};
    kernel_.body.push_back(std::move(product));
    if (by.low < 0) return;
    Instruction sum = quotient;
    sum.op = kFma;
    sum.in = {x, by.high, rest};
    kernel_.body.push_back(std::move(sum));
  }

  LinearKernel& kernel_;
  const Uses uses_;
  std::set<RegisterId> divisors_;
  std::map<RegisterId, ConstantFactors> factors_;  // by the register of the constant
};

}  // namespace

void divide_by_constants(LinearKernel& kernel) {
  if (has_any(kernel, {kDiv})) ConstantDivider(kernel).run();
}

}  // namespace tenon::x86
