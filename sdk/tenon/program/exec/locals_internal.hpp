// Inside of the room: when the locals of a program begin to live.
#pragma once
#include <span>
#include <vector>

#include <tenon/program/ir/program.hpp>

namespace tenon::program::detail {

// The statements of the outermost block.
std::span<const Statement> outermost(const Program& program);
// For each of these, the locals that it is the first to name, in order; locals that nothing names are in none.
std::vector<std::vector<const Allocation*>> locals_by_first_use(const Program& program);

}  // namespace tenon::program::detail
