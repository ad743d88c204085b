// a^b = 2^(b log2 a) of f32. The logarithm is computed in f64, because the product with b multiplies its error.
#include <vector>

#include "x86/emitters/emitters.hpp"
#include "x86/emitters/exponential.hpp"
#include "x86/emitters/float_bits.hpp"
#include "x86/emitters/rows.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;

// m = a 2^-e - 1 with a 2^-e in [3/4, 3/2), for normal a above 0.
void split_normal(VectorCode& c, const Vec& e, const Vec& m, const Vec& a) {
  c->vpsubd(e, a, c.u32(kThreeQuarters32));
  c->vandps(e, e, c.u32(kExponentMask32));
  c->vpsubd(m, a, e);
  c->vsubps(m, m, c.f32(1));
  c->vpsrad(e, e, kMantissaBits32);
  c->vcvtdq2ps(e, e);
}

// The same for 0 < a < inf: denormals are multiplied by 2^23 first. Takes one mask, on avx2 also one vector.
void split(VectorCode& c, const Vec& e, const Vec& m, const Vec& a, const Mask& mask) {
  c->vmulps(m, a, c.f32(0x1p23f));
  c.set(e, 0x1p-126f);
  c.compare(mask, Compare::less, a, e);
  c.select(m, mask, m, a);
  split_normal(c, e, m, m);
  const VectorCode::Scope scope(c);
  const Vec less = c.temp();
  c.set(less, -23);
  c.keep(less, mask, less);
  c->vaddps(e, e, less);
}

// Part `part` of the lanes of x as f64: all of them where a vector of f64 holds them (1 part), else half.
void part_to_f64(VectorCode& c, const Vec& out, const Vec& x, int part) {
  if (part == 0) return c->vcvtps2pd(out, VectorCode::at(x, out.getBit() / 2));
  const Vec upper = VectorCode::at(out, out.getBit() / 2);
  if (out.isZMM())
    c->vextractf32x8(Xbyak::Ymm(upper.getIdx()), Xbyak::Zmm(x.getIdx()), 1);
  else
    c->vextractf128(upper, Xbyak::Ymm(x.getIdx()), 1);
  c->vcvtps2pd(out, upper);
}

// Bounds of the exponent z of 2^z: results are 0 from the least one down, infinite from the greatest one up. At the
// least one, one of two factors is 0 (avx2), so that nothing underflows, which would be slow.
constexpr double kLeastPower = -253, kMostPower = 200;

// For z = b (e + log2(1 + m)) in f64, bounded: e becomes n = z rounded, m becomes z - n; NaN of e is propagated.
// `multiply` makes the product with b for part `part`. The polynomial is log2(1 + m) / m with relative error 2e-11, by
// Sollya's fpminimax. The two halves of a vector of f32 are interleaved, because each is a dependency chain.
template <class Multiply>
void exponent_of_power(VectorCode& c, const Vec& e, const Vec& m, Multiply multiply) {
  constexpr double kTerms[] = {0x1.71547652cd5dp0,   -0x1.71547657000dap-1, 0x1.ec709ce67d99ep-2, -0x1.71546dd50f287p-2,
                               0x1.2777199b4a6abp-2, -0x1.ec75e7bb7092dp-3, 0x1.a604a9e6b0506p-3, -0x1.70a1432edf0b5p-3,
                               0x1.487825b57d8d7p-3, -0x1.315ca7d2cd6f6p-3, 0x1.1d981e48534fp-3,  -0x1.a896d0231bf14p-4,
                               0x1.400dbfea630f7p-5};
  const VectorCode::Scope scope(c);
  const bool halves = c.lanes() * 64 > vector_bits(c.avx512() ? Isa::avx512 : Isa::avx2);
  const int bits = halves ? c.lanes() * 32 : c.lanes() * 64;
  struct Part {
    int at;
    Vec f, q;
  };
  std::vector<Part> parts;
  for (int part = 0; part < (halves ? 2 : 1); ++part) {
    const Vec f = c.temp(bits), q = c.temp(bits);
    parts.push_back({part, f, q});
  }
  const Vec t = c.temp(bits);
  for (const Part& one : parts) {
    part_to_f64(c, one.f, m, one.at);
    c.set_u64(one.q, std::bit_cast<uint64_t>(kTerms[std::size(kTerms) - 1]));
  }
  for (size_t i = std::size(kTerms) - 1; i-- > 0;)
    for (const Part& one : parts) c->vfmadd213pd(one.q, one.f, c.f64(kTerms[i]));
  for (const Part& one : parts) {
    part_to_f64(c, t, e, one.at);
    c->vfmadd213pd(one.q, one.f, t);
    multiply(one.q, t, one.at);
  }
  c.set_u64(t, std::bit_cast<uint64_t>(kLeastPower));
  for (const Part& one : parts) c->vmaxpd(one.q, t, one.q);
  c.set_u64(t, std::bit_cast<uint64_t>(kMostPower));
  for (const Part& one : parts) c->vminpd(one.q, t, one.q);
  for (const auto& [at, f, q] : parts) {
    const auto nearest = static_cast<uint8_t>(Rounding::nearest_even);
    c.avx512() ? c->vrndscalepd(f, q, nearest) : c->vroundpd(f, q, nearest);
    c->vsubpd(q, q, f);
    const Vec narrow_n = VectorCode::at(f, bits / 2), narrow_f = VectorCode::at(q, bits / 2);
    c->vcvtpd2ps(narrow_n, f);
    c->vcvtpd2ps(narrow_f, q);
    for (const auto& [into, from] : {std::pair(e, narrow_n), std::pair(m, narrow_f)}) {
      if (at == 0)
        c.move(halves ? VectorCode::at(into, bits / 2) : into, from);
      else if (bits == 512)
        c->vinsertf32x8(Xbyak::Zmm(into.getIdx()), Xbyak::Zmm(into.getIdx()), Xbyak::Ymm(from.getIdx()), at);
      else
        c->vinsertf128(Xbyak::Ymm(into.getIdx()), Xbyak::Ymm(into.getIdx()), Xbyak::Xmm(from.getIdx()), at);
    }
  }
}

