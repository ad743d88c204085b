// Values against the types that they are declared with.
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

// Does `datum` have the kind and element type that `type` states, where it states them?
TENON_API bool agrees(const Datum& datum, const Type& type);
// The same, with the extents that it states; else an error that names the input, both types and the dim. Symbols of
// dims take the first value that they meet in `symbols` and must keep it. Nothing is given where `type` is optional or
// not known alone.
TENON_API Result<void> check_input(std::string_view name, const Type& type, const Datum& datum,
                                   std::map<std::string, int64_t>& symbols);
// The same of a tensor that lies elsewhere.
TENON_API Result<void> check_input(std::string_view name, const Type& type, ElementType element,
                                   std::span<const int64_t> dims, std::map<std::string, int64_t>& symbols);
// What was made for an output: kind, element type, rank and the extents that are numbers are those of `type`. What
// symbols are is not asked: an output may name its dims as it likes. Code::plugin names the output, both types and the
// dim.
TENON_API Result<void> check_output(std::string_view name, const Type& type, const Datum& datum);
TENON_API Result<void> check_output(std::string_view name, const Type& type, ElementType element,
                                    std::span<const int64_t> dims);

}  // namespace tenon
