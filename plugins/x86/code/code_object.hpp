// CodeObject: the machine code of one kernel, before it is put where it can run. Position independent; a value, kept in
// caches and written to files.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "x86/isa.hpp"

namespace tenon::x86 {

// Code from `offset` to the next mark belongs to `instruction` of the operator `label`.
struct CodeMark {
  uint32_t offset = 0;
  std::string label, instruction;
  bool operator==(const CodeMark&) const = default;
};

// Names of kernels and operators come from models: a line break would forge a line of a text file.
inline std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = '?';
  return text;
}

struct CodeObject {
  std::string name;  // of the kernel
  Isa isa = Isa::avx2;
  std::vector<std::byte> bytes;  // entry at 0; code, then its constants, aligned to 64 bytes from the start
  size_t code_bytes = 0;         // without the constants and the gap before them
  std::vector<CodeMark> marks;   // ascending
  bool operator==(const CodeObject&) const = default;

  // As debuggers and profilers show the kernel.
  std::string symbol() const { return "tenon::" + one_line(name); }
  // Bytes of memory that this holds: the marks, a sentence for each instruction, weigh many times what the code does.
  size_t footprint() const {
    size_t total = sizeof *this + name.capacity() + bytes.capacity() + marks.capacity() * sizeof(CodeMark);
    for (const CodeMark& mark : marks) total += mark.label.capacity() + mark.instruction.capacity();
    return total;
  }
};

// Of every kernel: params as LinearKernel states them.
using KernelFunction = void (*)(const int64_t* params);

}  // namespace tenon::x86
