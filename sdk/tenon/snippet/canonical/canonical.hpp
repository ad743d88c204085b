// From graph operators to a Body: one iteration space for all of them, with dims joined that no port distinguishes, and
// each operator rebuilt from operators of the dialect (decompose.hpp).
#pragma once
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/snippet/body/body.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::snippet {

// Dim `dim` of a value is [begin, begin + box) of `whole`.
struct DimCut {
  size_t dim = 0;
  int64_t begin = 0, box = 0, whole = 0;
  bool operator==(const DimCut&) const = default;
};
// For each result of an operator: how it is placed in the tensor of which it is written as a part, by cut dims,
// innermost first. Results without an entry, or with an empty one, are dense.
using ResultCuts = std::vector<std::vector<DimCut>>;

// The body of a snippet.Subgraph, or of any single operator, which is then treated as a subgraph of one whose inputs
// are its operands. Inputs and outputs of the body are those of the subgraph, in order. An input that the body does not
// read (one that only determines a shape or an axis) is left out of `inputs`: Body::inputs[i] belongs to operand
// body_operands(op)[i].
//
// Code::unsupported, naming operator and values, when the operators share no iteration space: extents that may differ
// (two symbols, an unknown extent), reductions over different axes, or a dense order that no loop nest has. Also for an
// operator or element type that the dialect cannot express, and for a result whose cuts leave no two elements adjacent.
TENON_API Result<Body> make_body(const Op& op, const ResultCuts& results = {});

// For each input of make_body(op): the operand of `op` that it is.
TENON_API std::vector<size_t> body_operands(const Op& op);

}  // namespace tenon::snippet
