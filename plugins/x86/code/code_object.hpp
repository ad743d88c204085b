// CodeObject: the machine code of one kernel before it is placed where it can run. Position independent; a value that
// is kept in caches and written to files.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "x86/isa.hpp"

namespace tenon::x86 {

// The code from `offset` to the next mark belongs to `instruction` of the operator `label`. Borrowed from CodeMarks.
struct CodeMark {
  uint32_t offset = 0;
  std::string_view label, instruction;
  bool operator==(const CodeMark&) const = default;
};

// Marks by ascending offsets. Their many sentences are stored in one text.
class CodeMarks {
 public:
  CodeMarks() = default;
  CodeMarks(std::initializer_list<CodeMark> marks) {
    for (const CodeMark& mark : marks) add(mark);
  }
  void add(const CodeMark& mark);

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  CodeMark operator[](size_t i) const {
    const Entry& entry = entries_[i];
    return {entry.offset, text_of(entry.label), text_of(entry.instruction)};
  }
  CodeMark back() const { return (*this)[size() - 1]; }
  // The last mark at or before `offset`.
  std::optional<CodeMark> at(size_t offset) const;
  bool operator==(const CodeMarks& other) const;
  // Bytes of memory held in addition to the object itself.
  size_t footprint() const { return entries_.capacity() * sizeof(Entry) + text_.capacity(); }

 private:
  struct Piece {
    uint32_t begin, size;
  };
  struct Entry {
    uint32_t offset;
    Piece label, instruction;
  };
  std::string_view text_of(const Piece& piece) const { return std::string_view(text_).substr(piece.begin, piece.size); }
  Piece append(std::string_view piece);

  std::vector<Entry> entries_;
  std::string text_;
};

// Names of kernels and operators come from models; a line break in one would forge a line of a text file.
inline std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20) c = '?';
  return line;
}

struct CodeObject {
  std::string name;  // of the kernel
  Isa isa = Isa::avx2;
  std::vector<std::byte> bytes;  // entry point at 0; code, then its constants, 64-byte aligned from the start
  size_t code_bytes = 0;         // without constants and the gap before them
  CodeMarks marks;
  bool operator==(const CodeObject&) const = default;

  // The name that debuggers and profilers show.
  std::string symbol() const { return "tenon::" + one_line(name); }
  // Bytes of memory held; the marks are many times as large as the code.
  size_t footprint() const { return sizeof *this + name.capacity() + bytes.capacity() + marks.footprint(); }
};

// The signature of all kernels; LinearKernel describes the params.
using KernelFunction = void (*)(const int64_t* params);

}  // namespace tenon::x86
