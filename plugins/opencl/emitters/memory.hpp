// Conversion between elements in memory and lanes of registers, and access to vectors at any alignment.
#pragma once
#include <string>
#include <string_view>

#include <tenon/support/result.hpp>

#include "opencl/source_context.hpp"

namespace tenon::opencl {

// Converts packed elements, for example "ushort16" of f16, to lanes, "float16", and back.
Result<std::string> widened(SourceContext& context, const std::string& packed, ElementType element, int lanes);
Result<std::string> narrowed(SourceContext& context, const std::string& value, ElementType element, int lanes);

// A vector in global memory that begins at the element at address `at`: an expression for its value, and a statement
// that stores `value` there. vload() would do the same, but some compilers (PoCL's) split it into pieces.
std::string near_load(ElementType element, int lanes, std::string_view at);
std::string near_store(ElementType element, int lanes, std::string_view at, std::string_view value);
// Defines the helpers of near_load() and near_store(), and TENON_NEAR(element, vector), a vector type with the
// alignment of an element; belongs at the head of each source. `of_groups`: several items share a group, on devices
// that split unaligned vector accesses into elements; then the alignment of each access is tested.
std::string near_head(bool of_groups);

}  // namespace tenon::opencl
