// Comparison, logic, bits and selection.
#include <cmath>
#include <limits>

#include <tenon/snippet/canonical/rebuild_internal.hpp>

namespace tenon::snippet {
namespace {

Result<ValueId> compared(Rebuild& r) { return r.compare(r.op().name(), r.in(0), r.in(1)); }

Result<ValueId> equal(Rebuild& r) {
  if (!r.element(0).is_bool()) return compared(r);
  return r.node("Not", {r.node("Xor", {r.in(0), r.in(1)})});
}

Result<ValueId> is_nan(Rebuild& r) { return r.compare("NotEqual", r.in(0), r.in(0)); }

Result<ValueId> is_inf(Rebuild& r) {
  const bool positive = r.op().attr<int64_t>("detect_positive", 1) != 0;
  const bool negative = r.op().attr<int64_t>("detect_negative", 1) != 0;
  const ValueId x = r.in(0);
  const double infinity = std::numeric_limits<double>::infinity();
  if (positive && negative) return r.compare("Equal", r.node("Abs", {x}), r.scalar_like(x, infinity));
  if (!positive && !negative) return r.spread(r.scalar_bits(kBool, 0), x);
  return r.compare("Equal", x, r.scalar_like(x, positive ? infinity : -infinity));
}

// 1 where x is above the threshold, else 0, in x's type. Integers are compared in f64.
Result<ValueId> binarized(Rebuild& r) {
  const ElementType element = r.element(0);
  const ValueId x = r.convert(r.in(0), element.is_float() ? r.lane(r.in(0)) : kF64);
  return r.convert(r.compare("Greater", x, r.scalar_like(x, r.real("threshold", 0))), codegen::lane_type(element));
}

Result<ValueId> shift(Rebuild& r) {
  return r.node(r.op().attr<std::string>("direction") == "LEFT" ? "ShiftLeft" : "ShiftRight", {r.in(0), r.in(1)});
}

}  // namespace

DecomposeRows logic_rows() {
  return {
      {.op = "Equal", .space = broadcast_space, .rebuild = equal, .exact = true},
      {.op = "Less", .space = broadcast_space, .rebuild = compared, .exact = true},
      {.op = "LessOrEqual", .space = broadcast_space, .rebuild = compared, .exact = true},
      {.op = "Greater", .space = broadcast_space, .rebuild = compared, .exact = true},
      {.op = "GreaterOrEqual", .space = broadcast_space, .rebuild = compared, .exact = true},
      {.op = "And", .space = broadcast_space},
      {.op = "Or", .space = broadcast_space},
      {.op = "Xor", .space = broadcast_space},
      {.op = "Not", .space = broadcast_space},
      {.op = "Where", .space = broadcast_space, .exact = true},
      {.op = "IsNaN", .space = broadcast_space, .rebuild = is_nan, .exact = true},
      {.op = "IsInf", .space = broadcast_space, .rebuild = is_inf, .exact = true},
      {.op = "BitwiseAnd", .space = broadcast_space, .exact = true},
      {.op = "BitwiseOr", .space = broadcast_space, .exact = true},
      {.op = "BitwiseXor", .space = broadcast_space, .exact = true},
      {.op = "BitwiseNot", .space = broadcast_space},
      {.op = "BitShift", .space = broadcast_space, .rebuild = shift},
      {.op = "ai.onnx.ml.Binarizer", .space = broadcast_space, .rebuild = binarized, .exact = true},
  };
}

}  // namespace tenon::snippet
