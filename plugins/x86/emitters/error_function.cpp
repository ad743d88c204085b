// erf, by a rational function.
#include "x86/emitters/emitters.hpp"
#include "x86/emitters/exponential.hpp"
#include "x86/emitters/rows.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;

// x P(x^2) / Q(x^2) on [-3.92, 3.92], relative error 2^-29: least squares with Lawson's weights, then a search of
// the neighbouring floats for the coefficients that suit the rounded arithmetic best. Beyond, erf is 1 within 3e-8.
void error_function(VectorCode& c) {
  constexpr float kUpper[] = {0x1.20dd76p+0f,  0x1.7b23fp-3f,   0x1.bc6636p-5f,  0x1.f72e5ep-9f,
                              0x1.8b491ep-12f, 0x1.35b5c8p-18f, -0x1.b8cb1cp-27f};
  constexpr float kLower[] = {1, 0x1.fd55f2p-2f, 0x1.d26e7p-4f, 0x1.f9a86ep-7f, 0x1.55483ap-10f, 0x1.05f42ep-14f};
  const Vec x = c.temp();
  c.move(x, c.in(0));
  clamp_between(c, x, -3.92f, 3.92f);
  {
    const VectorCode::Scope scope(c);
    const Vec square = c.temp(), p = c.temp(), q = c.temp();
    c->vmulps(square, x, x);
    c.polynomial(p, square, kUpper);
    c.polynomial(q, square, kLower);
    c->vmulps(p, p, x);
    c->vdivps(x, p, q);
  }
  clamp_between(c, x, -1, 1);
  c.move(c.out(), x);
}

constexpr RowPair kRows[] = {
    {"Erf", kF32Lanes, {.vectors = 4, .cycles = 10}, {.vectors = 4, .cycles = 13}, 5.5, algorithm<error_function>},
};

}  // namespace

Result<void> add_error_function_rows(JitterTable& table) { return add_pairs(table, kRows); }

}  // namespace tenon::x86
