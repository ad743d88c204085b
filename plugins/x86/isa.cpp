#include "x86/isa.hpp"

#include "x86/xbyak.hpp"

namespace tenon::x86 {

std::string_view isa_name(Isa isa) { return isa == Isa::avx512 ? "avx512" : "avx2"; }

Isa isa_of(const TargetDescription& target) { return target.has_feature("avx512f") ? Isa::avx512 : Isa::avx2; }

bool machine_has(Isa isa) {
  using Xbyak::util::Cpu;
  static const Cpu cpu;  // asks the operating system as well: XCR0
  const bool avx2 = cpu.has(Cpu::tAVX2 | Cpu::tFMA | Cpu::tF16C | Cpu::tBMI2);
  if (isa == Isa::avx2) return avx2;
  return avx2 && cpu.has(Cpu::tAVX512F | Cpu::tAVX512BW | Cpu::tAVX512DQ | Cpu::tAVX512VL);
}

codegen::RegisterPool register_pool(Isa isa) {
  codegen::RegisterPool pool;
  auto& vectors = pool.registers[static_cast<size_t>(codegen::RegisterFile::vector)];
  for (int i = 0; i < (isa == Isa::avx512 ? 32 : 16); ++i) vectors.push_back(i);
  if (isa == Isa::avx512)
    pool.registers[static_cast<size_t>(codegen::RegisterFile::mask)] = {1, 2, 3, 4, 5, 6, 7};
  else
    pool.lane_mask_file = codegen::RegisterFile::vector;
  using Xbyak::Operand;
  // Those that a callee may destroy first; the others cost a push and a pop.
  pool.registers[static_cast<size_t>(codegen::RegisterFile::general)] = {
      Operand::RCX, Operand::RDX, Operand::RSI, Operand::R8,  Operand::R9,  Operand::R10, Operand::R11,
      Operand::RBX, Operand::RBP, Operand::R12, Operand::R13, Operand::R14, Operand::R15};
  return pool;
}

}  // namespace tenon::x86
