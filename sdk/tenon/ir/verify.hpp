// The verifier: is this graph one that passes and back ends may rely on?
#pragma once
#include <tenon/ir/graph.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

struct VerifyOptions {
  // Unknown operators are errors; text tools may allow them.
  bool allow_unknown_ops = false;
  // Every value must have a known type (element type and kind; shapes may be open).
  bool require_types = true;
};

// Checks, and names the operator or value of the first fault: operators are defined; counts of operands, results,
// regions; attributes known, required ones present, of their kind; type variables; the operator's own rule; result
// types agree with the shape rule; each value is made before it is used, in this region or one around it; use lists are
// consistent; outputs have names, once each; no value takes more than 2^63 - 1 bytes. Linear in the size of the graph.
TENON_API Result<void> verify(const Graph& graph, const VerifyOptions& options = {});
TENON_API Result<void> verify(const Op& op, const VerifyOptions& options = {});

}  // namespace tenon
