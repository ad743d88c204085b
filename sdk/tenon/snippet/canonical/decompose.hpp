// The decomposition table: graph operators in terms of the dialect (body.hpp, docs/snippets.md), one row an operator.
//
//   {"LeakyRelu", broadcast_space, [](Rebuild& r) -> Result<ValueId> {
//      const ValueId x = r.in(0);
//      const ValueId below = r.node("Mul", {x, r.scalar_like(x, r.real("alpha", 0.01f))});
//      return r.node("Where", {r.compare("GreaterOrEqual", x, r.scalar_like(x, 0)), x, below});
//    }}
//
// An operator without a row cannot be expressed in the dialect. A row's functions may still refuse: attributes, types
// and shapes that they do not cover are Code::unsupported.
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
  // How its dims relate to one another. Operands that the space has no axes for are read when the graph is compiled
  // (axes, shapes), or not at all.
  Result<Space> (*space)(const Op& op) = nullptr;
  // Result 0 as a lane; the other results are set with Rebuild::set(). Null: the dialect operator has the same name, or
  // `dialect`, and the same operands.
  Result<ValueId> (*rebuild)(Rebuild& r) = nullptr;
  std::string_view dialect = {};
  // Whether results already have their element type. If not, f16 and bf16 are rounded and narrow integers wrapped.
  bool exact = false;
  // The operator only shows the elements of operand 0 under another shape.
  bool view = false;
  // The operand on whose value the space depends (axes), and a value that it may have. Whatever value a run has, the
  // body uses no other operators of the dialect. None: the space depends on types and attributes alone.
  size_t value_operand = kNoOperand;
  Tensor (*usual_value)(const Op& op) = nullptr;
  static constexpr size_t kNoOperand = SIZE_MAX;
};
TENON_API const DecomposeRow* find_decomposition(Name op);
// All rows, grouped by family, for documentation and tests.
TENON_API std::vector<const DecomposeRow*> all_decompositions();

}  // namespace tenon::snippet
