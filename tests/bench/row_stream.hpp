// One row of the x86 jitter table as a loop over arrays of f32, without the plugin's compiler.
#pragma once
#include <memory>

#include <tenon/codegen/jitter_table.hpp>

#include "x86/assembly/context.hpp"
#include "x86/code/jit_memory.hpp"

namespace tenon::x86 {

// Code with parameters (operand, result: arrays of `floats` f32, a multiple of the lanes) that applies `row` (null: a
// copy) to each vector; all its operands are the same register.
CodeObject row_stream(const codegen::JitterRow* row, Isa isa, const Attributes& attributes, int floats);

// Copies the code to executable memory.
std::shared_ptr<const JitCode> runnable(CodeObject object);

}  // namespace tenon::x86
