// Simplification: the same program with less work.
#pragma once
#include <tenon/program/ir/program.hpp>
#include <tenon/support/export.hpp>

namespace tenon::program {

// Needs: a verified program. Keeps: what the program computes, names, the order of the remaining statements. Afterwards
// there is no:
//   - loop that certainly has no iteration or an empty body; loop with certainly one iteration (its body replaces it)
//   - call or copy whose predicate is 0, or whose results are read only by statements that are dropped themselves
//   - check that certainly holds
//   - unused allocation or local, let or view whose name is unused, let of a constant or a symbol
// and every expression is simplified as far as the enclosing loops allow. Repeats until nothing changes.
TENON_API Program simplify(Program program);

// Drops calls and copies whose results nothing needs, and their locals: one visit of each statement, where simplify()
// visits each several times. Enough for programs without loops and expressions to simplify, such as those of large
// graphs.
TENON_API Program without_dead_stores(Program program);

}  // namespace tenon::program
