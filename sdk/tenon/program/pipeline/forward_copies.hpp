// Copies of copies read where the first one has read.
#pragma once
#include <tenon/program/ir/program.hpp>
#include <tenon/support/export.hpp>

namespace tenon::program {

//   copy %t(i, j) = %x(j, i)                 copy %t(i, j) = %x(j, i)      nothing reads it any more
//   copy %y(i, j) = %t(j, i + 2)      ->     copy %y(i, j) = %x(i + 2, j)
//
// Needs: a verified program. Keeps: what the program computes, and how much memory is alive at a time: what is read
// instead of a local is not longer alive than the local was, or not larger. Looks at copies that stand in the program
// itself, not within loops or views, and fill a whole local. Leaves the first copy as it is: simplify() drops it.
TENON_API Program forward_copies(Program program);

}  // namespace tenon::program