// out = 2^n 2^f for n in [-253, 200], f in [-1/2, 1/2]; destroys n.
void raise_two(VectorCode& c, const Vec& out, const Vec& n, const Vec& f) {
  constexpr float kTerms[] = {1,
                              0x1.62e43p-1f,
                              0x1.ebfbep-3f,
                              0x1.c6b06cp-5f,
                              0x1.3b2a54p-7f,
                              0x1.5da978p-10f,
                              0x1.441764p-13f,
                              0x1.da6cbap-17f};
  const VectorCode::Scope scope(c);
  const Vec sum = c.temp();
  c.polynomial(sum, f, kTerms);
  scale(c, out, sum, power_of_two(c, n));
}

// r = |a|^b becomes a^b: handles signs, zeros, infinities and NaN like std::pow. t and u are scratch.
void finish_power(VectorCode& c, const Vec& r, const Vec& magnitude, const Mask& mask, const Vec& t, const Vec& u) {
  const Vec a = c.in(0), b = c.in(1);
  // Negative a: NaN unless b is an integer.
  c.round(t, b, Rounding::nearest_even);
  c.move(u, r);
  c.compare(mask, Compare::not_equal, t, b);
  c.set_u32(t, kNaN32);
  c.select(u, mask, t, u);
  c.replace(r, mask, Compare::less, a, c.f32(0), u);
  // a is 0 or infinite: t = 0 or infinity by the sign of b, or of -b.
  c.set_u32(u, kInfinity32);
  c->vpsrad(t, b, 31);
  c->vandnps(t, t, u);
  c.replace(r, mask, Compare::equal, magnitude, u, t);
  c->vxorps(t, t, u);
  c.set(u, 0);
  c.replace(r, mask, Compare::equal, magnitude, u, t);
  // Odd powers have the sign of a: b is an integer (otherwise NaN, or of a magnitude without sign), b / 2 is not.
  c->vmulps(t, b, c.f32(0.5f));
  c.round(u, t, Rounding::nearest_even);
  c.compare(mask, Compare::not_equal, t, u);
  c->vandps(t, a, c.u32(kSign32));
  c.keep(t, mask, t);
  c.round(u, b, Rounding::nearest_even);
  c.compare(mask, Compare::equal, u, b);
  c.keep(t, mask, t);
  c->vorps(r, r, t);
  c.set_u32(t, kNaN32);
  c.replace(r, mask, Compare::unordered, a, b, t);
  // The result is 1 for a = 1, for b = 0, and for a = -1 with infinite b.
  c.set(t, 1);
  c.move(u, r);
  c.replace(u, mask, Compare::equal, magnitude, t, t);
  c->vandps(magnitude, b, c.u32(~kSign32));
  c.replace(r, mask, Compare::equal, magnitude, c.u32(kInfinity32), u);
  c.replace(r, mask, Compare::equal, a, t, t);
  c.replace(r, mask, Compare::equal, b, c.f32(0), t);
}

