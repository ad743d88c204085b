// The tile of an attention kernel, and the lines that walk it.
#pragma once
#include <algorithm>
#include <string>

namespace tenon::opencl {

inline constexpr int kVectorsOfKeys = 2;  // of scores that a row has at once
inline constexpr int kMicroRows = 4;      // rows whose sums are in registers at once

// What a work item has of a job: `rows` of queries, a power of two, by `columns` of values, whole vectors of `lanes`.
struct AttentionTile {
  int lanes = 1, rows = 1, columns = 1;
  int micro() const { return std::min(rows, kMicroRows); }
  int sums() const { return columns / lanes; }
};

// The work of an item. It reads macros that attention.cpp defines: T and TV, extents of the tile (ROWS, MICRO, VECTORS,
// KEYS, SUMS, COLUMNS, DEPTH, LANES), ports (Q, K, V, PAST_K, PAST_V, Y, PRESENT_K, PRESENT_V), the panels in local
// memory (KEY, VALUE), and what the options do to scores (VISIBLE, CAP, ADD_MASK, SHOW). `probabilities`: these are
// shown, for which scores are computed once more. `together`: several work items pack a panel.
std::string attention_body(const AttentionTile& tile, bool probabilities, bool together);

}  // namespace tenon::opencl
