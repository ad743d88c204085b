// Inside the room: copies of which everything but the addresses is known at bind time, as moves of boxes. A padded copy
// is one move for what the source has, and one for each side that exceeds it.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <tenon/program/ir/statement.hpp>
#include <tenon/program/ir/symbolic_internal.hpp>
#include <tenon/support/inline_vector.hpp>
#include <tenon/tensor/move_box.hpp>

namespace tenon::program::detail {

// Where a move takes its elements from.
enum class MoveFrom : uint8_t { source, padding, element };

struct BoxMove {
  MoveFrom from = MoveFrom::source;
  int64_t to_bytes = 0, from_bytes = 0;  // of its first element, from the copy's addresses
  int64_t run_bytes = 0;                 // 0: not one after the other in both
  InlineVector<BoxDim, 4> dims;          // joined (move_box.hpp)
};

struct BoxMoves {
  std::vector<BoxMove> moves;
  std::vector<std::byte> element;  // of a constant padding
  size_t element_bytes = 0;

  void run(std::byte* to, const std::byte* source, const std::byte* padding) const;
};

// The boxes that a copy names; `padding` is null where it is none.
struct CopyBoxes {
  const SymbolicBuffer& destination;
  const SymbolicBuffer& source;
  const SymbolicBuffer* padding = nullptr;
};

// How a copy is moved, and what its addresses are: bytes from the bases of the boxes.
struct CopyMoves {
  BoxMoves moves;
  Expr to, source, padding;
};

// Nothing where extents, strides or steps are not known, where it is not certain what lies within the source, or where
// a box that is moved may wrap around a ring.
std::optional<CopyMoves> moves_of(const Copy& copy, ElementType element, const CopyBoxes& boxes, const Scope& scope);

// What is not negative where a padded copy reads nothing beyond its source, as far as it can be told.
std::vector<Expr> source_margins(const Copy& copy, const CopyBoxes& boxes, const Scope& scope);

// What a call of a copy is given as scalars: addresses, and the bytes of a run or the address of the BoxMoves.
enum MoveWord : size_t { kMoveTo, kMoveSource, kMovePadding, kMoveHow, kMoveWords };
// As compiled programs call it, and as settled_move() runs on these words.
using MoveFunction = Result<void> (*)(CallContext&);
// Of elements that follow on in both, which is all of the copy; else of boxes.
bool is_run(const BoxMoves& moves);
Result<void> move_run(CallContext& context);
Result<void> move_boxes(CallContext& context);
// Null: it is none of the two.
void (*settled_move(MoveFunction function))(const int64_t* words);

}  // namespace tenon::program::detail
