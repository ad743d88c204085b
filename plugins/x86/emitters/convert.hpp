// Shared by the conversions in both directions.
#pragma once
#include <tenon/codegen/jitter_table.hpp>

#include "x86/emitters/rows.hpp"
#include "x86/emitters/vector_code.hpp"

namespace tenon::x86 {

inline bool to_unsigned(const VectorCode& c) { return c.emission().out[0].element.is_unsigned_int(); }
inline bool from_unsigned(const VectorCode& c) { return c.emission().in[0].element.is_unsigned_int(); }

// out = the lower halves of the 64-bit lanes of `in`, which is destroyed; avx2 needs no other register.
void take_low_halves(VectorCode& c, const Vec& out, const Vec& in);

inline constexpr codegen::LaneTypes kI32Only{kI32}, kU32Only{kU32};

// For rows: whether the operand and the result have these types.
template <const codegen::LaneTypes* kFrom, const codegen::LaneTypes* kTo>
bool between(const codegen::Signature& s) {
  return s.in.size() == 1 && s.out.size() == 1 && kFrom->contains(s.in[0]) && kTo->contains(s.out[0]);
}

}  // namespace tenon::x86
