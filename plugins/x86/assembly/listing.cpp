#include "x86/assembly/listing.hpp"

#include <Zydis/Zydis.h>

#include <cstring>

#include <tenon/support/str.hpp>

namespace tenon::x86 {
namespace {

constexpr size_t kTextColumn = 10, kCommentColumn = 64, kWordsInLine = 8;

std::string hex(uint64_t value, size_t digits) {
  std::string text(digits, '0');
  for (size_t i = digits; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

void pad(std::string& line, size_t column) { line.append(line.size() < column ? column - line.size() : 1, ' '); }

std::string constants(const CodeObject& object) {
  std::string text;
  const size_t begin = (object.code_bytes + 63) / 64 * 64;
  for (size_t at = begin; at + 4 <= object.bytes.size(); at += 4) {
    if ((at - begin) % (4 * kWordsInLine) == 0)
      text += str(at == begin ? "" : "\n", "  0x", hex(at, 4), "  .constants");
    uint32_t word = 0;
    std::memcpy(&word, object.bytes.data() + at, sizeof word);
    text += str(" ", hex(word, 8));
  }
  return text.empty() ? text : text + "\n";
}

}  // namespace

std::vector<ListedInstruction> disassemble(const CodeObject& object) {
  ZydisDecoder decoder;
  ZydisFormatter formatter;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
  ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_PADDING_DISABLED);
  std::vector<ListedInstruction> lines;
  size_t mark = 0;
  for (size_t at = 0; at < object.code_bytes;) {
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ListedInstruction line{.offset = at, .bytes = 1, .text = "(bad)"};
    char text[256];
    if (ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, object.bytes.data() + at, object.code_bytes - at, &instruction,
                                            operands)) &&
        ZYAN_SUCCESS(ZydisFormatterFormatInstruction(
            &formatter, &instruction, operands, instruction.operand_count_visible, text, sizeof text, at, nullptr))) {
      line.bytes = instruction.length;
      line.text = text;
    }
    // Marks without code (a move of a register to itself) do not belong to this instruction: the last mark counts.
    for (; mark < object.marks.size() && object.marks[mark].offset <= at; ++mark) line.mark = object.marks[mark];
    at += line.bytes;
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string listing(const CodeObject& object) {
  const size_t pool = (object.code_bytes + 63) / 64 * 64;
  std::string text =
      str("; kernel ", object.name, ", ", isa_name(object.isa), ": ", object.code_bytes, " bytes of code, ",
          object.bytes.size() > pool ? object.bytes.size() - pool : 0, " of constants\n");
  for (const ListedInstruction& instruction : disassemble(object)) {
    std::string line = str("  0x", hex(instruction.offset, 4));
    pad(line, kTextColumn);
    line += instruction.text;
    if (instruction.mark) {
      pad(line, kCommentColumn);
      line += str("; ", instruction.mark->label, ": ", instruction.mark->instruction);
    }
    text += line + "\n";
  }
  return text + constants(object);
}

}  // namespace tenon::x86
