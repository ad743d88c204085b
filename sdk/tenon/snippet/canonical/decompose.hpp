// Operators of the graph in terms of the dialect's (body.hpp, docs/snippets.md): one table, one row an operator.
//
//   {"LeakyRelu", broadcast_space, [](Rebuild& r) -> Result<ValueId> {
//      const ValueId x = r.in(0);
//      const ValueId below = r.node("Mul", {x, r.scalar_like(x, r.real("alpha", 0.01f))});
//      return r.node("Where", {r.compare("GreaterOrEqual", x, r.scalar_like(x, 0)), x, below});
//    }}
//
// An operator without a row has no form in the dialect. A row's functions may still refuse: attributes, types and
// shapes that they do not cover are Code::unsupported.
#pragma once
#include <string_view>
#include <vector>

#include <tenon/ir/op_def.hpp>
#include <tenon/snippet/body/body.hpp>
#include <tenon/support/export.hpp>

namespace tenon::snippet {

class Rebuild;  // rebuild_internal.hpp
class Space;    // canonical_space_internal.hpp

struct DecomposeRow {
  std::string_view op;
  // How its dims hang together. Operands that the space has no axes for are read when the graph is compiled (axes,
  // shapes), or not at all.
  Result<Space> (*space)(const Op& op) = nullptr;
  // Result 0 as a lane; of the others Rebuild::set() tells. None: the operator of the dialect has the same name, or
  // `dialect`, and the same operands.
  Result<ValueId> (*rebuild)(Rebuild& r) = nullptr;
  std::string_view dialect = {};
  // Are results already of their element type? Else f16 and bf16 are rounded, and narrow integers cut.
  bool exact = false;
  // Only shows the elements of operand 0 under another shape.
  bool view = false;
  // The operand whose value the space depends on (axes), and a value that it may have: whatever it has at a run, the
  // body has no other operators of the dialect. None: the space depends on types and attributes alone.
  size_t value_operand = kNoOperand;
  Tensor (*usual_value)(const Op& op) = nullptr;
  static constexpr size_t kNoOperand = SIZE_MAX;
};
TENON_API const DecomposeRow* find_decomposition(Name op);
// By family, for documentation and tests.
TENON_API std::vector<const DecomposeRow*> all_decompositions();

}  // namespace tenon::snippet
