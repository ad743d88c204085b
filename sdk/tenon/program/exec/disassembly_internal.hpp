// Inside the room: the code of a bound program as readable text.
#pragma once
#include <string>

#include <tenon/program/exec/code_internal.hpp>

namespace tenon::program::detail {

// One instruction a line: its number, name, and operands; r8 is the register at byte 8 of the frame.
std::string disassemble(const ByteCode& code, const Program& program);

}  // namespace tenon::program::detail
