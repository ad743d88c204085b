// Crops: operators whose results are boxes of operand 0, elements in order.
#pragma once
#include <optional>
#include <vector>

#include <tenon/expr/expr.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/ir/infer.hpp>
#include <tenon/support/export.hpp>

namespace tenon {

// The offset of each result of `op` in operand 0, per dim, if the operator is a crop: a Slice with steps of 1, or a
// Split. Nothing: it is not a crop, or the offset is not known. `types`: types of all values.
TENON_API std::optional<std::vector<std::vector<Expr>>> crop_begins(const Op& op, const TypeSource& types = {});
// The same for the single result `result`.
TENON_API std::optional<std::vector<Expr>> crop_begin(const Op& op, size_t result, const TypeSource& types = {});

}  // namespace tenon
