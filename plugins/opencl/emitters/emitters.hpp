// The rows of the OpenCL jitter table: operators of the snippet dialect (sdk/tenon/snippet/body/body.hpp) as patterns
// of OpenCL C, one file a family, and instructions of linear kernels that are no operators.
//
// Features that rows ask for are those of described() (device_info.hpp). A function of f32 for which OpenCL 1.2 grants
// no 4 units in the last place is computed in doubles where the device has them; `max_ulp` is what OpenCL grants, plus
// what is added to it here.
#pragma once
#include <tenon/codegen/jitter_table.hpp>

namespace tenon::opencl {

// All of them. Made once.
Result<const codegen::JitterTable*> jitter_table();

Result<void> add_arithmetic_rows(codegen::JitterTable& table);
Result<void> add_logic_rows(codegen::JitterTable& table);
Result<void> add_function_rows(codegen::JitterTable& table);
Result<void> add_convert_rows(codegen::JitterTable& table);
Result<void> add_structure_rows(codegen::JitterTable& table);  // parameters, loops, copies
Result<void> add_fold_rows(codegen::JitterTable& table);
Result<void> add_memory_rows(codegen::JitterTable& table);  // loads and stores

// The pattern of an operator that folds lanes: Add, Mul, Max, Min.
std::string_view fold_pattern(std::string_view op, ElementType element);

}  // namespace tenon::opencl
