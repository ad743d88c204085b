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

// A vector in global memory at the address `at` of one of its elements: its value, and a statement that writes `value`
// there. vload() would say the same, but some compilers (PoCL's) take it apart into pieces.
std::string near_load(ElementType element, int lanes, std::string_view at);
std::string near_store(ElementType element, int lanes, std::string_view at, std::string_view value);
// Defines what they are made of, and TENON_NEAR(element, vector), a type of vectors that lie at any element: at the
// head of each source. An item that shares its group with others runs on what takes a vector that does not lie at a
// multiple of its size apart, element by element: it asks how each one lies.
std::string near_head(bool of_groups);

}  // namespace tenon::opencl
