// Rows of the instructions of a linear kernel that are not operators: parameters, loads and stores, loops and tails,
// reductions over lanes, spills (defined in sdk/tenon/snippet/linear/linear.hpp), and of the instructions that the
// plugin's passes make (passes.hpp).
//
// Loads and stores access exactly the bytes of their elements, whatever the number of lanes. Stores are exact: f16 and
// bf16 are rounded to nearest even (NaN stays NaN, quiet), narrow integers keep their low bits, booleans are 0 or 1.
#pragma once
#include <tenon/codegen/jitter_table.hpp>

namespace tenon::x86 {

Result<void> add_structure_rows(codegen::JitterTable& table);

}  // namespace tenon::x86
