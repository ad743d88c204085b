// How statements are named in errors, statistics and pictures.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <tenon/program/ir/program.hpp>
#include <tenon/support/export.hpp>

namespace tenon::program {

// The stage of a call or copy, by default its kernel's name or "copy".
TENON_API std::string_view stage_of(const Call& call);
TENON_API std::string_view stage_of(const Copy& copy);
// "STAGE->BUFFER,BUFFER", of the buffers written.
TENON_API std::string stage_label(std::string_view stage, const std::vector<std::string>& written);
// "operand 1 (out 'y')".
TENON_API std::string operand_label(const Program& program, const Call& call, size_t operand);
TENON_API std::string_view access_name(Access access);

}  // namespace tenon::program
