// Runs one row of the x86 jitter table over arrays, as a kernel that is a loop over full vectors around this one
// instruction. Checks the registers that the instruction must not change.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include <support_lib/lane_samples.hpp>

#include "table_rows.hpp"

namespace tenon::x86::test {

using namespace tenon::test;

// `result_in`: the result is in the register of this operand; -1: in a free one. `shared`: all operands are in the same
// register.
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
  int missing_scratch = 0;  // how many of the scratch vectors that the row requests it does not get
  // Receives the number of executed instructions, of which a constant number are not the row's. One thread at a time.
  size_t* instructions = nullptr;
};

// The columns have the same length, a multiple of 16. The test fails with a description if a register changes that has
// neither an operand nor the result and is no scratch register.
Result<Column> run_row(const RowRun& run, std::span<const Column> operands, ElementType result);

std::string describe(const RowRun& run);

}  // namespace tenon::x86::test
