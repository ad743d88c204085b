#include "x86/emitters/emitters.hpp"

namespace tenon::x86 {

Result<void> add_elementwise_rows(codegen::JitterTable& table) {
  for (const auto add : {add_arithmetic_rows,    add_compare_rows,
                         add_convert_float_rows, add_convert_integer_rows,
                         add_narrow_rows,        add_bytes_rows,
                         add_byte_table_rows,
                         add_divisor_rows,       add_integer_division_rows,
                         add_integer_power_rows, add_float_remainder_rows,
                         add_exponential_rows,   add_hyperbolic_rows,
                         add_logarithm_rows,     add_gate_rows,
                         add_gelu_rows,          add_error_function_rows,
                         add_trigonometric_rows, add_power_rows,
                         add_wide_function_rows, add_wide_power_rows})
    TENON_OK(add(table));
  return {};
}

}  // namespace tenon::x86
