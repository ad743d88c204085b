// One operator against its definition: shared by inference and the verifier.
#pragma once
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
// Counts of operands, results and regions, operands that must be there, attributes. Shape rules rely on it.
Result<void> check(const Op& op, const OpDef& def);
// Each type variable stands for one allowed type.
Result<void> check_type_vars(const Op& op, const OpDef& def);

}  // namespace tenon::signature
