// Checks whether a program with symbolic shapes agrees with the operators' shape rules for given extents.
//
// A rule that is asked with symbols must decide for all extents at once ("N against 5 is 5"); asked with numbers it may
// refuse, or give another shape. Comparing both before a program is bound finds the runs that must be refused.
#pragma once
#include <tenon/irgen/from_graph.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::irgen {

// An error names the first operator of the part for which they differ.
TENON_API Result<void> check_shapes(const GraphPart& part, const GraphTypes& types, const OpPlans& plans,
                                    const SymbolValues& scalars);

}  // namespace tenon::irgen
