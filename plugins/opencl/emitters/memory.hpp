// Elements of memory as lanes of registers, and vectors that lie at any element.
#pragma once
#include <string>
#include <string_view>

#include <tenon/support/result.hpp>

#include "opencl/source_context.hpp"

namespace tenon::opencl {

// Elements side by side, "ushort16" of f16, as lanes, "float16", and back.
Result<std::string> widened(SourceContext& context, const std::string& packed, ElementType element, int lanes);
Result<std::string> narrowed(SourceContext& context, const std::string& value, ElementType element, int lanes);

// A vector in global memory at the address `at` of one of its elements: an lvalue. vload() would say the same, but some
// compilers (PoCL's) take it apart into pieces.
std::string near_vector(std::string_view type, std::string_view at, bool writes);
// Defines what it is made of: at the head of each source.
inline constexpr std::string_view kNearVector = "#define TENON_NEAR(type) struct __attribute__((packed)) { type v; }\n";

}  // namespace tenon::opencl
