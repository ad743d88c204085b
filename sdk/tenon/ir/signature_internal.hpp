// Checks one operator against its definition; shared by inference and the verifier.
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
// Whether kind and element type are known, inner types included; shapes may be open.
bool fully_known(const Type& type);
// Whether kind and element type agree, regardless of shapes. An unknown type agrees with everything.
bool same_kind(const Type& a, const Type& b);
// What the type variables alone determine about the results: kinds and element types, with open shapes. Nothing when
// they do not determine all. A result without a variable that an operand binds keeps its declared type.
std::optional<std::vector<Type>> open_result_types(const Op& op, const OpDef& def);
// Counts of operands, results and regions, required operands, attributes. Shape rules rely on this.
Result<void> check(const Op& op, const OpDef& def);
// Each type variable must stand for one allowed type.
Result<void> check_type_vars(const Op& op, const OpDef& def);

}  // namespace tenon::signature
