// Compares the compiled form of programs with the interpreter.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <tenon/program/exec/bound_program.hpp>
#include <tenon/program/exec/interpreter.hpp>

#include "program/kernels.hpp"

namespace tenon::program::testing {

// Binds, runs twice, and compares `out` with the interpreter's result, starting from -1; returns the code. `buffers` by
// name, with their extents.
inline std::string code_as_interpreted(const std::string& text, const KernelTable& kernels,
                                       const std::vector<std::pair<std::string, std::vector<int64_t>>>& buffers,
                                       const BindOptions& options = {}) {
  const auto program = parse_program(text, kernels);
  EXPECT_TRUE(program.ok()) << program.error().to_string() << "\n" << text;
  if (!program.ok()) return {};
  Data compiled, interpreted;
  for (Data* data : {&compiled, &interpreted})
    for (const auto& [name, extents] : buffers) data->add(name, extents);
  auto bound = BoundProgram::bind(*program, compiled.arguments(), options);
  EXPECT_TRUE(bound.ok()) << bound.error().to_string() << "\n" << text;
  if (!bound.ok()) return {};
  std::ranges::fill(interpreted["out"], -1);
  const auto want = interpret(*program, interpreted.arguments());
  EXPECT_TRUE(want.ok()) << want.error().to_string() << "\n" << text;
  for (int run = 0; run < 2; ++run) {
    std::ranges::fill(compiled["out"], -1);
    EXPECT_TRUE(bound->run(compiled.arguments()).ok());
    EXPECT_EQ(compiled["out"], interpreted["out"]) << "run " << run << "\n" << text << "\n" << bound->disassembly();
  }
  return bound->disassembly();
}

}  // namespace tenon::program::testing
