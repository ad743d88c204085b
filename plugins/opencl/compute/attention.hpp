// The tile of an attention kernel, and the kernel's text.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>

namespace tenon::opencl {

inline constexpr int kMicroRows = 4;  // rows that have their sums in registers at once

// A work item's part of a job: `rows` of queries, a power of two, by `columns` of values, whole vectors of `lanes`.
// Keys are scored `vectors` at a time, by `depth` elements that are in local memory.
struct AttentionTile {
  int lanes = 1, rows = 1, columns = 1, vectors = 2, depth = 64;
  int64_t group = 1;  // work items, with a row each, that share the panels; several also keep queries there
  bool together() const { return group > 1; }
  int micro() const { return std::min(rows, kMicroRows); }
  int sums() const { return columns / lanes; }
  int keys() const { return vectors * lanes; }
  // Distance from one step to the next: of keys in vectors, of queries and of weights in elements. Odd where adjacent
  // items store along it, to avoid bank conflicts.
  int key_pitch() const { return together() ? vectors | 1 : vectors; }
  int64_t row_pitch() const { return group | 1; }
  int64_t local_elements() const;
};

// The work of an item. It reads macros that attention.cpp defines: T and TV, extents of the tile (ROWS, MICRO, VECTORS,
// KEYS, SUMS, COLUMNS, DEPTH, LANES), ports (Q, K, V, PAST_K, PAST_V, Y, PRESENT_K, PRESENT_V), the panels in local
// memory (KEY, VALUE, in groups also QUERY and WEIGHT), and the treatment of scores that the options determine
// (VISIBLE, CAP, ADD_MASK, SHOW). `probabilities`: these are an output, for which scores are computed once more.
std::string attention_body(const AttentionTile& tile, bool probabilities);

}  // namespace tenon::opencl
