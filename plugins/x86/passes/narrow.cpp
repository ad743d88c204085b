// Marks integers that are known to fit 8 or 16 bits, and loads of 64-bit integers into 32-bit lanes, for the emitters.
#include "x86/names.hpp"
#include "x86/passes/internal.hpp"

namespace tenon::x86 {
namespace {

// Whether the result fits, judged by the instruction that computes it.
bool makes_narrow(const LinearKernel& kernel, const Instruction& one) {
  constexpr int kNarrow = 16;
  if (one.op == kLoad || one.op == kBroadcastLoad) return one.memory->element.bits() <= kNarrow;
  if (one.op == kWrap) return wrapped_to(one).bits() <= kNarrow;
  if (one.op == kScalar && has_32_bits(kernel, one.out[0])) {
    const auto bits = static_cast<uint32_t>(*one.attributes.find("bits")->get_if<int64_t>());
    const int64_t value = kernel.registers[static_cast<size_t>(one.out[0])].element.is_signed_int()
                              ? static_cast<int32_t>(bits)
                              : static_cast<int64_t>(bits);
    return value >= -(int64_t{1} << (kNarrow - 1)) && value < int64_t{1} << kNarrow;
  }
  return one.op.str().starts_with("UnpackBytes");
}

}  // namespace

void mark_narrow_integers(LinearKernel& kernel) {
  std::vector<char> wide(kernel.registers.size(), 0);
  for (const Instruction& one : kernel.body)
    for (const RegisterId id : one.out)
      if (!makes_narrow(kernel, one)) wide[static_cast<size_t>(id)] = 1;
  const auto is_narrow = [&](RegisterId id) { return !wide[static_cast<size_t>(id)]; };
  const auto element = [&](RegisterId id) { return kernel.registers[static_cast<size_t>(id)].element; };
  for (Instruction& one : kernel.body) {
    const bool divides = one.op == kDiv || one.op == kMod || one.op == kFmod;
    if (one.op == kConvert && element(one.in[0]) == kU32 && element(one.out[0]).is_float() && is_narrow(one.in[0]))
      one.attributes.set("fits_i32", 1);
    if (divides && has_32_bits(kernel, one.out[0]) && is_narrow(one.in[0]) && is_narrow(one.in[1]))
      one.attributes.set("fits_24_bits", 1);
  }
}

void mark_narrow_loads(LinearKernel& kernel) {
  for (Instruction& one : kernel.body) {
    if ((one.op != kLoad && one.op != kBroadcastLoad) || one.memory->element.bits() != 64) continue;
    if (kernel.registers[static_cast<size_t>(one.out[0])].element.bits() == 32) one.attributes.set("narrow", 1);
  }
}

}  // namespace tenon::x86
