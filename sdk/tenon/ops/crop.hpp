// Crops: operators whose results are boxes of operand 0, elements in order.
#pragma once
#include <optional>
#include <vector>

#include <tenon/expr/expr.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/ir/infer.hpp>
#include <tenon/support/export.hpp>

namespace tenon {

// Where each result of `op` begins in operand 0, by its dims, if the operator is a crop: a Slice with steps of 1, a
// Split. Nothing: it is none, or where it begins cannot be told. `types`: of all values.
TENON_API std::optional<std::vector<std::vector<Expr>>> crop_begins(const Op& op, const TypeSource& types = {});
// The same of result `result` alone.
TENON_API std::optional<std::vector<Expr>> crop_begin(const Op& op, size_t result, const TypeSource& types = {});

}  // namespace tenon
