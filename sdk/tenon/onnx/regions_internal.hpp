// The graphs inside operators: which attributes of a node they are, and which inputs they have.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include <tenon/ir/graph.hpp>

namespace tenon::onnx {

struct RegionName {
  std::string_view attribute;
  // May be omitted; the region then returns its input.
  bool optional = false;
};
// The attributes that become regions 0, 1 ... of an operator; nullopt for an operator that is not in the table.
std::optional<std::span<const RegionName>> region_names(Name op);

// The type of input `i` of the body of a Loop, Scan or SequenceMap, as far as the surrounding operator determines it:
// files mostly omit it. Unknown for other operators. Shapes that may change between iterations are left open.
Type region_input_type(const Op& op, size_t i);

// The type of the one input of an omitted region: wide enough that passing a value through loses nothing.
Type left_out_input_type(const Op& op);

}  // namespace tenon::onnx
