// The layout of a value in memory, set by name or by the pass assign-layouts. It does not affect the algorithm:
// operators refer to logical indices whatever the layout. A value without one is row-major.
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

// The content of slots that hold no element.
enum class PadState : uint8_t {
  none,   // there are no such slots
  zero,   // all bits 0
  value,  // every slot holds ValueLayout::pad_bits
  dirty,  // anything, NaN included
};
TENON_API std::string_view pad_state_name(PadState state);

struct ValueLayout {
  std::string text;  // as Layout::parse reads it: "NCHW{16c}", or an index map
  std::string dims;  // names of the value's dims, one upper-case letter each: "NCHW"
  PadState pad = PadState::dirty;
  uint64_t pad_bits = 0;  // of PadState::value
  // Set by a user: assign-layouts keeps it and adapts its neighbours.
  bool pinned = false;
  bool operator==(const ValueLayout&) const = default;
};

// The usual names of dims of this rank: "NCHW" for 4. If the letters of `text` are those of a weight ("OIHW{16o16i}"),
// "OIHW"; for an index map, the letters of its index. Other letters are an error that asks for the names.
TENON_API Result<std::string> default_layout_dims(std::string_view text, size_t rank);

// The layout of a value of this type, row-major where the value has none. The shape must be static.
TENON_API Result<Layout> resolve_layout(const Value& value);
// The same for a shape that is known only at run time.
TENON_API Result<Layout> resolve_layout(const ValueLayout& layout, const Dims& shape, int64_t element_bits);
// Checks that the value's layout, if any, fits its type: it must be a tensor of numbers, and with a static shape the
// layout must resolve and have a slot for each element.
TENON_API Result<void> check_layout(const Value& value);

// Names of common layouts; the text form says the rest: layout_name_text(LayoutName::NCHW16c) is "NCHW{16c}".
enum class LayoutName : uint8_t {
  NC, CN,
  NCW, NWC,
  NCHW, NHWC, CHWN, NCHW4c, NCHW8c, NCHW16c, NCHW32c,
  NCDHW, NDHWC,
  OIHW, OHWI, HWIO, OIHW8i8o, OIHW16i16o,
  OIDHW, DHWIO,
};
TENON_API std::string_view layout_name_text(LayoutName name);

// Sets the layout of one value, pinned, with dirty padding. An empty `dims` means default_layout_dims(). An error when
// the text is not a layout for the value's type; the value is then unchanged.
TENON_API Result<void> set_layout(Value& value, std::string_view text, std::string_view dims = "");
// The same for every value called `name`, in all regions, and for values that feed an output of the graph of that name.
// An error when there is no such value (which lists the nearest names), or when one cannot have the layout; then no
// value is changed.
TENON_API Result<void> set_layout(Graph& graph, std::string_view name, std::string_view text,
                                  std::string_view dims = "");
TENON_API Result<void> set_layout(Graph& graph, std::string_view name, LayoutName layout);
// From an index map: set_layout(graph, "y", [](Expr n, Expr c) { return LayoutMap{.address = {c, n}}; }). The shape
// must be static and have as many dims as the map has parameters.
TENON_API Result<void> set_layout(Graph& graph, std::string_view name, size_t parameters,
                                  const Layout::MapFunction& map);
template <class F>
  requires requires { &F::operator(); }
Result<void> set_layout(Graph& graph, std::string_view name, F map) {
  constexpr size_t kArity = detail::ArityOf<F>::value;
  return set_layout(graph, name, kArity, [&map](std::span<const Expr> index) -> LayoutMap {
    return [&]<size_t... I>(std::index_sequence<I...>) { return map(index[I]...); }
    (std::make_index_sequence<kArity>());
  });
}

}  // namespace tenon
