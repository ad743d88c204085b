// One operator against its definition: shared by inference and the verifier.
#pragma once
#include <optional>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/support/result.hpp>

namespace tenon::signature {

template <class... Parts>
Error wrong(const Op& op, const Parts&... parts) {
  return error(Code::invalid_argument, op.describe(), ": ", parts...);
}
// "; did you mean 'x'?", or nothing.
std::string hint(std::string_view word, const std::vector<std::string>& candidates);
// Kind and element type, inside too; shapes may be open.
bool fully_known(const Type& type);
// Do both leave the same choice open: kind and element, shapes aside? What is not known yet agrees with everything.
bool same_kind(const Type& a, const Type& b);
// What the type variables alone tell of the results: kinds and element types, open shapes. Nothing when they do not
// tell all. A result without a variable that an operand binds is as it was declared.
std::optional<std::vector<Type>> open_result_types(const Op& op, const OpDef& def);
// Counts of operands, results and regions, operands that must be there, attributes. Shape rules rely on it.
Result<void> check(const Op& op, const OpDef& def);
// Each type variable stands for one allowed type.
Result<void> check_type_vars(const Op& op, const OpDef& def);

}  // namespace tenon::signature
