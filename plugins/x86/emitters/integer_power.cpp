// Powers of integers by repeated squaring, modulo 2^32 or 2^64.
#include "x86/emitters/emitters.hpp"
#include "x86/emitters/rows.hpp"
#include "x86/emitters/wide.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;
using Xbyak::Label;

void set_all(VectorCode& c, const Vec& out, uint32_t value) {
  c.wide() ? c.set_u64(out, value) : c.set_u32(out, value);
}
void multiply(VectorCode& c, const Vec& out, const Vec& a, const Vec& b) {
  c.wide() ? multiply_64(c, out, a, b) : c->vpmulld(out, a, b);
}
void shift_left(VectorCode& c, const Vec& x, uint8_t by) { c.wide() ? c->vpsllq(x, x, by) : c->vpslld(x, x, by); }
void halve(VectorCode& c, const Vec& x) { c.wide() ? c->vpsrlq(x, x, 1) : c->vpsrld(x, x, 1); }

void jump_if_any(VectorCode& c, const Mask& mask, const Vec& x, const Label& to) {
  if (c.avx512()) {
    c.wide() ? c->vptestmq(c.opmask(mask), x, x) : c->vptestmd(c.opmask(mask), x, x);
    c->kortestw(c.opmask(mask), c.opmask(mask));
  } else {
    c->vptest(x, x);
  }
  c->jnz(to);
}

// For a negative exponent only its lowest bit matters, and only for bases 1 and -1; other bases give 0. For these two
// bases, base + 1 has no bit set except the second one; x | -x is negative where x is not 0.
void drop_inverses(VectorCode& c, const Vec& power, const Mask& mask) {
  const VectorCode::Scope scope(c);
  const Vec t = c.temp(), zero = c.temp();
  set_all(c, t, 1);
  c->vpxor(VectorCode::at(zero, 128), VectorCode::at(zero, 128), VectorCode::at(zero, 128));
  const auto subtract = [&](const Vec& out, const Vec& a, const Vec& b) {
    c.wide() ? c->vpsubq(out, a, b) : c->vpsubd(out, a, b);
  };
  c.wide() ? c->vpaddq(t, t, c.in(0)) : c->vpaddd(t, t, c.in(0));
  c.wide() ? c->vandpd(t, t, c.u64(~uint64_t{2})) : c->vandps(t, t, c.u32(~uint32_t{2}));
  subtract(zero, zero, t);
  c->vorpd(t, t, zero);
  c->vandpd(t, t, c.in(1));
  const Mask inverse = c.negative(mask, t);
  c->vpxor(VectorCode::at(zero, 128), VectorCode::at(zero, 128), VectorCode::at(zero, 128));
  c.select(power, inverse, zero, power);
}

void integer_power(VectorCode& c) {
  const Vec result = c.temp(), base = c.temp(), exponent = c.temp(), bit = c.temp();
  const Mask mask = c.avx512() ? c.mask_temp() : Mask{};
  const bool is_signed = c.element().is_signed_int();
  set_all(c, result, 1);
  c.move(base, c.in(0));
  c.move(exponent, c.in(1));
  if (is_signed) {
    c->vandpd(bit, exponent, result);
    c.select(exponent, c.negative(mask, exponent), bit, exponent);
  }
  Label again;
  c->L(again);
  {
    const VectorCode::Scope scope(c);
    const Vec product = c.temp();
    multiply(c, product, result, base);
    c.move(bit, exponent);
    shift_left(c, bit, static_cast<uint8_t>(c.element().bits() - 1));
    c.select(result, c.negative(mask, bit), product, result);
    multiply(c, base, base, base);
    halve(c, exponent);
  }
  jump_if_any(c, mask, exponent, again);
  if (is_signed) drop_inverses(c, result, mask);
  c.move(c.out(), result);
}

constexpr RowPair kIntegerPowerRows[] = {
    {"Pow",
     kInt32,
     {.vectors = 6, .cycles = 20},
     {.vectors = 6, .masks = 1, .cycles = 20},
     0,
     algorithm<integer_power>},
    {"Pow",
     kInt64,
     {.vectors = 7, .cycles = 50},
     {.vectors = 6, .masks = 1, .cycles = 20},
     0,
     algorithm<integer_power>},
};

}  // namespace

Result<void> add_integer_power_rows(JitterTable& table) { return add_pairs(table, kIntegerPowerRows); }

}  // namespace tenon::x86
