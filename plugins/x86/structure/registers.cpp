// Parameters, constants, copies, and frame slots.
#include "x86/structure/internal.hpp"

namespace tenon::x86 {
namespace {

Result<void> emit_parameter(X86Context& c, const Emission& e) {
  c.gen().mov(c.general(e.out[0]), c.param(e.number));
  return {};
}

Result<void> emit_zero(X86Context& c, const Emission& e) {
  const Xbyak::Reg32 out = c.general(e.out[0]).cvt32();
  c.gen().xor_(out, out);
  return {};
}

Result<void> emit_add_parameter(X86Context& c, const Emission& e) {
  const Xbyak::Reg64 out = c.general(e.out[0]), in = c.general(e.in[0]);
  if (const auto known = known_param(e)) {
    c.gen().lea(out, c.gen().ptr[in + *known]);
    return {};
  }
  c.move(out, in);
  c.gen().add(out, c.param(e.number));
  return {};
}

Result<void> emit_number(X86Context& c, const Emission& e) {
  TENON_TRY(value, integer_attribute(e, "value"));
  c.gen().mov(c.general(e.out[0]), value);
  return {};
}

// out = all lanes true or all false.
void emit_constant_mask(X86Context& c, const Emission& e, bool value) {
  if (!c.avx512()) return c.broadcast(c.vector(e.out[0], e.lanes), kI32, value ? ~uint64_t{0} : 0);
  const Xbyak::Opmask out = c.mask(e.out[0]);
  value ? c.gen().kxnorw(out, out, out) : c.gen().kxorw(out, out, out);
}

Result<void> emit_scalar(X86Context& c, const Emission& e) {
  TENON_TRY(bits, integer_attribute(e, "bits"));
  const ElementType element = e.out[0].element;
  if (element.is_bool())
    emit_constant_mask(c, e, bits != 0);
  else
    c.broadcast(c.vector(e.out[0], e.lanes), element, static_cast<uint64_t>(bits));
  return {};
}

Result<void> emit_broadcast_parameter(X86Context& c, const Emission& e) {
  const Xbyak::Xmm out = c.vector(e.out[0], e.lanes);
  if (e.out[0].element.is_bool())
    return error(Code::internal, "BroadcastParameter of lanes of bool: a param is a number");
  if (e.out[0].element.bits() == 64)
    c.gen().vpbroadcastq(out, c.param(e.number));
  else
    c.gen().vpbroadcastd(out, c.param(e.number));
  return {};
}

Result<void> emit_copy(X86Context& c, const Emission& e) {
  const EmitValue &in = e.in[0], &out = e.out[0];
  if (in.at.file != out.at.file) {
    return error(Code::internal, e.op, " from a ", register_file_name(in.at.file), " register to a ",
                 register_file_name(out.at.file), " one");
  }
  switch (out.at.file) {
    case RegisterFile::vector: c.move(c.vector(out, e.lanes), c.vector(in, e.lanes)); break;
    case RegisterFile::mask: c.move(c.mask(out), c.mask(in)); break;
    case RegisterFile::general: c.move(c.general(out), c.general(in)); break;
  }
  return {};
}

Result<void> emit_spill(X86Context& c, const Emission& e) {
  const EmitValue& in = e.in[0];
  switch (in.at.file) {
    case RegisterFile::vector: c.gen().vmovups(c.slot(e.number), c.vector(in, e.lanes)); break;
    case RegisterFile::mask: c.gen().kmovq(c.slot(e.number), c.mask(in)); break;
    case RegisterFile::general: c.gen().mov(c.slot(e.number), c.general(in)); break;
  }
  return {};
}

Result<void> emit_reload(X86Context& c, const Emission& e) {
  const EmitValue& out = e.out[0];
  switch (out.at.file) {
    case RegisterFile::vector: c.gen().vmovups(c.vector(out, e.lanes), c.slot(e.number)); break;
    case RegisterFile::mask: c.gen().kmovq(c.mask(out), c.slot(e.number)); break;
    case RegisterFile::general: c.gen().mov(c.general(out), c.slot(e.number)); break;
  }
  return {};
}

}  // namespace

std::vector<JitterRow> register_rows() {
  const codegen::LaneTypes general{kI64};
  std::vector<JitterRow> rows;
  rows.push_back({.op = "Parameter", .types = general, .make = make_function<emit_parameter>});
  rows.push_back({.op = "Zero", .types = general, .cycles = 0.25, .make = make_function<emit_zero>});
  rows.push_back({.op = "Number", .types = general, .cycles = 0.25, .make = make_function<emit_number>});
  rows.push_back({.op = "AddParameter", .types = general, .make = make_function<emit_add_parameter>});
  rows.push_back(
      {.op = "BroadcastParameter", .types = codegen::kNumberLanes, .make = make_function<emit_broadcast_parameter>});
  rows.push_back({.op = "Scalar", .types = codegen::kAnyLanes, .cycles = 0.5, .make = make_function<emit_scalar>});
  for (const char* op : {"Copy", "Move"})
    rows.push_back({.op = op, .types = codegen::kAnyLanes, .cycles = 0.5, .make = make_function<emit_copy>});
  rows.push_back({.op = "BitCast",
                  .types = codegen::kNumberLanes,
                  .cycles = 0.5,
                  .make = make_function<emit_copy>,
                  .accepts = [](const codegen::Signature& s) { return s.in[0].bits() == s.out[0].bits(); }});
  rows.push_back({.op = "Spill", .types = codegen::kAnyLanes, .make = make_function<emit_spill>});
  rows.push_back({.op = "Reload", .types = codegen::kAnyLanes, .make = make_function<emit_reload>});
  return rows;
}

}  // namespace tenon::x86
