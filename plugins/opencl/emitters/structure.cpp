// Parameters, constants, copies, loops and tails, folds over lanes.
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

// The value of these bits, in all lanes.
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

// `more`: what is added, as text.
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

// ---- Tails and folds ----

Result<void> emit_fill_tail(SourceContext& c, const Emission& e) {
  TENON_TRY(bits, integer_attribute(e, "bits"));
  const std::string filler = splat(e.out[0].element, str(static_cast<uint64_t>(bits), "ul"), c.lanes());
  const std::string operands[] = {filler, c.name(e.in[0]), c.name(e.in[1])};
  TENON_TRY(text, expand(c, "select($0, $1, $L($2))", {e.out[0].element, c.lanes(), operands}));
  c.assign(e.out[0], text);
  return {};
}

// The fold of what the items of a work group have, in all of them: halves upon halves in local memory.
Result<std::string> folded_items(SourceContext& c, std::string_view pattern, ElementType element,
                                 std::string_view own) {
  const std::string shared = c.shared_array(element), barrier = "barrier(CLK_LOCAL_MEM_FENCE);";
  // A vector of one lane is no vector: of two, the second lane is of no use.
  const std::string type = lanes_name(element, 2);
  const std::string operands[] = {str("(", type, ")(", shared, "[item])"), str("(", type, ")(", shared, "[item + n])")};
  TENON_TRY(text, expand(c, pattern, {element, 2, operands}));
  c.line(str(shared, "[item] = ", own, ";"));
  c.line(barrier);
  c.open(str("for (int n = ", c.items() / 2, "; n > 0; n /= 2)"));
  c.line(str("if (item < n) ", shared, "[item] = (", text, ").x;"));
  c.line(barrier);
  c.close();
  c.line(str("const ", scalar_name(element), " whole = ", shared, "[0];"));
  c.line(barrier);
  return std::string("whole");
}

// Halves upon halves; of the last two lanes the first, which all lanes get.
Result<void> emit_fold_lanes(SourceContext& c, const Emission& e) {
  const Attribute* by = e.attributes.find("by");
  const std::string* op = by ? by->get_if<std::string>() : nullptr;
  const ElementType element = e.out[0].element;
  const std::string_view pattern = op ? fold_pattern(*op, element) : std::string_view();
  if (pattern.empty()) return error(Code::internal, e.op, " by '", op ? *op : "", "'");
  std::string value = c.name(e.in[0]);
  c.open("");
  for (int lanes = c.lanes() / 2; lanes >= 1; lanes /= 2) {
    // A vector of one lane is no vector: of two, the second lane is of no use.
    const bool last = lanes == 1;
    const std::string operands[] = {last ? value : value + ".lo", last ? value + ".yx" : value + ".hi"};
    TENON_TRY(text, expand(c, pattern, {element, last ? 2 : lanes, operands}));
    const std::string next = str("t", lanes);
    c.line(str("const ", lanes_name(element, last ? 2 : lanes), " ", next, " = ", text, ";"));
    value = next;
  }
  value += ".x";
  if (c.items() > 1) {
    TENON_TRY(whole, folded_items(c, pattern, element, value));
    value = std::move(whole);
  }
  c.assign(e.out[0], str("(", lanes_name(element, c.lanes()), ")(", value, ")"));
  c.close();
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
      {.op = "FoldLanes", .types = kNumberLanes, .cycles = 16, .make = function_emitter<emit_fold_lanes>},
  };
  for (const JitterRow& row : rows) TENON_OK(add_row(table, row));
  return {};
}

}  // namespace tenon::opencl
