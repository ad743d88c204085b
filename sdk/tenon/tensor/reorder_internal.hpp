// Internal to the room: the parts of a ReorderPlan.
#pragma once
#include <mutex>
#include <optional>

#include <tenon/tensor/reorder.hpp>
#include <tenon/tensor/reorder_rows_internal.hpp>

namespace tenon::detail {

struct NestLoop {
  int64_t count = 1;
  int64_t from = 0, to = 0;  // strides, in units of the nest
};

// dst[to_base + sum to * i] = src[from_base + sum from * i], `unit` long, for all i. All in bits or, if everything is
// whole, in bytes. Loops in descending order of `to`, which is positive; in a transpose, also of fields, the last but
// one is contiguous in the source and the last one in the destination.
struct Nest {
  enum class Kind : uint8_t {
    run,
    transpose,
    bits,
    fields,  // a transpose of elements narrower than a byte
    zeros,   // has no source
  };
  Kind kind = Kind::run;
  int64_t from_base = 0, to_base = 0, unit = 1;
  std::vector<NestLoop> loops;
  // Zero padding in bytes: after each run; in a transpose, after the last loop.
  int64_t zeros = 0;
  // Iterations of the outermost loops up to this number share no byte of the destination. Includes those of a tile.
  size_t disjoint = 0;
};

struct ReorderProgram {
  Layout from, to;
  ReorderKind kind = ReorderKind::elements;
  std::vector<ReorderLoop> loops;
  std::vector<ReorderPieces> pieces;
  bool tail = false;
  bool fills = false;       // the whole destination is filled first: slots or bits without an element must be set
  std::vector<Nest> nests;  // empty for rows and elements; instead of the fill, zeros where there is no element
  // Without nests: the indices that have a slot of their own, as rows, and their offsets, computed by the first run.
  RowLoop rows;
  mutable std::once_flag tables_made;
  mutable std::optional<RowTables> tables;
};

// The offset of an element's lowest bit from the start of the first bank.
inline int64_t bit_offset(const Layout& layout, std::span<const int64_t> index) {
  const LayoutPosition at = layout.apply(index);
  return at.bank * layout.bytes_per_bank() * 8 + at.bit;
}

// Merges the loops of a nest in bits, and chooses its kind.
void prepare(Nest& nest);
// Lets the nest write this many zero elements after its innermost run of `count` elements. False: not possible.
bool write_zeros_behind(Nest& nest, int64_t count, int64_t zeros, int64_t element_bits);
// Nests of zeros for each byte of the destination without an element, except for the padding of variable `done` within
// its innermost block; -1: no variable. Nothing if filling everything is better: bytes with several elements, a fill
// that is not 0, no constant strides, or gaps of few bytes.
std::optional<std::vector<Nest>> zero_nests(const Layout& to, int done);

}  // namespace tenon::detail
