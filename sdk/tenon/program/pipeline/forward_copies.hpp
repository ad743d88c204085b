// Copy forwarding: a copy of a copy reads from the source of the first one.
#pragma once
#include <tenon/program/ir/program.hpp>
#include <tenon/support/export.hpp>

namespace tenon::program {

//   copy %t(i, j) = %x(j, i)                 copy %t(i, j) = %x(j, i)      nothing reads it any more
//   copy %y(i, j) = %t(j, i + 2)      ->     copy %y(i, j) = %x(i + 2, j)
//
// Needs: a verified program. Keeps: what the program computes, and how much memory is live at a time: what is read
// instead of a local is live no longer than the local was, or is no larger. Considers only copies in the program's own
// body, not within loops or views, that fill a whole local. Leaves the first copy in place: simplify() drops it.
TENON_API Program forward_copies(Program program);

}  // namespace tenon::program
