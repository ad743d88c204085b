// Checks of values against their declared types.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/datum.hpp>
#include <tenon/tensor/type.hpp>

namespace tenon {

// Whether `datum` has the kind and element type that `type` states, as far as it states them.
TENON_API bool agrees(const Datum& datum, const Type& type);
// The same, including the stated extents; an error names the input, both types and the dim. A symbol of a dim gets the
// first value that it meets, kept in `symbols`, and must keep it. An absent value is allowed only if `type` is optional
// or unknown.
TENON_API Result<void> check_input(std::string_view name, const Type& type, const Datum& datum,
                                   std::map<std::string, int64_t>& symbols);
// The same for a tensor stored elsewhere.
TENON_API Result<void> check_input(std::string_view name, const Type& type, ElementType element,
                                   std::span<const int64_t> dims, std::map<std::string, int64_t>& symbols);
// Checks that an output has the kind, element type, rank and numeric extents of `type`. Symbols are not checked: an
// output may name its dims freely. Code::plugin names the output, both types and the dim.
TENON_API Result<void> check_output(std::string_view name, const Type& type, const Datum& datum);
TENON_API Result<void> check_output(std::string_view name, const Type& type, ElementType element,
                                    std::span<const int64_t> dims);

}  // namespace tenon
