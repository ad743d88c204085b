// What snippet_bench measures.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/hand_loops.hpp"

namespace tenon::bench {

// A graph in its text form, and loops by hand over the same arrays.
struct Case {
  std::string name, graph;
  HandLoop hand;
  std::span<const HandLoop> moves;  // ways to move the same arrays
  std::vector<int64_t> extents;     // of the hand loop; units are extents[0]
  int64_t grain = 1;                // least units that a thread takes
};

// Elementwise graphs by size, then rows, then columns; the larger ones of each lie in no cache.
std::vector<Case> snippet_cases();

}  // namespace tenon::bench
