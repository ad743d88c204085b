// The same program with less to do.
#pragma once
#include <tenon/program/ir/program.hpp>
#include <tenon/support/export.hpp>

namespace tenon::program {

// Needs: a verified program. Keeps: what the program computes, names, the order of what is left. Leaves no:
//   - loop that certainly has no iteration or nothing in it; loop with certainly one iteration (its body instead)
//   - call or copy whose predicate is 0, or whose results nothing reads but what is of no use itself; check that
//     certainly holds
//   - allocation or local that nothing uses, let or view whose name nothing uses, let of a constant or a symbol
// and no expression that is simpler under what is known of the loops around. Until nothing changes.
TENON_API Program simplify(Program program);

// Drops calls and copies whose results nothing needs, and locals of theirs: one look at each statement, where
// simplify() looks at each several times. Enough for programs that are made without loops and expressions in need of
// it, as large graphs are.
TENON_API Program without_dead_stores(Program program);

}  // namespace tenon::program
