// Contract mode: does a kernel keep to the boxes that its call declares?
#pragma once
#include <span>

#include <tenon/program/ir/program.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::program {

// Runs the kernel of `call` on copies of its operands (views as a run would give them: cropped to their boxes), each in
// memory of its own with a margin of kContractMargin elements around the box in each direction of each dim; ring
// buffers keep their places, so that all places outside of the box are margin. Then:
//   - a margin or place outside of a box that has changed: the kernel writes too much;
//   - `in` operands that have changed: it writes what it may only read;
//   - results that depend on what fills the margins: it reads too much. The kernel runs once more with another filling,
//     and when results differ, once for each side of each dim, to say which;
//   - results that depend on what fills `out` operands before: it leaves elements unwritten, or reads them.
// Errors (Code::invalid_argument) name stage, operand and dim. When all is well the results are written to the
// operands. Needs a kernel that gives the same results for the same operands.
TENON_API Result<void> call_checked(const Program& program, const Call& call, const CallContext& context);

inline constexpr int64_t kContractMargin = 8;

}  // namespace tenon::program
