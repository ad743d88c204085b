// erf and tanh by piecewise polynomials (piecewise.hpp): odd functions, steep near 0 and constant beyond an end.
#include <bit>
#include <vector>

#include "x86/emitters/emitters.hpp"
#include "x86/emitters/piecewise.hpp"
#include "x86/emitters/piecewise_tables.hpp"
#include "x86/emitters/rows.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;

// f(|x|) with the sign of x; as a float, f is 1 from `end` on.
void odd_function(VectorCode& c, const PiecesView& pieces, float end) {
  constexpr uint32_t kSign = 0x80000000;
  const Vec x = c.in(0), a = c.temp(), y = c.temp();
  c->vandps(a, x, c.u32(~kSign));
  c.set(y, end);
  c->vminps(a, y, a);  // keeps NaN
  piecewise_polynomial(c, y, a, pieces);
  c.join_sign(c.out(), y, x);
}

void error_function(VectorCode& c) { c.avx512() ? odd_function(c, kErf32, 3.925f) : odd_function(c, kErf8, 3.925f); }
void hyperbolic_tangent(VectorCode& c) {
  c.avx512() ? odd_function(c, kTanh32, 9.05f) : odd_function(c, kTanh8, 9.05f);
}

// scale x + |x| f(|x|), with f from the table; x f(x) needs no sign. Zeros should have the sign of x. The sum is
// therefore rounded down, so that -1 + 1 is -0; one more instruction after the sum would take a Zen 4 two cycles a
// vector.
void odd_gate_by_sum(VectorCode& c, const OddTable& table, float scale) {
  const Vec x = c.in(0), size = c.temp(), bounded = c.temp(), y = c.temp();
  c->vandps(size, x, c.u32(0x7fffffff));
  c.set(bounded, table.end);
  c->vminps(bounded, bounded, size);  // keeps NaN
  piecewise_polynomial(c, y, bounded, table);
  c->vmulps(bounded, x, c.f32(scale));
  c.multiply_add_down(y, size, bounded);
  c.move(c.out(), y);
}

// The same as 2 scale max(x, -0) - |x| (scale - f(|x|)), rounded to nearest: for x far below 0 this is -0 + x 0, so no
// sign needs to be joined. -|x| determines the interval. It is also the factor, bounded where x is above 0 and may be
// infinite.
void odd_gate_by_lack(VectorCode& c, const OddTable& table, float scale) {
  constexpr uint32_t kSign = 0x80000000;
  const Vec x = c.in(0), minus = c.temp(), y = c.temp();
  std::vector<float> terms = table.terms;  // of scale - f, as a polynomial in -|x|
  for (size_t i = 0; i < terms.size(); ++i) {
    const size_t power = i / table.intervals;
    if (power == 0)
      terms[i] = table.lacks[i];
    else if (power % 2 == 0)
      terms[i] = -terms[i];
  }
  PiecesView pieces(table);
  pieces.terms = terms;
  pieces.below_zero = true;
  c->vorps(minus, x, c.u32(kSign));
  c->vpminud(minus, minus, c.u32(std::bit_cast<uint32_t>(-table.end)));  // lower bits are nearer to 0
  piecewise_polynomial(c, y, minus, pieces);
  c->vminps(minus, minus, x);  // keeps NaN of x
  c->vmaxps(c.out(), x, c.u32(kSign));
  if (scale != 0.5f) c->vmulps(c.out(), c.out(), c.f32(2 * scale));
  c->vfmadd231ps(c.out(), minus, y);
}

void odd_gate(VectorCode& c, const OddTable& table, float scale) {
  c.avx512() ? odd_gate_by_sum(c, table, scale) : odd_gate_by_lack(c, table, scale);
}

template <OddFunction::Outer kOuter, bool kGate>
class TabulatedEmitter final : public Emitter {
 public:
  explicit TabulatedEmitter(const Attributes& attributes) : function_(odd_function_of(kOuter, attributes)) {}
  Result<void> emit_code(EmitContext& context, const Emission& emission) const override {
    const Isa isa = x86_context(context).avx512() ? Isa::avx512 : Isa::avx2;
    const std::optional<OddTable> table = odd_table(function_, isa);
    if (!table) return error(Code::internal, "no table within bounds for ", emission.op);
    const auto write = [&](VectorCode& c) {
      kGate ? odd_gate(c, *table, function_.scale) : odd_function(c, *table, table->end);
    };
    return emit_algorithm(write, context, emission);
  }

 private:
  OddFunction function_;
};

bool has_function(const Signature& signature) { return signature.attributes.has("of"); }
bool has_gate(const Signature& signature) { return has_function(signature) && signature.attributes.has("scale"); }

constexpr RowPair kErrorFunctionRows[] = {
    {"Erf",
     kF32Lanes,
     {.vectors = 5, .cycles = 9, .in_turn = 2},
     {.vectors = 5, .cycles = 10, .in_turn = 2},
     2.4,
     algorithm<error_function>},
    {"Tanh",
     kF32Lanes,
     {.vectors = 5, .cycles = 11, .in_turn = 2},
     {.vectors = 5, .cycles = 11, .in_turn = 2},
     1.5,
     algorithm<hyperbolic_tangent>},
    {"TabulatedErf",
     kF32Lanes,
     {.vectors = 5, .cycles = 8},
     {.vectors = 5, .cycles = 8, .in_turn = 2},
     2,
     make_emitter<TabulatedEmitter<OddFunction::Outer::erf, false>>,
     has_function},
    {"TabulatedTanh",
     kF32Lanes,
     {.vectors = 5, .cycles = 8},
     {.vectors = 5, .cycles = 8, .in_turn = 2},
     2,
     make_emitter<TabulatedEmitter<OddFunction::Outer::tanh, false>>,
     has_function},
    {"TabulatedErfGate",
     kF32Lanes,
     {.vectors = 5, .cycles = 8},
     {.vectors = 6, .cycles = 8, .in_turn = 2},
     2,
     make_emitter<TabulatedEmitter<OddFunction::Outer::erf, true>>,
     has_gate},
    {"TabulatedTanhGate",
     kF32Lanes,
     {.vectors = 5, .cycles = 8},
     {.vectors = 6, .cycles = 8, .in_turn = 2},
     2,
     make_emitter<TabulatedEmitter<OddFunction::Outer::tanh, true>>,
     has_gate},
};

}  // namespace

Result<void> add_error_function_rows(JitterTable& table) { return add_pairs(table, kErrorFunctionRows); }

}  // namespace tenon::x86
