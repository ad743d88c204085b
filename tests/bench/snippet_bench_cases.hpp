// The cases of snippet_bench.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/hand_loops.hpp"

namespace tenon::bench {

// A graph in its text form, and hand-written loops over the same arrays.
struct Case {
  std::string name, graph;
  HandLoop hand;
  std::span<const HandLoop> moves;  // ways to move the same arrays
  std::vector<int64_t> extents;     // of the hand loop; units are extents[0]
  int64_t grain = 1;                // least units that a thread takes
};

// Elementwise graphs by size, then rows, then columns; the larger ones of each exceed all caches.
std::vector<Case> snippet_cases();

// Rows of 7 to 384 floats, in L2 and beyond all caches, and odd numbers of few elements.
std::vector<Case> short_cases();

// In both lists.
Case layer_norm_case(int64_t rows, int64_t n);
Case skip_layer_norm_case(int64_t rows, int64_t n);
Case softmax_case(int64_t rows, int64_t n);
Case sum_of_rows_case(int64_t rows, int64_t n);
Case add_relu_case(int64_t n);
Case diamond_case(int64_t n);
Case several_outputs_case(int64_t n);

}  // namespace tenon::bench
