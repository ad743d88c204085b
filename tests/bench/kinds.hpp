// Graphs bound by memory as networks have them: attention scores, norms that are spelled by operators, gates, images,
// bytes with scales, optimiser steps. As drawn ones, each has two forms, the text of the graph and a loop by hand.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "bench/drawn_graph.hpp"

namespace tenon::bench {

// `dims` has a letter a dim, behind a ' those that reductions fold; `sizes` the extents of each, dim by dim. In `text`
// stand, parted by ';', inputs (name, element, the dims they vary over) and operators (name = operator:element
// operands; without an element that of its last operand that has a name). A number is a constant of the type of that
// operand, or of one that is said before it (u8:128). What no operator reads is an output, and what begins with '!'.
struct Kind {
  const char* name;
  const char* dims;
  std::array<const char*, 3> sizes;  // tensors that a second-level cache holds, a third-level one, and none
  const char* text;
};

std::span<const Kind> all_kinds();

std::vector<DrawnGraph> graph_kinds();

}  // namespace tenon::bench
