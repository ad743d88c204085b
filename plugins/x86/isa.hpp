// The two instruction sets that code is made for, and what their registers are.
//
//   avx2     AVX2, FMA, F16C, BMI2: 16 vectors of 256 bits; lanes of booleans live in vectors
//   avx512   AVX-512 F, BW, DQ, VL as well: 32 vectors of 512 bits, masks k1 to k7; perhaps VBMI
#pragma once
#include <optional>
#include <string_view>

#include <tenon/codegen/register.hpp>
#include <tenon/support/result.hpp>
#include <tenon/target/description.hpp>

namespace tenon::x86 {

enum class Isa : uint8_t { avx2, avx512 };
std::string_view isa_name(Isa isa);  // "avx2", "avx512"

// What the target's features say: avx512 when it has avx512f, else avx2.
Isa isa_of(const TargetDescription& target);

// AVX-512 VBMI, which some rows of the emitter table want: permutations of bytes.
inline constexpr std::string_view kVbmi = "avx512vbmi";
inline bool has_vbmi(const TargetDescription& target) { return target.has_feature(kVbmi); }

// Vector units of the target that work side by side; rows of the emitter table state the cycles of one.
double vector_units(const TargetDescription& target);

// Whether this machine and its operating system run code of `isa`.
bool machine_has(Isa isa);
bool machine_has_vbmi();

constexpr int vector_bits(Isa isa) { return isa == Isa::avx512 ? 512 : 256; }

// How many lanes a kernel has whose widest lane type is `widest`. A boolean counts as 32 bits: lanes never exceed 16
// (avx512) or 8 (avx2).
constexpr int lanes_of(Isa isa, ElementType widest) { return vector_bits(isa) / (widest.bits() == 64 ? 64 : 32); }

// What kernels may use. Kept for the emitters of structure.hpp and for X86Context: rsp (the frame), rdi (the params),
// rax (a scratch register that any emitter may destroy) and k0 (likewise; it cannot be a predicate).
codegen::RegisterPool register_pool(Isa isa);
// The same, with no more registers in use than the description states for a class ("vector", "mask", "general"; those
// that are kept count, too). An error when it states more than the instruction set has, another width, or too few.
Result<codegen::RegisterPool> register_pool(const TargetDescription& target);

}  // namespace tenon::x86
