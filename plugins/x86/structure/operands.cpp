// Rows made by the passes of passes.hpp: arithmetic with a memory operand, other forms of multiply-add, prefetches.
#include "x86/names.hpp"
#include "x86/structure/internal.hpp"

namespace tenon::x86 {
namespace {

using Xbyak::Operand;
using Xbyak::Xmm;

bool has_flag(const Emission& e, Name name) {
  const Attribute* flag = e.attributes.find(name);
  return flag && flag->get_if<int64_t>() && *flag->get_if<int64_t>() != 0;
}

// NaN is irrelevant for these extrema, or is propagated by comparing bits (body/spared.hpp).
bool of_numbers_or_magnitudes(const codegen::Signature& signature) {
  return signature.attributes.has(kNumbers) || signature.attributes.has(kMagnitudes);
}

struct Operands {
  X86Context& c;
  const Emission& e;
  ElementType element = e.out[0].element;
  bool wide = element.bits() == 64;
  Xmm out = c.vector(e.out[0], e.lanes);

  Xmm in(size_t i) const { return c.vector(e.in[i], e.lanes); }
  Result<Xbyak::Address> memory() const {
    TENON_TRY(memory, memory_of(e, element));
    if (memory->element != element)
      return error(Code::internal, e.op, " of ", element, " with ", memory->element, " in memory");
    if (has_flag(e, "broadcast")) return c.address_broadcast(*memory);
    return c.address(*memory);
  }
};

Result<void> emit_add(X86Context& c, const Emission& e) {
  const Operands o{c, e};
  TENON_TRY(memory, o.memory());
  auto& g = c.gen();
  if (o.element.is_float())
    o.wide ? g.vaddpd(o.out, o.in(0), memory) : g.vaddps(o.out, o.in(0), memory);
  else
    o.wide ? g.vpaddq(o.out, o.in(0), memory) : g.vpaddd(o.out, o.in(0), memory);
  return {};
}

Result<void> emit_subtract(X86Context& c, const Emission& e) {
  const Operands o{c, e};
  TENON_TRY(memory, o.memory());
  auto& g = c.gen();
  if (o.element.is_float())
    o.wide ? g.vsubpd(o.out, o.in(0), memory) : g.vsubps(o.out, o.in(0), memory);
  else
    o.wide ? g.vpsubq(o.out, o.in(0), memory) : g.vpsubd(o.out, o.in(0), memory);
  return {};
}

Result<void> emit_multiply(X86Context& c, const Emission& e) {
  const Operands o{c, e};
  TENON_TRY(memory, o.memory());
  auto& g = c.gen();
  if (o.element.is_float())
    o.wide ? g.vmulpd(o.out, o.in(0), memory) : g.vmulps(o.out, o.in(0), memory);
  else
    g.vpmulld(o.out, o.in(0), memory);
  return {};
}

Result<void> emit_divide(X86Context& c, const Emission& e) {
  const Operands o{c, e};
  TENON_TRY(memory, o.memory());
  o.wide ? c.gen().vdivpd(o.out, o.in(0), memory) : c.gen().vdivps(o.out, o.in(0), memory);
  return {};
}

// Like the rows of Max and Min (emitters/compare.cpp): a NaN in memory is the result anyway; a NaN of a is restored.
template <bool kGreater>
Result<void> emit_extreme(X86Context& c, const Emission& e) {
  const Operands o{c, e};
  TENON_TRY(memory, o.memory());
  auto& g = c.gen();
  const Xmm a = o.in(0);
  const auto extreme = [&](const Xmm& y) {
    if (o.wide) return kGreater ? g.vmaxpd(y, a, memory) : g.vminpd(y, a, memory);
    kGreater ? g.vmaxps(y, a, memory) : g.vminps(y, a, memory);
  };
  if (has_flag(e, "magnitudes")) return g.vpmaxsd(o.out, a, memory), Result<void>();
  if (has_flag(e, "numbers")) return extreme(o.out), Result<void>();
  if (c.avx512()) {
    constexpr uint64_t kNaNs = 0x22;
    const ConstantOperand nans = c.kept_constant(o.wide ? kU64 : kU32, kNaNs, o.out.getBit());
    extreme(o.out);
    o.wide ? g.vfixupimmpd(o.out, a, nans, 0) : g.vfixupimmps(o.out, a, nans, 0);
    return {};
  }
  constexpr uint8_t kUnordered = 3;
  const Xmm nan = c.vector(e.vectors[0], o.out.getBit());
  o.wide ? g.vcmppd(nan, a, a, kUnordered) : g.vcmpps(nan, a, a, kUnordered);
  extreme(o.out);
  g.vorps(o.out, o.out, nan);
  return {};
}

// y = y * x + z and similar: the digits of the mnemonic say in which order operands are multiplied and added.
enum class Form : uint8_t { multiply_add, multiply_subtract, subtract_product };

void form_213(X86Context& c, Form form, bool wide, const Xmm& y, const Xmm& x, const Operand& z) {
  auto& g = c.gen();
  switch (form) {
    case Form::multiply_add: return wide ? g.vfmadd213pd(y, x, z) : g.vfmadd213ps(y, x, z);
    case Form::multiply_subtract: return wide ? g.vfmsub213pd(y, x, z) : g.vfmsub213ps(y, x, z);
    case Form::subtract_product: return wide ? g.vfnmadd213pd(y, x, z) : g.vfnmadd213ps(y, x, z);
  }
}
void form_231(X86Context& c, Form form, bool wide, const Xmm& y, const Xmm& x, const Operand& z) {
  auto& g = c.gen();
  switch (form) {
    case Form::multiply_add: return wide ? g.vfmadd231pd(y, x, z) : g.vfmadd231ps(y, x, z);
    case Form::multiply_subtract: return wide ? g.vfmsub231pd(y, x, z) : g.vfmsub231ps(y, x, z);
    case Form::subtract_product: return wide ? g.vfnmadd231pd(y, x, z) : g.vfnmadd231ps(y, x, z);
  }
}

// The result may share the register of any operand.
template <Form kForm>
Result<void> emit_fused(X86Context& c, const Emission& e) {
  const Operands o{c, e};
  const Xmm a = o.in(0), b = o.in(1), addend = o.in(2);
  if (o.out.getIdx() == addend.getIdx()) return form_231(c, kForm, o.wide, o.out, a, b), Result<void>();
  if (o.out.getIdx() == b.getIdx()) return form_213(c, kForm, o.wide, o.out, a, addend), Result<void>();
  c.move(o.out, a);
  form_213(c, kForm, o.wide, o.out, b, addend);
  return {};
}

Result<void> emit_fma_memory(X86Context& c, const Emission& e) {
  const Operands o{c, e};
  TENON_TRY(memory, o.memory());
  TENON_TRY(place, integer_attribute(e, "place"));
  const Xmm a = o.in(0), second = o.in(1);
  const bool same = o.out.getIdx() == second.getIdx();
  if (place == 2) {  // a * second + memory
    if (!same) c.move(o.out, a);
    form_213(c, Form::multiply_add, o.wide, o.out, same ? a : second, memory);
  } else if (same) {  // a * memory + second
    form_231(c, Form::multiply_add, o.wide, o.out, a, memory);
  } else {
    c.move(o.out, a);
    o.wide ? c.gen().vfmadd132pd(o.out, second, memory) : c.gen().vfmadd132ps(o.out, second, memory);
  }
  return {};
}

Result<void> emit_prefetch_write(X86Context& c, const Emission& e) {
  if (!e.memory) return error(Code::internal, e.op, " without memory");
  c.gen().prefetchw(c.address(*e.memory));
  return {};
}

Result<void> emit_prefetch_read(X86Context& c, const Emission& e) {
  if (!e.memory) return error(Code::internal, e.op, " without memory");
  const Xbyak::Address there = c.address(*e.memory);
  e.attributes.find("second") ? c.gen().prefetcht1(there) : c.gen().prefetcht0(there);
  return {};
}

}  // namespace

std::vector<JitterRow> operand_rows() {
  using codegen::kFloatLanes;
  const codegen::LaneTypes narrow = kFloatLanes | codegen::LaneTypes{kI32, kU32};
  std::vector<JitterRow> rows;
  rows.push_back({.op = "AddMemory", .types = codegen::kNumberLanes, .cycles = 0.5, .make = make_function<emit_add>});
  rows.push_back(
      {.op = "SubMemory", .types = codegen::kNumberLanes, .cycles = 0.5, .make = make_function<emit_subtract>});
  rows.push_back({.op = "MulMemory", .types = narrow, .cycles = 0.5, .make = make_function<emit_multiply>});
  rows.push_back({.op = "DivMemory", .types = kFloatLanes, .cycles = 10, .make = make_function<emit_divide>});
  rows.push_back({.op = "FmaMemory", .types = kFloatLanes, .cycles = 0.5, .make = make_function<emit_fma_memory>});
  for (const bool greater : {true, false}) {
    JitterRow row{.op = greater ? "MaxMemory" : "MinMemory", .types = kFloatLanes, .cycles = 0.5};
    row.make = greater ? make_function<emit_extreme<true>> : make_function<emit_extreme<false>>;
    row.accepts = of_numbers_or_magnitudes;
    rows.push_back(row);
    row.accepts = nullptr;
    row.feature = kAvx512Feature;
    row.cycles = 1;
    row.early_result = true;
    rows.push_back(row);
    row.feature = {}, row.without = kAvx512Feature;
    row.early_result = false;
    row.scratch = {.vectors = 1};
    row.cycles = 1.5;
    rows.push_back(row);
  }
  rows.push_back(
      {.op = "Fms", .types = kFloatLanes, .cycles = 0.5, .make = make_function<emit_fused<Form::multiply_subtract>>});
  rows.push_back(
      {.op = "Fnma", .types = kFloatLanes, .cycles = 0.5, .make = make_function<emit_fused<Form::subtract_product>>});
  rows.push_back({.op = "PrefetchWrite", .types = codegen::kAnyLanes, .make = make_function<emit_prefetch_write>});
  rows.push_back({.op = "PrefetchRead", .types = codegen::kAnyLanes, .make = make_function<emit_prefetch_read>});
  return rows;
}

}  // namespace tenon::x86
