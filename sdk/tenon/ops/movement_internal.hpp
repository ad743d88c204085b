// Internal to the family: the common part of the definitions of operators that move elements.
#pragma once
#include <tenon/ops/infer_util.hpp>
#include <tenon/ops/movement.hpp>

namespace tenon::detail {

inline constexpr Trait kMoves = Trait::pure | Trait::movement | Trait::layout_aware;

// A definition whose input and output are tensors of the same, arbitrary type.
inline OpDef mover(std::string_view name, std::string_view summary, std::string_view input) {
  return OpDef(name)
      .summary(std::string(summary))
      .operand(std::string(input), "T")
      .result("output", "T")
      .types("T", kAnyTensor)
      .traits(kMoves);
}

}  // namespace tenon::detail
