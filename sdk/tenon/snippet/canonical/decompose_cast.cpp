// Conversions.
#include <tenon/snippet/canonical/rebuild_internal.hpp>

namespace tenon::snippet {
namespace {

Result<ValueId> cast(Rebuild& r) { return r.cast(r.in(0), r.element(0), r.out()); }

// For the second operand only the type is used: it is not read.
Result<Space> cast_like_space(const Op& op) {
  TENON_TRY(space, folding_space(op, {}));
  TENON_OK(space.set(*op.result(0), *space.find(*op.operand(0))));
  return space;
}

// Lanes hold the bits of elements of 32 and 64 bits, and bf16 in their upper half. The bits of f16 exist only in
// memory, and a result of bf16 would be stored with other NaNs.
Result<ValueId> bit_cast(Rebuild& r) {
  const ElementType from = r.element(0), to = r.out(), lane = codegen::lane_type(to);
  const ValueId x = r.in(0);
  if (from == to || !(from.is_float() || to.is_float())) return r.cast(x, from, to);
  if (from.bits() >= 32) return r.node_of(lane, "BitCast", {x});
  if (from != kBF16 || to == kF16)
    return error(Code::unsupported, r.op().describe(), " reads the bits of ", from, " as ", to);
  const ValueId bits = r.node_of(kU32, "BitCast", {x});
  return r.cast(r.node("ShiftRight", {bits, r.scalar_like(bits, 16)}), kU16, to);
}

}  // namespace

DecomposeRows cast_rows() {
  return {
      {.op = "Cast", .space = broadcast_space, .rebuild = cast, .exact = true},
      {.op = "CastLike", .space = cast_like_space, .rebuild = cast, .exact = true},
      {.op = "BitCast", .space = broadcast_space, .rebuild = bit_cast, .exact = true},
  };
}

}  // namespace tenon::snippet
