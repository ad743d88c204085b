// Row orders for rows beyond the last-level cache that several sweeps traverse: which orders there are, and for which
// row lengths each is used. Pure functions.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include <tenon/irgen/snippet_code.hpp>

#include "x86/forms/forms.hpp"

namespace tenon::x86 {

// A body that reduces rows and traverses them again. Bytes of one element: in tensors that advance with the rows; in
// tensors that successive rows share, such as a mask of keys for all heads and queries; and in values that sweeps keep.
// In a body of a single row all tensors count as advancing. What varies over only some of several reduced dims is small
// and ignored.
struct RowBytes {
  int64_t moving = 0, standing = 0, kept = 0;               // moving 0: not a body of this kind
  int64_t narrowest = std::numeric_limits<int64_t>::max();  // of one tensor that advances
  int64_t again() const { return moving + standing; }
  int64_t all() const { return again() + kept; }
};

// What determines the order of rows, besides their length and the machine's class.
struct FarRows {
  RowBytes bytes;
  int folds = 1;             // reductions, each of which needs the one before
  bool costly = false;       // sweeps compute values that are expensive to recompute
  bool stored = false;       // an output is computed from those values
  bool merges = false;       // two reductions, which may be merged
  bool one_loop = false;     // as fast as the separate sweeps, or costly values cannot be kept for these
  bool three_walks = false;  // registers suffice for three sweeps at once
  int64_t shortest = 0;      // elements; shorter rows are processed several at once
  int64_t l1 = 0, l2 = 0;    // bytes
  std::optional<int64_t> l3;
};

// The machine's class: into which cache loops prefetch the lines of main memory that they are going to read.
enum class FetchedAhead : uint8_t { nowhere, into_first, into_second };

// Rows of `lengths` elements that are multiples of `multiple` are processed in `order`.
struct FarOrder {
  std::string_view suffix;  // of the kernel's name
  RowOrder order;
  irgen::RowRange lengths;  // may be empty
  NextRow next = NextRow::none;
  bool merged = false;      // LowerOptions::merge_sweeps
  bool near = false;        // LowerOptions::keep_near
  bool into_first = false;  // lines are prefetched into the first level, whatever the class is
  int64_t multiple = 1;
};

// Where two orders serve a call, the later one is used.
std::vector<FarOrder> orders_of(const FarRows& rows, FetchedAhead lines);

}  // namespace tenon::x86
