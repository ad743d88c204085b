// Inside the room: the stride of a copy's source index along the dims of its destination.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <tenon/expr/expr.hpp>

namespace tenon::program {

// How far `e` moves when `index` does by one; nothing where that depends on one of `indices`.
std::optional<Expr> fixed_step(const Expr& e, const std::string& index, const std::vector<std::string>& indices);

}  // namespace tenon::program
