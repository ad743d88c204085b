// Memory-bound graphs as in networks: attention scores, norms decomposed into operators, gates, images, bytes with
// scales, optimiser steps. Like drawn ones, each has two forms: the text of the graph, and a hand-written loop.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "bench/drawn_graph.hpp"

namespace tenon::bench {

// `dims` has one letter per dim, and a ' before those that are reduced; `sizes` has the extents of each, dim by dim.
// `text` contains, separated by ';', inputs (name, element, the dims over which they vary) and operators (name =
// operator:element operands; without an element, that of the last named operand). A number is a constant of the type of
// that operand, or of a type stated before it (u8:128). Values that no operator reads are outputs, as are those that
// begin with '!'.
struct Kind {
  const char* name;
  const char* dims;
  std::array<const char*, 3> sizes;  // tensors that L2 holds, that L3 does, and none
  const char* text;
};

// Graphs that are not loops over one space: the text of the graph after its name, in which $0, $1 ... are the numbers
// of `sizes`, and the body of the loop's function, in which these are n0, n1 ...
struct WrittenKind {
  const char* name;
  std::array<const char*, 3> sizes;
  const char* text;
  const char* loop;
};

std::span<const Kind> all_kinds();      // kinds_list.cpp
std::span<const Kind> more_kinds();     // kinds_more.cpp: not in the first list
std::span<const Kind> other_kinds();    // kinds_others.cpp: not in the first two
std::span<const Kind> further_kinds();  // kinds_further.cpp: not in the first three
std::span<const WrittenKind> written_kinds();

std::vector<DrawnGraph> graph_kinds();

}  // namespace tenon::bench
