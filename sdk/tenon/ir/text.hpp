// The text form. parse(print(g)) equals g: names, types, attributes bit for bit.
//
//   graph @block(%x: f32[1,64,56,56], %w: f32[64,64,3,3]) -> (%y, sum: %s) {
//     %c = Conv %x, %w {pads = [1, 1, 1, 1]} : f32[1,64,56,56]
//     %y = Relu %c : f32[1,64,56,56]
//     %a, %b = Split %y "split/halves" {axis = 1} : f32[1,32,56,56], f32[1,32,56,56]
//     %s = If %cond (() -> %t { %t = Neg %a }, () -> %a {})
//     %k = Constant {value = dense<f32[2]: 1.0, 2.0>}
//   }
//
// Names that are not [A-Za-z0-9_.$-]+ are quoted: %"layer1/conv 0", @"an operator". `_` is an absent operand. Values
// without a name print as %0, %1 ...; a name of digits is quoted. Several visible values of the same name are
// distinguished by a tick that is not part of it: %y, %y'1. `name: %v` in the outputs gives an output's name where it
// differs from the value's. Result types may be omitted; they are then inferred. Comments run from # to the end of the
// line. Line ends are blanks, with one exception: operands begin on the line of their operator. A value's layout
// follows its type, on the same line: `: f32[1,17,8,8] in "NCHW{16c}" pad zero`. Tensors print as elements, as
// `splat<T: v>` when all are equal, as `hex<T: ...>` (the bytes in memory) when long; PrintOptions shorten them for
// reading only.
// docs/text-form.md has the grammar.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include <tenon/ir/graph.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

struct PrintOptions {
  bool types = true;
  // Tensors beyond this many elements print as `elided<T>`, which does not parse; negative: never.
  int64_t elide_beyond = -1;
  // Prints layouts with their fingerprints, which parse_graph compares: for files.
  bool layout_maps = false;
};
TENON_API std::string print(const Graph& graph, const PrintOptions& options = {});
TENON_API std::string print(const Op& op, const PrintOptions& options = {});
TENON_API std::string print(const Attribute& attribute, const PrintOptions& options = {});

// Errors carry `where`:line:column. Omitted result types are inferred; the graph is not verified further.
TENON_API Result<std::unique_ptr<Graph>> parse_graph(std::string_view text, std::string_view where = "text");

// Graphviz, one node per operator, edges labelled with types; regions as clusters.
TENON_API std::string to_dot(const Graph& graph);

}  // namespace tenon
