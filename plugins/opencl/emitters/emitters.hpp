// The rows of the OpenCL jitter table: operators of the snippet dialect (sdk/tenon/snippet/body/body.hpp) as patterns
// of OpenCL C, one file for each family, and the instructions of linear kernels that are not operators.
//
// Rows require features of described() (device_info.hpp). A function of f32 for which OpenCL 1.2 does not guarantee an
// error of 4 ulp is computed in doubles where the device has them. `max_ulp` is what OpenCL guarantees, plus the error
// of what is added here.
#pragma once
#include <tenon/codegen/jitter_table.hpp>

namespace tenon::opencl {

// All rows. Made once.
Result<const codegen::JitterTable*> jitter_table();

Result<void> add_arithmetic_rows(codegen::JitterTable& table);
Result<void> add_logic_rows(codegen::JitterTable& table);
Result<void> add_function_rows(codegen::JitterTable& table);
Result<void> add_convert_rows(codegen::JitterTable& table);
Result<void> add_structure_rows(codegen::JitterTable& table);  // parameters, loops, copies
Result<void> add_fold_rows(codegen::JitterTable& table);
Result<void> add_memory_rows(codegen::JitterTable& table);  // loads and stores

// The pattern of an operator that reduces lanes: Add, Mul, Max, Min.
std::string_view fold_pattern(std::string_view op, ElementType element);

}  // namespace tenon::opencl
