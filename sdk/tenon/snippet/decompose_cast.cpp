// Conversions.
#include <tenon/snippet/decompose.hpp>

namespace tenon::snippet {
namespace {

Result<ValueId> cast(Rebuild& r) { return r.cast(r.in(0), r.element(0), r.out()); }

// Of the second operand only the type is known already: it is not read.
Result<Space> cast_like_space(const Op& op) {
  TENON_TRY(space, folding_space(op, {}));
  TENON_OK(space.set(*op.result(0), *space.find(*op.operand(0))));
  return space;
}

}  // namespace

DecomposeRows cast_rows() {
  return {
      {.op = "Cast", .space = broadcast_space, .rebuild = cast, .exact = true},
      {.op = "CastLike", .space = cast_like_space, .rebuild = cast, .exact = true},
  };
}

}  // namespace tenon::snippet
