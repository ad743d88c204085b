// The graphs inside operators: which attributes of a node they are, and what their inputs are.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include <tenon/ir/graph.hpp>

namespace tenon::onnx {

struct RegionName {
  std::string_view attribute;
  // May be left out: then the region gives back its input.
  bool optional = false;
};
// The attributes that become regions 0, 1 ... of an operator; nullopt for an operator that is not in the table.
std::optional<std::span<const RegionName>> region_names(Name op);

// The type of input `i` of the body of a Loop, Scan or SequenceMap, as far as the operator around it tells: files
// mostly leave it out. Unknown for others. Shapes that may change from one iteration to the next are left open.
Type region_input_type(const Op& op, size_t i);

// The type of the one input of a region that was left out: wide enough that passing it through loses nothing.
Type left_out_input_type(const Op& op);

}  // namespace tenon::onnx
