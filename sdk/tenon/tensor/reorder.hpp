// Reorder: copies the elements of a tensor from one layout into another.
//
//   TENON_TRY(plan, plan_reorder(nchw, nchw16c));            // same shape, same element bits
//   TENON_OK(plan.run(source, destination, pool));
//
// Plan.  Bit offsets in a layout with digits are a sum over its variables, so the plan is made variable by variable.
// If the places of both radix chains, merged, each divide the next one, the variable becomes one loop per place: its
// values [0, D) are divided greedily into whole blocks of the largest place, then of the next one, and so on, so that
// no loop has a tail inside. Otherwise (6c -> 4c, offsets, folds) one period, the least common multiple of the places,
// is divided at every border of both chains; each piece is one run on both sides and repeats with the period.
// The product of the parts of all variables gives loop nests with constant strides, each run on its own: contiguous
// loops become the unit that is copied, and two loops with unit strides on different sides are transposed in tiles of
// vectors. In a ragged or swizzled layout, each box that crosses no block border and keeps the swizzling bits is such a
// nest. Index maps and what remains use tables of offsets, or the inverse, slot by slot.
//
// Padding.  Every slot of the destination that holds no element gets its fill; bits of a word without a slot and bytes
// after the last word become 0. With an undefined fill, and in a view, they are left unchanged. Padding of the source
// is never copied.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/support/export.hpp>
#include <tenon/support/parallel.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/layout.hpp>

namespace tenon {

enum class ReorderKind : uint8_t {
  no_op,      // same_function: the bytes may be used as they are
  copy,       // one run of bytes
  runs,       // loops around runs of whole bytes, or around one strided element
  transpose,  // in tiles
  bits,       // elements or words that are not byte-aligned
  pieces,     // radices that do not nest
  elements,   // no nests: rows by tables of offsets, or one by one through apply() and inverse()
};
TENON_API std::string_view reorder_kind_name(ReorderKind kind);

struct ReorderLoop {
  int64_t count = 1;
  int64_t from_bits = 0, to_bits = 0;  // strides
  bool tail = false;                   // the last block of its variable has fewer than `count`
  bool operator==(const ReorderLoop&) const = default;
};

// For a variable whose radices do not nest: [start, length) within a period, each one run on both sides.
struct ReorderPieces {
  std::string variable;
  int64_t period = 0;
  std::vector<std::pair<int64_t, int64_t>> pieces;
  bool operator==(const ReorderPieces&) const = default;
};

// Bytes per second (or any unit of time) for accesses in runs of this many bytes, ascending.
struct BandwidthTable {
  struct Entry {
    int64_t run_bytes = 1;
    double bytes_per_second = 1;
  };
  std::vector<Entry> entries;
  double setup_seconds = 0;  // per reorder
  // Of the last entry whose run is not longer, or of the first one for shorter runs. 1 for an empty table.
  TENON_API double at(int64_t run_bytes) const;
};

namespace detail {
struct ReorderProgram;
}

// A value; const member functions may be called from any number of threads.
class TENON_API ReorderPlan {
 public:
  const Layout& from() const;
  const Layout& to() const;
  ReorderKind kind() const;
  // Outermost first: by descending stride in the destination, without loops of one iteration, and with adjacent loops
  // merged that nest on both sides. Empty if pieces() is not, for ReorderKind::elements, and for ragged and swizzled
  // layouts.
  const std::vector<ReorderLoop>& loops() const;
  const std::vector<ReorderPieces>& pieces() const;
  bool has_tail() const;
  // "transpose: [2 60 60] [20 1 3] [3 20 1]", strides in elements, or in bits ("60b") if they are not whole elements.
  std::string to_string() const;

  // `source` must have at least from().bytes(), `destination` at least to().bytes(). They must not overlap, except that
  // a no_op plan may be run in place, and then does nothing. The result depends neither on the number of threads nor on
  // `task_bytes`, the amount of data that is worth a task of its own.
  Result<void> run(std::span<const std::byte> source, std::span<std::byte> destination,
                   ParallelFor& parallel = serial(), int64_t task_bytes = 64 << 10) const;

  // Internal to the room.
  explicit ReorderPlan(std::shared_ptr<const detail::ReorderProgram> program) : program_(std::move(program)) {}

 private:
  std::shared_ptr<const detail::ReorderProgram> program_;
};

// Fails when shapes or element bits differ.
TENON_API Result<ReorderPlan> plan_reorder(const Layout& from, const Layout& to);

// Time of a reorder: bytes of `from` / bandwidth for its longest run + bytes of `to` / bandwidth for its longest run +
// setup; 0 for the same function. Padding counts on both sides, because it is in the cache lines that are accessed.
// Fails as plan_reorder does.
TENON_API Result<double> reorder_cost(const Layout& from, const Layout& to, const BandwidthTable& bandwidth);

}  // namespace tenon
