// Runs one row of the x86 jitter table over arrays, in machine code of its own: a loop of full vectors around the one
// instruction. Checks what the instruction must not change.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include <support_lib/lane_samples.hpp>

#include "table_rows.hpp"

namespace tenon::x86::test {

using namespace tenon::test;

// The register of the result: the first free one (-1), or operand i's. `shared`: all operands are in the same register.
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
  // Counts the instructions that ran, a constant number of which are not the row's. One thread at a time.
  size_t* instructions = nullptr;
};

// The columns have the same length, a multiple of 16. Fails the test with a description when a register changes that is
// neither the result's nor a scratch register.
Result<Column> run_row(const RowRun& run, std::span<const Column> operands, ElementType result);

std::string describe(const RowRun& run);

}  // namespace tenon::x86::test
