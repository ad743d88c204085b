// The two instruction sets that code is generated for, and their registers.
//
//   avx2     AVX2, FMA, F16C, BMI2: 16 vectors of 256 bits; booleans are in vector registers
//   avx512   also AVX-512 F, BW, DQ, VL: 32 vectors of 512 bits, masks k1 to k7; optionally VBMI
#pragma once
#include <optional>
#include <string_view>

#include <tenon/codegen/register.hpp>
#include <tenon/support/result.hpp>
#include <tenon/target/description.hpp>

namespace tenon::x86 {

enum class Isa : uint8_t { avx2, avx512 };
std::string_view isa_name(Isa isa);  // "avx2", "avx512"

// From the target's features: avx512 when they include avx512f, else avx2.
Isa isa_of(const TargetDescription& target);

// AVX-512 VBMI: byte permutations. Some rows of the emitter table require it.
inline constexpr std::string_view kVbmi = "avx512vbmi";
inline bool has_vbmi(const TargetDescription& target) { return target.has_feature(kVbmi); }

// Parallel vector units of the target; rows of the emitter table state the cycles of one.
double vector_units(const TargetDescription& target);

// Whether this machine and its operating system run code of `isa`.
bool machine_has(Isa isa);
bool machine_has_vbmi();

constexpr int vector_bits(Isa isa) { return isa == Isa::avx512 ? 512 : 256; }

// The number of lanes of a kernel whose widest lane type is `widest`. A boolean counts as 32 bits, so there are at most
// 16 lanes (avx512) or 8 (avx2).
constexpr int lanes_of(Isa isa, ElementType widest) { return vector_bits(isa) / (widest.bits() == 64 ? 64 : 32); }

// The registers that kernels may use. Reserved for the emitters of structure.hpp and for X86Context: rsp (the frame),
// rdi (the params), rax (scratch for any emitter) and k0 (likewise; it cannot be a write mask).
codegen::RegisterPool register_pool(Isa isa);
// The same, limited to the number of registers that the description states for a class ("vector", "mask", "general";
// reserved ones count, too). An error when it states more than the instruction set has, another width, or too few.
Result<codegen::RegisterPool> register_pool(const TargetDescription& target);

}  // namespace tenon::x86
