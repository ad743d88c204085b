// The verifier: checks that passes and back ends may rely on a graph.
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

// Reports the operator or value of the first fault. Checks that operators are defined; counts of operands, results and
// regions; that attributes are known, required ones present, and of the right kind; type variables; the operator's own
// rule; that result types agree with the shape rule; that each value is produced before it is used, in the same region
// or an enclosing one; that use lists are consistent; that outputs have unique names; and that no value takes more than
// 2^63 - 1 bytes. Linear in the size of the graph.
TENON_API Result<void> verify(const Graph& graph, const VerifyOptions& options = {});
TENON_API Result<void> verify(const Op& op, const VerifyOptions& options = {});

}  // namespace tenon
