// The library of functions that patterns call: templates over a lane type, which are written into the prelude of the
// kernels that need them.
#pragma once
#include <string_view>

#include <tenon/codegen/register.hpp>

namespace tenon::opencl {

// The text of function `name` for lanes of `element`, with the placeholders of patterns; its own name in it is "@".
// Empty when there is none.
std::string_view function_text(std::string_view name, ElementType element);

}  // namespace tenon::opencl
