#include "x86/emitters/piecewise.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::x86 {
namespace {

using Held = VectorCode::Held;

void look_up(VectorCode& c, const Vec& out, const Vec& index, std::span<const float> entries,
             Held held = Held::anything) {
  std::array<uint32_t, 32> bits{};
  std::ranges::transform(entries, bits.begin(), [](float value) { return std::bit_cast<uint32_t>(value); });
  c.look_up(out, index, std::span(bits).first(entries.size()), held);
}

void find_grown(VectorCode& c, const Vec& index, const Vec& distance, const Vec& x, const PiecesView& pieces) {
  c->vaddps(index, x, c.f32(pieces.bias));
  c->vpsrld(index, index, pieces.shift);
  look_up(c, distance, index, pieces.centers);
  c->vsubps(distance, x, distance);
}

// `constant`, whose sum with a multiple of 1 or of the step is `index`, becomes that multiple, with the sign of x.
void find_center(VectorCode& c, const Vec& constant, const Vec& index, const PiecesView& pieces) {
  pieces.below_zero ? c->vsubps(constant, constant, index) : c->vsubps(constant, index, constant);
}

// |x| + constant has the index in its low bits; the last place of the constant is `step`, a power of two.
void find_by_sum(VectorCode& c, const Vec& index, const Vec& distance, const Vec& x, const PiecesView& pieces) {
  const VectorCode::Scope scope(c);
  const Vec constant = c.temp();
  c.set(constant, 0x1.8p23f * pieces.step);
  pieces.below_zero ? c->vsubps(index, constant, x) : c->vaddps(index, x, constant);
  find_center(c, constant, index, pieces);
  c->vsubps(distance, x, constant);
}

// x / step + constant has the index in its low bits.
void find_even(VectorCode& c, const Vec& index, const Vec& distance, const Vec& x, const PiecesView& pieces) {
  if (int exponent = 0; std::frexp(pieces.step, &exponent) == 0.5f) return find_by_sum(c, index, distance, x, pieces);
  const VectorCode::Scope scope(c);
  const Vec constant = c.temp();
  c.set(constant, 0x1.8p23f);
  c.move(index, x);
  c->vfmadd132ps(index, constant, c.f32(1 / pieces.step));
  c->vsubps(constant, index, constant);
  c.move(distance, x);
  c->vfnmadd231ps(distance, constant, c.f32(pieces.step));
}

// |x| per_x + constant has the index in its low bits.
void find_scaled(VectorCode& c, const Vec& index, const Vec& distance, const Vec& x, const PiecesView& pieces) {
  const VectorCode::Scope scope(c);
  const Vec constant = c.temp();
  c.set(constant, 0x1.8p23f);
  c.move(index, x);
  pieces.below_zero ? c->vfnmadd132ps(index, constant, c.f32(pieces.per_x))
                    : c->vfmadd132ps(index, constant, c.f32(pieces.per_x));
  find_center(c, constant, index, pieces);
  c.move(distance, x);
  c->vfmsub132ps(distance, constant, c.f32(pieces.per_x));
}

void find_piece(VectorCode& c, const Vec& index, const Vec& distance, const Vec& x, const PiecesView& pieces) {
  if (pieces.step != 0) return find_even(c, index, distance, x, pieces);
  if (pieces.per_x != 0) return find_scaled(c, index, distance, x, pieces);
  find_grown(c, index, distance, x, pieces);
}

}  // namespace

void piecewise_polynomial(VectorCode& c, const Vec& out, const Vec& x, const PiecesView& pieces) {
  const VectorCode::Scope scope(c);
  const Vec index = c.temp(), distance = c.temp();
  find_piece(c, index, distance, x, pieces);
  const Vec term = c.temp();
  const auto terms_of = [&](size_t k) { return pieces.terms.subspan(k * pieces.intervals, pieces.intervals); };
  size_t left = pieces.terms.size() / pieces.intervals;
  look_up(c, out, index, terms_of(--left));
  for (Held held = Held::anything; left-- > 0; held = Held::of_index) {
    look_up(c, term, index, terms_of(left), held);
    c->vfmadd213ps(out, distance, term);
  }
}

}  // namespace tenon::x86
