// Contract mode: checks that a kernel accesses only the boxes that its call declares.
#pragma once
#include <span>

#include <tenon/program/ir/program.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::program {

// Runs the kernel of `call` on copies of its operands (views as in a run: cropped to their boxes). Each copy is in
// memory of its own, with a margin of kContractMargin elements around the box in each direction of each dim. Ring
// buffers keep their places, so all places outside the box are margin. Then it reports:
//   - a margin or place outside a box that has changed: the kernel writes too much;
//   - `in` operands that have changed: the kernel writes what it may only read;
//   - results that depend on the contents of the margins: the kernel reads too much. It runs once more with other
//     contents, and when results differ, once for each side of each dim, to identify the side;
//   - results that depend on the earlier contents of `out` operands: it leaves elements unwritten, or reads them.
// Errors (Code::invalid_argument) name stage, operand and dim. Without an error, the results are written to the
// operands. Needs a kernel that gives the same results for the same operands.
TENON_API Result<void> call_checked(const Program& program, const Call& call, const CallContext& context);

inline constexpr int64_t kContractMargin = 8;

}  // namespace tenon::program
