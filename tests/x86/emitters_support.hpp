// Runs one row of the x86 jitter table over arrays, in machine code of its own: a loop of full vectors around the one
// instruction. Watches what the instruction must leave alone.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include <tenon/codegen/jitter_table.hpp>

#include "x86/context.hpp"

namespace tenon::x86::test {

// Lanes of one operand or result: the bits of a lane type in the low part of each word; 0 or 1 for bool.
struct Column {
  ElementType element;
  std::vector<uint64_t> bits;
};

// Which register the result is in: the first free one (-1), or operand i's. `shared`: all operands are in one register.
struct Placement {
  int result_in = -1;
  bool shared = false;
};

struct RowRun {
  const codegen::JitterRow* row = nullptr;
  Isa isa = Isa::avx2;
  int lanes = 8;
  Placement placement = {};
  Attributes attributes = {};
  int missing_scratch = 0;  // of the vectors that the row asks for
};

// The columns are of one length, a multiple of 16. Fails the test, and says what it was, when a register changes that
// is neither the result's nor a scratch register, or when constants are asked for that emit_data did not name.
Result<Column> run_row(const RowRun& run, std::span<const Column> operands, ElementType result);

// The table of all elementwise rows.
const codegen::JitterTable& elementwise_table();
// Instruction sets of this machine.
std::vector<Isa> machine_isas();
inline Isa isa_of(const codegen::JitterRow& row) { return row.without.empty() ? Isa::avx512 : Isa::avx2; }

// Every element type that a lane may have, but bool.
inline constexpr std::array kLaneNumbers{kF32, kF64, kI32, kU32, kI64, kU64};
// Values at which operators are apt to go wrong: zeros, units, limits, halves, denormals, infinities, NaN; then seeded
// random ones, of all magnitudes, `count` in all.
std::vector<uint64_t> sample(ElementType element, size_t count, uint32_t seed);
// Columns of `operands` operands of one type: every pair of the special values of `element` in the first two, then
// random ones.
std::vector<Column> sample_columns(ElementType element, size_t operands, uint32_t seed);

// |got - exact| in units in the last place of f32 at `exact`; 0 for NaN to NaN and for infinities that agree, infinite
// where one of them is not finite and the other differs. What overflows when rounded counts as infinite.
double ulp_error(float got, double exact);

std::string describe(const RowRun& run);

}  // namespace tenon::x86::test
