// Conversions.
#include <tenon/snippet/decompose.hpp>

namespace tenon::snippet {
namespace {

Result<ValueId> cast(Rebuild& r) { return r.cast(r.in(0), r.element(0), r.out()); }

// Of the second operand only the type is known already: it is not read.
Result<Space> cast_like_space(const Op& op) { return folding_space(op, {}); }

}  // namespace

DecomposeRows cast_rows() {
  return {
      {.op = "Cast", .space = broadcast_space, .rebuild = cast, .exact = true},
      {.op = "CastLike", .space = cast_like_space, .rebuild = cast, .exact = true},
  };
}

}  // namespace tenon::snippet
