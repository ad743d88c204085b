// Instruction formats, by Intel's manual, volume 2, 2.1 (ModR/M and SIB), 2.3 (VEX), 2.7 (EVEX):
//
//   C5 p  opcode | C4 p p  opcode | 62 p p p  opcode     then ModR/M, SIB, displacement, immediate
//
// The latter two have the opcode's map in the low bits of their second byte.
#include "x86/assembly/vector_instruction.hpp"

namespace tenon::x86 {
namespace {

constexpr uint8_t kVex2 = 0xc5, kVex3 = 0xc4, kEvex = 0x62;
constexpr int kMap0F = 1, kMap0F3A = 3;
constexpr uint8_t kZeroUpper = 0x77;  // map 0F; has no operands

size_t prefix_bytes(uint8_t first) { return first == kVex2 ? 2 : first == kVex3 ? 3 : first == kEvex ? 4 : 0; }

int map_of(std::span<const uint8_t> code) {
  constexpr uint8_t kVexMaps = 0x1f, kEvexMaps = 0x07;
  if (code[0] == kVex2) return kMap0F;
  return code[1] & (code[0] == kVex3 ? kVexMaps : kEvexMaps);
}

// Shuffles and shifts by a constant, comparisons, insertions and extractions.
bool has_immediate(int map, uint8_t opcode) {
  if (map != kMap0F) return map == kMap0F3A;
  return (opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 || (opcode >= 0xc4 && opcode <= 0xc6);
}

}  // namespace

std::optional<VectorInstruction> first_vector_instruction(std::span<const uint8_t> code) {
  constexpr size_t kOpcode = 1, kModRm = 1, kSib = 1;
  constexpr int kRegister = 3, kWithSib = 4, kNoBase = 5;
  const size_t prefix = code.empty() ? 0 : prefix_bytes(code[0]);
  if (prefix == 0 || code.size() < prefix + kOpcode + kModRm) return std::nullopt;
  const int map = map_of(code);
  const uint8_t opcode = code[prefix], mod_rm = code[prefix + kOpcode];
  if (map == kMap0F && opcode == kZeroUpper) return std::nullopt;
  const int mod = mod_rm >> 6, rm = mod_rm & 7;
  VectorInstruction made{.bytes = prefix + kOpcode + kModRm};
  const bool sib = mod != kRegister && rm == kWithSib;
  if (sib && code.size() == made.bytes) return std::nullopt;
  const int base = sib ? code[made.bytes] & 7 : rm;
  if (sib) made.bytes += kSib;
  if (mod == 0 && rm == kNoBase) made.distance_at = made.bytes;
  if (mod == 2 || (mod == 0 && base == kNoBase)) made.bytes += 4;
  if (mod == 1) made.bytes += 1;
  if (has_immediate(map, opcode)) made.bytes += 1;
  return made.bytes <= code.size() ? std::optional(made) : std::nullopt;
}

}  // namespace tenon::x86
