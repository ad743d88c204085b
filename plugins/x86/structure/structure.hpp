// Rows of the instructions of a linear kernel that are no operators: parameters, loads and stores, loops and tails,
// folds over lanes, spills (sdk/tenon/snippet/linear/linear.hpp says what each does), and those that the
// plugin's passes make (passes.hpp).
//
// Loads and stores touch the bytes of their elements and no others, however many lanes are wanted; stores are exact:
// f16 and bf16 to the nearest even (NaN stays NaN, quiet), narrow integers by their low bits, booleans as 0 or 1.
#pragma once
#include <tenon/codegen/jitter_table.hpp>

namespace tenon::x86 {

Result<void> add_structure_rows(codegen::JitterTable& table);

}  // namespace tenon::x86
