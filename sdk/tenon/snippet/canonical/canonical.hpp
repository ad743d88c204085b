// From operators of a graph to a Body: one iteration space for all of them, dims that no port tells apart joined, and
// each operator rebuilt from those of the dialect (decompose.hpp).
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
// By result of an operator: how it lies in the tensor as a part of which it is written, by dims that are cut, innermost
// first. Of those without an entry, or with an empty one: dense.
using ResultCuts = std::vector<std::vector<DimCut>>;

// Of a snippet.Subgraph, or of any single operator, which is then seen as a subgraph of one whose inputs are its
// operands. Inputs and outputs of the body are those of the subgraph, in order; an input that the body does not read
// (one that only tells a shape or an axis) is left out of `inputs`: Body::inputs[i] belongs to operand
// body_operands(op)[i].
//
// Code::unsupported, naming operator and values, when the operators share no iteration space: extents that may differ
// (two symbols, an unknown extent), reductions over different axes, a dense order that no nest of loops has, an
// operator or element type without a form in the dialect, a result that is cut so that no two elements lie side by
// side.
TENON_API Result<Body> make_body(const Op& op, const ResultCuts& results = {});

// For each input of make_body(op): which operand of `op` it is.
TENON_API std::vector<size_t> body_operands(const Op& op);

}  // namespace tenon::snippet
