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
  std::array<const char*, 3> sizes;  // tensors that L2 holds, that L3 does, and none
  const char* text;
};

// Graphs that are no loops over one space: the text of the graph behind its name, in which $0, $1 ... are the numbers
// of `sizes`, and what stands in the loop's function, where these are n0, n1 ...
struct WrittenKind {
  const char* name;
  std::array<const char*, 3> sizes;
  const char* text;
  const char* loop;
};

std::span<const Kind> all_kinds();      // kinds_list.cpp
std::span<const Kind> more_kinds();     // kinds_more.cpp: what the first list has not
std::span<const Kind> other_kinds();    // kinds_others.cpp: nor the second
std::span<const Kind> further_kinds();  // kinds_further.cpp: nor the third
std::span<const WrittenKind> written_kinds();

std::vector<DrawnGraph> graph_kinds();

}  // namespace tenon::bench
