// Inside the room: copies for which everything but the addresses is known at bind time, as moves of boxes. A padded
// copy is one move for the part inside the source, and one for each side that exceeds it.
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

// The origin of a move's elements.
enum class MoveFrom : uint8_t { source, padding, element };

struct BoxMove {
  MoveFrom from = MoveFrom::source;
  int64_t to_bytes = 0, from_bytes = 0;  // of its first element, from the copy's addresses
  int64_t run_bytes = 0;                 // 0: not contiguous in both
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

// How a copy is moved, and its addresses: bytes from the bases of the boxes.
struct CopyMoves {
  BoxMoves moves;
  Expr to, source, padding;
};

// Empty where extents, strides or steps are not known, where it is not certain which part is inside the source, or
// where a box that is moved may wrap around a ring.
std::optional<CopyMoves> moves_of(const Copy& copy, ElementType element, const CopyBoxes& boxes, const Scope& scope);

// Expressions that are non-negative if a padded copy reads nothing outside of its source, where this can be determined.
std::vector<Expr> source_margins(const Copy& copy, const CopyBoxes& boxes, const Scope& scope);

// The scalars of a copy call: addresses, and the bytes of a run or the address of the BoxMoves.
enum MoveWord : size_t { kMoveTo, kMoveSource, kMovePadding, kMoveHow, kMoveWords };
// As called by compiled programs; settled_move() runs on the same words.
using MoveFunction = Result<void> (*)(CallContext&);
// For a copy that is one contiguous run in both; else for boxes.
bool is_run(const BoxMoves& moves);
Result<void> move_run(CallContext& context);
Result<void> move_boxes(CallContext& context);
// Null: `function` is neither of the two.
void (*settled_move(MoveFunction function))(const int64_t* words);

}  // namespace tenon::program::detail
