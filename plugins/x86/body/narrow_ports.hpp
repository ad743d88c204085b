// 64-bit integers that are loaded as 32-bit lanes.
#pragma once
#include <tenon/snippet/body/body.hpp>

namespace tenon::x86 {

// The same results, bit for bit, with as many lanes as 32-bit values have: where all that is 64 bits wide are signed
// integers of inputs, as masks and tokens of exported models are, each of which is asked for no more than its loads can
// say (structure/narrow_loads.cpp):
//
//   Convert x, to f32; comparisons with whole numbers below 2^24   x as f32, rounded as that Convert rounds
//   comparisons with numbers between -2^31 and 2^31 - 1            x as i32, the nearest one
//   Convert x, to i32 or u32                                       x as u32, its low bits
//
// Else the body as it is. The values of such inputs are lanes of another type than their ports' elements have.
snippet::Body with_narrow_ports(const snippet::Body& body);

}  // namespace tenon::x86
