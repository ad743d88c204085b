// Disassembly of generated code, with the operator and the instruction of the linear kernel that each part comes from.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "x86/code/code_object.hpp"

namespace tenon::x86 {

// One machine instruction.
struct ListedInstruction {
  size_t offset = 0, bytes = 0;
  std::string text;                             // Intel syntax; "(bad)" for bytes that are no instruction
  std::optional<CodeMark> mark = std::nullopt;  // where the code of a new mark begins; borrowed from the object
};
std::vector<ListedInstruction> disassemble(const CodeObject& object);

//   ; kernel softmax, avx512: 512 bytes of code, 64 of constants
//     0x0010  vmovups zmm0, zmmword ptr [rcx+rdx*4]         ; Softmax attn/softmax_3: %4:f32 = Load f32 [%0 + %3]
//     0x0017  ...
//     0x0200  .constants 3f800000 ...
std::string listing(const CodeObject& object);

}  // namespace tenon::x86
