// Convert, Round, Wrap and BitCast.
#include <tenon/support/str.hpp>

#include "opencl/emitters/emitters.hpp"
#include "opencl/emitters/pattern.hpp"

namespace tenon::opencl {
namespace {

using namespace codegen;

// Floats to integers truncate and saturate, NaN gives 0; integers keep their low bits; to floats: nearest even.
std::string converted(const std::string& value, ElementType from, ElementType to, int lanes) {
  const std::string convert = str("convert_", lanes_name(to, lanes));
  if (to.is_bool()) {
    const std::string unequal = str(value, " != (", lanes_name(from, lanes), ")0");
    return from.bits() == 64 ? str("convert_int", lanes, "(", unequal, ")") : unequal;
  }
  if (from.is_bool()) return str(convert, "(", value, " & 1)");
  if (from.is_float() && to.is_int()) return str(convert, "_sat(", value, ")");
  return str(convert, "(", value, ")");
}

Result<void> emit_convert(SourceContext& c, const Emission& e) {
  const EmitValue &in = e.in[0], &out = e.out[0];
  c.assign(out, in.element == out.element ? c.name(in) : converted(c.name(in), in.element, out.element, c.lanes()));
  return {};
}

Result<ElementType> target_of(const Emission& e) {
  const Attribute* to = e.attributes.find("to");
  const std::string* name = to ? to->get_if<std::string>() : nullptr;
  for (const ElementType type : {kF16, kBF16, kI8, kI16, kU8, kU16})
    if (name && *name == type.to_string()) return type;
  return error(Code::internal, e.op, " to '", name ? *name : std::string(), "'");
}

Result<void> emit_round(SourceContext& c, const Emission& e) {
  TENON_TRY(to, target_of(e));
  const bool half = to == kF16;
  std::string_view pattern = half ? "@from_half(@to_half($0))" : "@from_bfloat(@to_bfloat($0))";
  if (e.out[0].element == kF64) pattern = half ? "@round_half($0)" : "@round_bfloat($0)";
  const std::string operand = c.name(e.in[0]);
  TENON_TRY(text, expand(c, pattern, {e.out[0].element, c.lanes(), std::span(&operand, 1)}));
  c.assign(e.out[0], text);
  return {};
}

Result<void> emit_wrap(SourceContext& c, const Emission& e) {
  TENON_TRY(to, target_of(e));
  c.assign(e.out[0], str("convert_", lanes_name(e.out[0].element, c.lanes()), "(convert_", scalar_name(to), c.lanes(),
                         "(", c.name(e.in[0]), "))"));
  return {};
}

// Between types of the same width; not for booleans.
Result<void> emit_bit_cast(SourceContext& c, const Emission& e) {
  c.assign(e.out[0], str("as_", lanes_name(e.out[0].element, c.lanes()), "(", c.name(e.in[0]), ")"));
  return {};
}

}  // namespace

Result<void> add_convert_rows(JitterTable& table) {
  TENON_OK(
      add_row(table, {.op = "Convert", .types = kNumberLanes, .cycles = 2, .make = function_emitter<emit_convert>}));
  TENON_OK(add_row(table, {.op = "Round", .types = kFloatLanes, .cycles = 8, .make = function_emitter<emit_round>}));
  TENON_OK(
      add_row(table, {.op = "BitCast", .types = kNumberLanes, .cycles = 0, .make = function_emitter<emit_bit_cast>}));
  return add_row(table, {.op = "Wrap", .types = {kI32, kU32}, .cycles = 2, .make = function_emitter<emit_wrap>});
}

}  // namespace tenon::opencl
