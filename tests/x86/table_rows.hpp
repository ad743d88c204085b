// Rows of the x86 jitter table, restricted to what this machine supports.
#pragma once
#include <vector>

#include <support_lib/lane_oracles.hpp>
#include <tenon/codegen/jitter_table.hpp>

#include "x86/assembly/context.hpp"

namespace tenon::x86::test {

// The table of all elementwise rows.
const codegen::JitterTable& elementwise_table();
// The instruction sets of this machine.
std::vector<Isa> machine_isas();
inline Isa isa_of(const codegen::JitterRow& row) { return row.without.empty() ? Isa::avx512 : Isa::avx2; }
// The row for a function on an instruction set; null if there is none.
const codegen::JitterRow* math_row(const tenon::test::MathCase& math, Isa isa);

}  // namespace tenon::x86::test
