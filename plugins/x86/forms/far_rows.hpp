// Rows beyond the last-level cache that several sweeps walk: the orders in which kernels go along them, and of which
// lengths those are that go so. Pure.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include <tenon/irgen/snippet_code.hpp>

#include "x86/forms/forms.hpp"

namespace tenon::x86 {

// A body that folds rows alone and walks them again: bytes of one element in tensors that move on with the rows, in
// those that rows right behind one another share, as a mask of keys for all heads and queries, and in a value that
// sweeps keep. Of a single row all tensors count as moving on. What varies over some of several folded dims is little.
struct RowBytes {
  int64_t moving = 0, standing = 0, kept = 0;               // moving 0: it is another body
  int64_t narrowest = std::numeric_limits<int64_t>::max();  // of one tensor that moves on
  int64_t again() const { return moving + standing; }
  int64_t all() const { return again() + kept; }
};

// What the order of rows follows from, beside their length and the machine's class.
struct FarRows {
  RowBytes bytes;
  int folds = 1;             // of which each wants the one before
  bool costly = false;       // sweeps compute what is not made again for nothing
  bool stored = false;       // and an output is made of that
  bool merges = false;       // two folds, which may be one
  bool one_loop = false;     // goes as fast as the walks alone, or what is costly has nowhere to wait for these
  bool three_walks = false;  // have registers at once
  int64_t shortest = 0;      // elements: of shorter rows several go at once
  int64_t l1 = 0, l2 = 0;    // bytes
  std::optional<int64_t> l3;
};

// The machine's class: where loops fetch the lines of main memory that they are going to read.
enum class FetchedAhead : uint8_t { nowhere, into_first, into_second };

// Rows of `lengths` elements, and of multiples of `multiple`, go in `order`.
struct FarOrder {
  std::string_view suffix;  // of the kernel's name
  RowOrder order;
  irgen::RowRange lengths;  // perhaps of none
  NextRow next = NextRow::none;
  bool merged = false;      // LowerOptions::merge_sweeps
  bool near = false;        // LowerOptions::keep_near
  bool into_first = false;  // lines are fetched, whatever the class says
  int64_t multiple = 1;
};

// Of two that serve a call, the later one does.
std::vector<FarOrder> orders_of(const FarRows& rows, FetchedAhead lines);

}  // namespace tenon::x86
