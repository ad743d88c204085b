// Inside of the room: what a ReorderPlan is made of.
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

// dst[to_base + sum to * i] = src[from_base + sum from * i], `unit` long, for all i. All of it in bits or, where
// everything is whole, in bytes. Loops by falling `to`, which is positive; for a transpose, of fields too, the last but
// one reads, the last one writes side by side.
struct Nest {
  enum class Kind : uint8_t {
    run,
    transpose,
    bits,
    fields,  // a transpose of elements below a byte
    zeros,  // has no source
  };
  Kind kind = Kind::run;
  int64_t from_base = 0, to_base = 0, unit = 1;
  std::vector<NestLoop> loops;
  // Of padding with 0 in bytes: behind each run; of a transpose, behind the last loop.
  int64_t zeros = 0;
  // Iterations of the first so many loops share no byte of the destination. Those of a tile are among them.
  size_t disjoint = 0;
};

struct ReorderProgram {
  Layout from, to;
  ReorderKind kind = ReorderKind::elements;
  std::vector<ReorderLoop> loops;
  std::vector<ReorderPieces> pieces;
  bool tail = false;
  bool fills = false;       // all of the destination is filled first, since slots or bits without an element are ours
  std::vector<Nest> nests;  // none for rows and elements; instead of the fill, zeros where no element is
  // Where there are none, the indices of which each has a slot of its own, as rows, and their offsets, made by the
  // first run.
  RowLoop rows;
  mutable std::once_flag tables_made;
  mutable std::optional<RowTables> tables;
};

// Of an element's lowest bit, from the start of the first bank.
inline int64_t bit_offset(const Layout& layout, std::span<const int64_t> index) {
  const LayoutPosition at = layout.apply(index);
  return at.bank * layout.bytes_per_bank() * 8 + at.bit;
}

// Joins the loops of a nest in bits, and chooses its kind.
void prepare(Nest& nest);
// Lets the nest write so many elements of 0 behind its innermost run of `count` elements. False: it is no such nest.
bool write_zeros_behind(Nest& nest, int64_t count, int64_t zeros, int64_t element_bits);
// Zeros for each byte of the destination that no element has, but for the padding of `done` within its innermost block;
// -1: of no variable. Nothing where it is better to fill it all: bytes with several elements, a fill that is not 0, no
// constant strides, or gaps of few bytes.
std::optional<std::vector<Nest>> zero_nests(const Layout& to, int done);

}  // namespace tenon::detail