// Jumps to `to` where 0 < a < inf and b is finite in all lanes. Then the power is |a|^b, also where it is 1, and what
// remains is a third of the work. t and u are scratch.
void jump_if_plain(VectorCode& c, const Mask& mask, const Vec& t, const Vec& u, const Xbyak::Label& to) {
  const Vec a = c.in(0), b = c.in(1);
  if (c.avx512()) {
    // Classes of vfpclassps.
    constexpr uint8_t kNotFinite = 0x01 | 0x08 | 0x10 | 0x80;       // quiet NaN, inf, -inf, signalling NaN
    constexpr uint8_t kNotAbove = kNotFinite | 0x02 | 0x04 | 0x40;  // 0, -0, below 0
    const Xbyak::Opmask found = c.opmask(mask);
    Xbyak::Label other;
    c->vfpclassps(found, a, kNotAbove);
    c->kortestw(found, found);
    c->jnz(other);
    c->vfpclassps(found, b, kNotFinite);
    c->kortestw(found, found);
    c->jz(to, Xbyak::CodeGenerator::T_NEAR);
    c->L(other);
    return;
  }
  const Vec all = c.vector(mask);
  c.set_u32(u, kInfinity32);
  c->vandps(t, b, c.u32(~kSign32));
  c->vcmpps(all, t, u, static_cast<uint8_t>(Compare::less));
  c->vcmpps(t, a, u, static_cast<uint8_t>(Compare::less));
  c->vandps(all, all, t);
  c.set(u, 0);
  c->vcmpps(t, u, a, static_cast<uint8_t>(Compare::less));
  c->vandps(all, all, t);
  c->vpcmpeqd(t, t, t);
  c->vtestps(all, t);  // carry: no lane of `all` is clear
  c->jc(to, Xbyak::CodeGenerator::T_NEAR);
}

void power(VectorCode& c) {
  const Vec magnitude = c.temp(), m = c.temp(), e = c.temp();
  const Mask mask = c.mask_temp();
  c->vandps(magnitude, c.in(0), c.u32(~kSign32));
  split(c, e, m, magnitude, mask);
  exponent_of_power(c, e, m, [&](const Vec& q, const Vec& t, int part) {
    part_to_f64(c, t, c.in(1), part);
    c->vmulpd(q, q, t);
  });
  raise_two(c, m, e, m);
  const VectorCode::Scope scope(c);
  const Vec t = c.temp();
  Xbyak::Label done;
  jump_if_plain(c, mask, t, e, done);
  finish_power(c, m, magnitude, mask, t, e);
  c->L(done);
  c.move(c.out(), m);
}

// ---- By a constant ----

bool has(VectorCode& c, std::string_view flag) { return c.emission().attributes.find(flag) != nullptr; }

// The exponent where there is no finite logarithm: -inf for 0, inf for both infinities, NaN for other negative numbers.
void exponents_at_ends(VectorCode& c, const Vec& e, const Vec& a, const Mask& mask) {
  if (c.avx512()) {
    // Of vfixupimmps, from the highest class on: positive, negative, +inf, -inf, 1, 0, quiet NaN, signalling NaN.
    constexpr uint32_t kAnswers = 0x03550422;
    return c->vfixupimmps(e, a, c.u32(kAnswers), 0);
  }
  constexpr uint8_t kNotLess = 0x15;  // also true for NaN
  const VectorCode::Scope scope(c);
  const Vec t = c.temp();
  c.set_u32(t, kInfinity32);
  c->vcmpps(c.vector(mask), a, t, kNotLess);
  c.select(e, mask, a, e);
  c.set(t, 0);
  c.compare(mask, Compare::equal, a, t);
  c.set_u32(t, kInfinity32 | kSign32);
  c.select(e, mask, t, e);
  if (has(c, "no_sign")) return;
  c.compare(mask, Compare::less, a, c.f32(0));
  c->vorps(e, e, c.vector(mask));
  c.compare(mask, Compare::equal, a, t);
  c.set_u32(t, kInfinity32);
  c.select(e, mask, t, e);
}

// a^b for a finite b that is not 0, and integral only where a is not negative (body/numbers.hpp): infinities and zeros
// follow from the logarithm's.
void power_by_constant(VectorCode& c) {
  const auto exponent = static_cast<uint32_t>(*c.emission().attributes.find("exponent")->get_if<int64_t>());
  const Vec a = c.in(0), m = c.temp(), e = c.temp();
  const Mask mask = c.mask_temp();
  has(c, "normal") ? split_normal(c, e, m, a) : split(c, e, m, a, mask);
  exponents_at_ends(c, e, a, mask);
  exponent_of_power(c, e, m,
                    [&](const Vec& q, const Vec&, int) { c->vmulpd(q, q, c.f64(std::bit_cast<float>(exponent))); });
  raise_two(c, c.out(), e, m);
}

constexpr RowPair kPowerRows[] = {
    {"Pow", kF32Lanes, {.vectors = 9, .cycles = 126}, {.vectors = 8, .masks = 1, .cycles = 130}, 1, algorithm<power>},
    {"PowBy",
     kF32Lanes,
     {.vectors = 8, .cycles = 60},
     {.vectors = 7, .masks = 1, .cycles = 60},
     1,
     algorithm<power_by_constant>},
};

}  // namespace

Result<void> add_power_rows(JitterTable& table) { return add_pairs(table, kPowerRows); }

}  // namespace tenon::x86
