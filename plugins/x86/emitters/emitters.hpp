// The rows of the x86 jitter table for elementwise operators of the snippet dialect (sdk/tenon/snippet/body/body.hpp),
// one file for each family. Each operator has a row for AVX2 with FMA and F16C and one for AVX-512 (F, BW, DQ, VL). A
// row states its largest error (JitterRow::max_ulp); docs/snippets.md lists these. Special values (infinities, NaN, -0,
// denormals) give what the dialect says, unless the file states otherwise.
#pragma once
#include <tenon/codegen/jitter_table.hpp>

namespace tenon::x86 {

// The rows of all families below.
Result<void> add_elementwise_rows(codegen::JitterTable& table);

Result<void> add_arithmetic_rows(codegen::JitterTable& table);
Result<void> add_compare_rows(codegen::JitterTable& table);
Result<void> add_convert_float_rows(codegen::JitterTable& table);
Result<void> add_convert_integer_rows(codegen::JitterTable& table);
Result<void> add_bytes_rows(codegen::JitterTable& table);
Result<void> add_byte_table_rows(codegen::JitterTable& table);
Result<void> add_narrow_rows(codegen::JitterTable& table);
Result<void> add_divisor_rows(codegen::JitterTable& table);
Result<void> add_integer_division_rows(codegen::JitterTable& table);
Result<void> add_integer_power_rows(codegen::JitterTable& table);
Result<void> add_float_remainder_rows(codegen::JitterTable& table);
Result<void> add_trigonometric_rows(codegen::JitterTable& table);
Result<void> add_power_rows(codegen::JitterTable& table);
Result<void> add_exponential_rows(codegen::JitterTable& table);
Result<void> add_logarithm_rows(codegen::JitterTable& table);
Result<void> add_hyperbolic_rows(codegen::JitterTable& table);
Result<void> add_gate_rows(codegen::JitterTable& table);
Result<void> add_gelu_rows(codegen::JitterTable& table);
Result<void> add_error_function_rows(codegen::JitterTable& table);
Result<void> add_wide_function_rows(codegen::JitterTable& table);
Result<void> add_wide_power_rows(codegen::JitterTable& table);

}  // namespace tenon::x86
