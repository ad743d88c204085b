// Inside the room: where the lifetimes of a program's locals begin.
#pragma once
#include <span>
#include <vector>

#include <tenon/program/ir/program.hpp>

namespace tenon::program::detail {

// The statements of the outermost block.
std::span<const Statement> outermost(const Program& program);
// For each of these, the locals that it is the first to name, in order; unused locals are in no list.
struct LocalsByFirstUse {
  std::vector<const Allocation*> all;
  std::vector<size_t> end;  // in `all`, by statement

  std::span<const Allocation* const> of(size_t statement) const {
    const size_t begin = statement == 0 ? 0 : end[statement - 1];
    return std::span(all).subspan(begin, end[statement] - begin);
  }
};
LocalsByFirstUse locals_by_first_use(const Program& program);

}  // namespace tenon::program::detail
