#include "x86/isa.hpp"

#include <numeric>

#include "x86/xbyak.hpp"

namespace tenon::x86 {

std::string_view isa_name(Isa isa) { return isa == Isa::avx512 ? "avx512" : "avx2"; }

Isa isa_of(const TargetDescription& target) { return target.has_feature("avx512f") ? Isa::avx512 : Isa::avx2; }

double vector_units(const TargetDescription& target) {
  for (const Engine& engine : target.engines)
    if (engine.lanes > 0 && engine.macs_per_cycle > engine.lanes)
      return static_cast<double>(engine.macs_per_cycle) / static_cast<double>(engine.lanes);
  return 1;
}

namespace {

using Xbyak::util::Cpu;

const Cpu& cpu_of_machine() {
  static const Cpu cpu;  // also asks the operating system, through XCR0
  return cpu;
}

}  // namespace

bool machine_has(Isa isa) {
  const Cpu& cpu = cpu_of_machine();
  const bool avx2 = cpu.has(Cpu::tAVX2 | Cpu::tFMA | Cpu::tF16C | Cpu::tBMI2);
  if (isa == Isa::avx2) return avx2;
  return avx2 && cpu.has(Cpu::tAVX512F | Cpu::tAVX512BW | Cpu::tAVX512DQ | Cpu::tAVX512VL);
}

bool machine_has_vbmi() { return machine_has(Isa::avx512) && cpu_of_machine().has(Cpu::tAVX512_VBMI); }

namespace {

struct RegisterFacts {
  size_t count;
  uint64_t bits;
};
RegisterFacts facts_of(Isa isa, codegen::RegisterFile file) {
  const bool wide = isa == Isa::avx512;
  switch (file) {
    case codegen::RegisterFile::vector:
      return {wide ? size_t{32} : size_t{16}, static_cast<uint64_t>(vector_bits(isa))};
    case codegen::RegisterFile::mask: return {wide ? size_t{8} : size_t{0}, 64};
    case codegen::RegisterFile::general: break;
  }
  return {16, 64};
}

}  // namespace

codegen::RegisterPool register_pool(Isa isa) {
  codegen::RegisterPool pool;
  auto& vectors = pool.registers[static_cast<size_t>(codegen::RegisterFile::vector)];
  vectors.resize(facts_of(isa, codegen::RegisterFile::vector).count);
  std::iota(vectors.begin(), vectors.end(), 0);
  if (isa == Isa::avx512)
    pool.registers[static_cast<size_t>(codegen::RegisterFile::mask)] = {1, 2, 3, 4, 5, 6, 7};
  else
    pool.lane_mask_file = codegen::RegisterFile::vector;
  using Xbyak::Operand;
  // Caller-saved registers first; each of the others costs a push and a pop.
  pool.registers[static_cast<size_t>(codegen::RegisterFile::general)] = {
      Operand::RCX, Operand::RDX, Operand::RSI, Operand::R8,  Operand::R9,  Operand::R10, Operand::R11,
      Operand::RBX, Operand::RBP, Operand::R12, Operand::R13, Operand::R14, Operand::R15};
  return pool;
}

Result<codegen::RegisterPool> register_pool(const TargetDescription& target) {
  using codegen::RegisterFile;
  const Isa isa = isa_of(target);
  codegen::RegisterPool pool = register_pool(isa);
  for (const RegisterFile file : {RegisterFile::vector, RegisterFile::mask, RegisterFile::general}) {
    const RegisterClass* stated = target.register_class(codegen::register_file_name(file));
    if (!stated) continue;
    auto& numbers = pool.registers[static_cast<size_t>(file)];
    const RegisterFacts facts = facts_of(isa, file);
    const auto refused = [&](auto... why) {
      return error(Code::invalid_argument, "registers '", stated->name, "' of target '", target.name, "': ", why...);
    };
    if (stated->count > facts.count)
      return refused(stated->count, " are stated, ", isa_name(isa), " has ", facts.count);
    if (stated->width_bits != facts.bits)
      return refused(stated->width_bits, " bits are stated, those of ", isa_name(isa), " have ", facts.bits);
    const size_t kept = facts.count - numbers.size();
    if (facts.count > 0 && stated->count <= kept)
      return refused(stated->count, " are stated, ", kept, " of which kernels keep for themselves");
    numbers.resize(stated->count - kept);
  }
  return pool;
}

}  // namespace tenon::x86
