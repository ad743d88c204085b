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

// Rows of 7 to 384 floats, in L2 and beyond all, and few elements of an odd number.
std::vector<Case> short_cases();

// What both have.
Case layer_norm_case(int64_t rows, int64_t n);
Case skip_layer_norm_case(int64_t rows, int64_t n);
Case softmax_case(int64_t rows, int64_t n);
Case sum_of_rows_case(int64_t rows, int64_t n);
Case add_relu_case(int64_t n);
Case diamond_case(int64_t n);
Case several_outputs_case(int64_t n);

}  // namespace tenon::bench
