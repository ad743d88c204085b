// Parameters, constants, copies, loops and tails.
#include <tenon/support/str.hpp>

#include "opencl/emitters/emitters.hpp"
#include "opencl/emitters/pattern.hpp"

namespace tenon::opencl {
namespace {

using namespace codegen;

Result<int64_t> integer_attribute(const Emission& e, Name name) {
  const Attribute* attribute = e.attributes.find(name);
  if (attribute && attribute->get_if<int64_t>()) return *attribute->get_if<int64_t>();
  return error(Code::internal, e.op, " has no integer attribute '", name, "'");
}

// A value with these bits in all lanes.
std::string splat(ElementType element, std::string_view bits, int lanes) {
  const std::string type = lanes_name(element, lanes);
  if (element.is_bool()) return str("(", type, ")((", bits, ") != 0 ? -1 : 0)");
  return str("(", type, ")(as_", scalar_name(element), element.bits() == 64 ? "((ulong)" : "((uint)", bits, "))");
}

// ---- Registers ----

Result<void> emit_parameter(SourceContext& c, const Emission& e) {
  if (c.param(e.number).kind == snippet::Param::Kind::pointer)
    c.line(str(c.write_pointer(e.out[0].at), " = ", c.port(e.number), " + w", e.number, ";"));
  else
    c.line(str(c.write_counter(e.out[0].at), " = w", e.number, ";"));
  return {};
}

Result<void> emit_zero(SourceContext& c, const Emission& e) {
  c.line(str(c.write_counter(e.out[0].at), " = 0;"));
  return {};
}

// `more`: text of what is added.
void move_general(SourceContext& c, const Emission& e, std::string_view more) {
  const bool points = c.points(e.in[0].at);
  const std::string from = points ? c.pointer(e.in[0].at) : c.counter(e.in[0].at);
  c.line(str(points ? c.write_pointer(e.out[0].at) : c.write_counter(e.out[0].at), " = ", from, more, ";"));
}

Result<void> emit_add_parameter(SourceContext& c, const Emission& e) {
  move_general(c, e, str(" + w", e.number));
  return {};
}

Result<void> emit_copy(SourceContext& c, const Emission& e) {
  if (e.out[0].at.file == RegisterFile::general)
    move_general(c, e, {});
  else
    c.assign(e.out[0], c.name(e.in[0]));
  return {};
}

Result<void> emit_scalar(SourceContext& c, const Emission& e) {
  TENON_TRY(bits, integer_attribute(e, "bits"));
  c.assign(e.out[0], splat(e.out[0].element, str(static_cast<uint64_t>(bits), "ul"), c.lanes()));
  return {};
}

Result<void> emit_broadcast_parameter(SourceContext& c, const Emission& e) {
  c.assign(e.out[0], splat(e.out[0].element, str("w", e.number), c.lanes()));
  return {};
}

// ---- Loops ----

Result<void> emit_loop_begin(SourceContext& c, const Emission& e) {
  TENON_TRY(limit, integer_attribute(e, "limit"));
  TENON_TRY(increment, integer_attribute(e, "increment"));
  const std::string counter = c.counter(e.in[0].at);
  c.open(str("for (; ", counter, " <= w", limit, "; ", counter, " += ", increment, ")"));
  return {};
}

Result<void> emit_end(SourceContext& c, const Emission&) {
  c.close();
  c.memory_barrier();
  return {};
}

Result<void> emit_tail_begin(SourceContext& c, const Emission& e) {
  TENON_TRY(limit, integer_attribute(e, "limit"));
  const std::string from = c.counter(e.in[0].at), count = c.write_counter(e.out[1].at);
  c.line(str(count, " = w", limit, " - ", from, ";"));
  c.open(str("if (", count, " > 0)"));
  std::string numbers;
  for (int lane = 0; lane < c.lanes(); ++lane) numbers += str(lane == 0 ? "" : ", ", lane);
  c.assign(e.out[0], str("(int", c.lanes(), ")((int)", c.own_count(count), ") > (int", c.lanes(), ")(", numbers, ")"));
  return {};
}

// ---- Tails ----

Result<void> emit_fill_tail(SourceContext& c, const Emission& e) {
  TENON_TRY(bits, integer_attribute(e, "bits"));
  const std::string filler = splat(e.out[0].element, str(static_cast<uint64_t>(bits), "ul"), c.lanes());
  const std::string operands[] = {filler, c.name(e.in[0]), c.name(e.in[1])};
  TENON_TRY(text, expand(c, "select($0, $1, $L($2))", {e.out[0].element, c.lanes(), operands}));
  c.assign(e.out[0], text);
  return {};
}

}  // namespace

Result<void> add_structure_rows(JitterTable& table) {
  const LaneTypes general{kI64};
  const JitterRow rows[] = {
      {.op = "Parameter", .types = general, .make = function_emitter<emit_parameter>},
      {.op = "Zero", .types = general, .make = function_emitter<emit_zero>},
      {.op = "AddParameter", .types = general, .make = function_emitter<emit_add_parameter>},
      {.op = "Copy", .types = kAnyLanes, .make = function_emitter<emit_copy>},
      {.op = "Move", .types = kAnyLanes, .make = function_emitter<emit_copy>},
      {.op = "Scalar", .types = kAnyLanes, .make = function_emitter<emit_scalar>},
      {.op = "BroadcastParameter", .types = kNumberLanes, .make = function_emitter<emit_broadcast_parameter>},
      {.op = "LoopBegin", .types = general, .make = function_emitter<emit_loop_begin>},
      {.op = "LoopEnd", .types = general, .make = function_emitter<emit_end>},
      {.op = "TailBegin", .types = general, .make = function_emitter<emit_tail_begin>},
      {.op = "TailEnd", .types = general, .make = function_emitter<emit_end>},
      {.op = "FillTail", .types = kNumberLanes, .make = function_emitter<emit_fill_tail>},
  };
  for (const JitterRow& row : rows) TENON_OK(add_row(table, row));
  return {};
}

}  // namespace tenon::opencl
