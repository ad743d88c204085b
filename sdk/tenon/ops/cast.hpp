// Conversion of element types. The target type is an attribute of kind `type` that holds an unranked tensor: f16[*].
#pragma once
#include <tenon/ops/elementwise_views.hpp>
#include <tenon/support/export.hpp>
#include <tenon/tensor/numeric.hpp>

namespace tenon {

// The conversion that the attributes `saturate` and `round_mode` of an operator specify.
TENON_API ConvertOptions convert_options_of(const Op& op);

// output = input in another element type, as convert() in tensor/numeric.hpp defines it.
struct Cast : UnaryView<Cast> {
  static constexpr std::string_view kName = "Cast";
  using UnaryView::UnaryView;
  ElementType to() const { return attr<Type>("to").element(); }
};
// The same, to the element type of `target_type`, whose values are ignored.
struct CastLike : UnaryView<CastLike> {
  static constexpr std::string_view kName = "CastLike";
  using UnaryView::UnaryView;
  Value* target_type() const { return operand(1); }
};
// output has the bits of input, reinterpreted as another element type of the same width. Booleans become 0 or 1.
struct BitCast : UnaryView<BitCast> {
  static constexpr std::string_view kName = "BitCast";
  using UnaryView::UnaryView;
  ElementType to() const { return attr<Type>("to").element(); }
};

}  // namespace tenon
