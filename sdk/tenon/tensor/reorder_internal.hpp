// Inside of the room: what a ReorderPlan is made of.
#pragma once
#include <tenon/tensor/reorder.hpp>

namespace tenon::detail {

struct NestLoop {
  int64_t count = 1;
  int64_t from = 0, to = 0;  // strides, in units of the nest
};

// dst[to_base + sum to * i] = src[from_base + sum from * i], `unit` long, for all i. All of it in bits or, where
// everything is whole, in bytes. Loops by falling `to`, which is positive; for a transpose the last but one reads, the
// last one writes side by side.
struct Nest {
  enum class Kind : uint8_t { run, transpose, bits };
  Kind kind = Kind::run;
  int64_t from_base = 0, to_base = 0, unit = 1;
  std::vector<NestLoop> loops;
  // Iterations of the first so many loops share no byte of the destination, and leave the loops of a tile alone.
  size_t disjoint = 0;
};

struct ReorderProgram {
  Layout from, to;
  ReorderKind kind = ReorderKind::elements;
  std::vector<ReorderLoop> loops;
  std::vector<ReorderPieces> pieces;
  bool tail = false;
  bool fills = false;       // the destination has slots or bits without an element that are ours to write
  std::vector<Nest> nests;  // none for ReorderKind::elements
};

}  // namespace tenon::detail
