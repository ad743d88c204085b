// 64-bit integer inputs that are loaded into 32-bit lanes.
#pragma once
#include <tenon/snippet/body/body.hpp>

namespace tenon::x86 {

// The same results, bit for bit, with as many lanes as 32-bit values have. This applies where the only 64-bit values
// are signed integers of inputs, such as masks and tokens of exported models, and where each of these is read only in
// ways that one kind of load can serve (structure/narrow_loads.cpp):
//
//   Convert x, to f32; comparisons with whole numbers below 2^24   x as f32, rounded as that Convert rounds
//   comparisons with numbers between -2^31 and 2^31 - 1            x as i32, the nearest one
//   Convert x, to i32 or u32                                       x as u32, its low bits
//
// Otherwise the body is unchanged. The values of such inputs have another lane type than the elements of their ports.
snippet::Body with_narrow_ports(const snippet::Body& body);

}  // namespace tenon::x86
