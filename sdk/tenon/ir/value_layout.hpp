// How a value lies in memory. Put on a value by name, or by the pass assign-layouts; the algorithm is untouched: operators
// speak of logical indices whatever the layout. A value without one is row-major.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/layout.hpp>

namespace tenon {

class Graph;
class Value;

// What the slots that hold no element contain.
enum class PadState : uint8_t {
  none,   // there are no such slots
  zero,   // all bits 0
  value,  // every one ValueLayout::pad_bits
  dirty,  // anything, NaN included
};
TENON_API std::string_view pad_state_name(PadState state);

struct ValueLayout {
  std::string text;  // as Layout::parse reads it: "NCHW{16c}", or an index map
  std::string dims;  // names of the value's dims, one upper-case letter each: "NCHW"
  PadState pad = PadState::dirty;
  uint64_t pad_bits = 0;  // of PadState::value
  // Put there by a user: assign-layouts keeps it, and makes its neighbours fit.
  bool pinned = false;
  bool operator==(const ValueLayout&) const = default;
};

// The names that people give to dims of this rank: "NCHW" for 4. Where the letters of `text` are those of a weight
// ("OIHW{16o16i}"), "OIHW". Other letters: an error that asks for the names.
TENON_API Result<std::string> default_layout_dims(std::string_view text, size_t rank);

// The layout of a value of this type, row-major where the value has none. The shape must be static.
TENON_API Result<Layout> resolve_layout(const Value& value);
// For a shape known only at run time.
TENON_API Result<Layout> resolve_layout(const ValueLayout& layout, const Dims& shape, int64_t element_bits);

// Puts a layout on every value called `name`, in all regions; pinned. An empty `dims`: default_layout_dims(). An error when
// there is no such value (which lists the nearest names), or when the text is no layout for its type.
TENON_API Result<void> set_layout(Graph& graph, std::string_view name, std::string_view text, std::string_view dims = "");

}  // namespace tenon
