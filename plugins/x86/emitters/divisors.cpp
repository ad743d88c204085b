// Quotients by loop-invariant divisors (passes/standing_divisors.cpp), and roots beside quotients (passes/roots.cpp).
#include <algorithm>
#include <vector>

#include "x86/emitters/emitters.hpp"
#include "x86/emitters/rows.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;

// Where |s| is not from 2^-126 to 2^122.
void odd_divisor(VectorCode& c) {
  constexpr uint32_t kLeast = 2 * 0x00800000u, kMost = 2 * 0x7c800000u, kSign = 0x80000000;  // without the sign bit
  const Vec place = c.temp();
  c->vpslld(place, c.in(0), 1);
  c->vpaddd(place, place, c.u32(kSign - kLeast));
  const Mask out = c.mask_out();
  if (c.avx512())
    c->vpcmpgtd(c.opmask(out), place, c.u32(kMost - kLeast - kSign));
  else
    c->vpcmpgtd(c.vector(out), place, c.u32(kMost - kLeast - kSign));
  c.deliver(out);
}

// x / s from x, s, 1 / s as a sum of two floats, and a mask of odd s; for one vector, or for several with one check.
enum { kX, kDivisor, kHigh, kLow, kOdd, kOperands };

bool are_quotients(const Signature& s) { return s.in.size() == kOperands * s.out.size(); }

class StandingQuotients final : public Emitter {
 public:
  Result<void> emit_code(EmitContext& context, const Emission& e) const override {
    VectorCode c(x86_context(context), e);
    const auto in = [&](size_t i, size_t which) { return c.in(i * kOperands + which); };
    const auto out = [&](size_t i) { return c.context().vector(e.out[i], e.lanes); };
    std::vector<int> odd;
    for (size_t i = kOdd; i < e.in.size(); i += kOperands)
      if (std::ranges::find(odd, e.in[i].at.number) == odd.end()) odd.push_back(e.in[i].at.number);
    test(c, odd);
    for (size_t i = 0; i < e.out.size(); ++i) c->vmulps(out(i), in(i, kX), in(i, kLow));
    for (size_t i = 0; i < e.out.size(); ++i) c->vfmadd231ps(out(i), in(i, kX), in(i, kHigh));
    Xbyak::Label divides, done;
    c->jnz(divides, Xbyak::CodeGenerator::T_NEAR);
    c->L(done);
    struct Quotient {
      Vec out, x, divisor;
    };
    std::vector<Quotient> quotients;
    for (size_t i = 0; i < e.out.size(); ++i) quotients.push_back({out(i), in(i, kX), in(i, kDivisor)});
    c.context().write_behind([quotients, divides, done](X86Context& behind) mutable {
      behind.gen().L(divides);
      for (const Quotient& one : quotients) behind.gen().vdivps(one.out, one.x, one.divisor);
      behind.gen().jmp(done, Xbyak::CodeGenerator::T_NEAR);
    });
    return c.finish();
  }

 private:
  // Sets the zero flag where no lane of any vector is odd; the register of the first result is free.
  static void test(VectorCode& c, const std::vector<int>& odd) {
    if (c.avx512()) {
      Xbyak::Opmask any(odd[0]);
      for (size_t i = 2; i < odd.size(); any = c->k0, ++i) c->korw(c->k0, any, Xbyak::Opmask(odd[i]));
      return c->kortestw(any, odd.size() > 1 ? Xbyak::Opmask(odd[1]) : any);
    }
    const Xbyak::Ymm free = X86Context::ymm(c.out().getIdx());  // masks fill a whole register
    Xbyak::Ymm any = X86Context::ymm(odd[0]);
    for (size_t i = 1; i < odd.size(); any = free, ++i) c->vorps(free, any, X86Context::ymm(odd[i]));
    c->vtestps(any, any);
  }
};

// The quotient q, or x / s where a lane of o is true; s is an operand or in memory.
class CheckedQuotient final : public Emitter {
 public:
  Result<void> emit_code(EmitContext& context, const Emission& e) const override {
    VectorCode c(x86_context(context), e);
    const Vec out = c.out(), quotient = c.in(0), x = c.in(1);
    const int odd = e.in.back().at.number;
    if (c.avx512())
      c->kortestw(Xbyak::Opmask(odd), Xbyak::Opmask(odd));
    else
      c->vtestps(X86Context::ymm(odd), X86Context::ymm(odd));  // masks fill a whole register
    Xbyak::Label divides, done;
    c->jnz(divides, Xbyak::CodeGenerator::T_NEAR);
    c.move(out, quotient);
    c->L(done);
    const auto s = e.memory ? ConstantOperand(c.context().address(*e.memory)) : ConstantOperand(c.in(2));
    c.context().write_behind([=](X86Context& behind) mutable {
      behind.gen().L(divides);
      behind.gen().vdivps(out, x, s);
      behind.gen().jmp(done, Xbyak::CodeGenerator::T_NEAR);
    });
    return c.finish();
  }
};

// The correctly rounded square root of x. Newton's iteration on an inverse root within 2^-13 gives the root and half of
// its inverse. The correction is x - root^2 times that half. All significands are tested to round correctly
// (passes_quotients_test.cpp); below 2^-100, x - root^2 would be a denormal.
void root_by_products(VectorCode& c) {
  if (!c.avx512()) return c->vsqrtps(c.out(), c.in(0));
  constexpr uint32_t kTakeZeroAndInfinity = 0x00100100;  // vfixupimmps
  const Vec x = c.in(0), root = c.temp(), half = c.temp(), rest = c.temp();
  c->vrsqrt14ps(half, x);
  c->vmulps(root, x, half);
  c->vmulps(half, half, c.f32(0.5f));
  c.move(rest, half);
  c->vfnmadd213ps(rest, root, c.f32(0.5f));
  c->vfmadd213ps(root, rest, root);
  c->vfmadd213ps(half, rest, half);
  c.move(rest, root);
  c->vfnmadd213ps(rest, root, x);
  c->vfmadd231ps(root, rest, half);
  c->vfixupimmps(root, x, c.u32(kTakeZeroAndInfinity), 0);
  c.move(c.out(), root);
}

constexpr RowPair kDivisorRows[] = {
    {"SqrtByProducts", kF32Lanes, {.cycles = 6}, {.vectors = 3, .cycles = 11}, 0.5, algorithm<root_by_products>},
    {"OddDivisor", kF32Lanes, {.vectors = 1, .cycles = 1}, {.vectors = 1, .cycles = 2}, 0, algorithm<odd_divisor>},
    {"DivOdd", kF32Lanes, {.cycles = 1}, {.cycles = 1}, 0, make_emitter<CheckedQuotient>},
    {"DivOddMemory", kF32Lanes, {.cycles = 1}, {.cycles = 1}, 0, make_emitter<CheckedQuotient>},
    {"DivStanding", kF32Lanes, {.cycles = 2}, {.cycles = 3}, 0, make_emitter<StandingQuotients>, are_quotients, true},
    {"DivStandingInTurn2",
     kF32Lanes,
     {.cycles = 3},
     {.cycles = 5},
     0,
     make_emitter<StandingQuotients>,
     are_quotients,
     true},
    {"DivStandingInTurn4",
     kF32Lanes,
     {.cycles = 5},
     {.cycles = 9},
     0,
     make_emitter<StandingQuotients>,
     are_quotients,
     true},
};

}  // namespace

Result<void> add_divisor_rows(codegen::JitterTable& table) { return add_pairs(table, kDivisorRows); }

}  // namespace tenon::x86
