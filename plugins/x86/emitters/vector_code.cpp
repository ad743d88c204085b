#include "x86/emitters/vector_code.hpp"

namespace tenon::x86 {
namespace {

ElementType work_element(const codegen::Emission& emission) {
  for (const auto side : {emission.in, emission.out})
    for (const codegen::EmitValue& value : side)
      if (!value.element.is_bool()) return value.element;
  return kBool;
}

}  // namespace

VectorCode::VectorCode(X86Context& context, const codegen::Emission& emission)
    : context_(context), emission_(emission), element_(work_element(emission)) {
  work_bits_ = emission.lanes * (element_.is_bool() ? mask_bits(emission.lanes) : element_.bits());
}

int VectorCode::next(std::span<const int> scratch, size_t& taken) {
  const size_t i = taken++;
  if (i < scratch.size()) return scratch[i];
  starved_ = true;
  return 0;
}

Result<void> VectorCode::finish() const {
  if (!starved_) return {};
  return error(Code::internal, "the row of ", emission_.op,
               " has too few scratch registers: ", emission_.vectors.size(), " vectors, ", emission_.masks.size(),
               " masks");
}

Mask VectorCode::mask_temp() {
  if (avx512()) return {next(emission_.masks, masks_), 0};
  return {next(emission_.vectors, vectors_), work_bits_};
}

Mask VectorCode::mask_in(size_t i) {
  const int number = emission_.in[i].at.number;
  if (avx512() || work_bits_ == vector_bits(Isa::avx2)) return {number, work_bits_};
  const Mask narrow = mask_temp();
  context_.narrow_mask(vector(narrow), X86Context::ymm(number));
  return narrow;
}

void VectorCode::deliver(const Mask& mask) {
  const int out = emission_.out[0].at.number;
  if (avx512()) return context_.move(Xbyak::Opmask(out), opmask(mask));
  if (mask.bits == vector_bits(Isa::avx2)) return context_.move(X86Context::ymm(out), vector(mask));
  context_.widen_mask(X86Context::ymm(out), vector(mask));
}

void VectorCode::round(const Vec& out, const Xbyak::Operand& in, Rounding mode) {
  const auto immediate = static_cast<uint8_t>(mode);
  Xbyak::CodeGenerator& gen = context_.gen();
  if (avx512()) return wide() ? gen.vrndscalepd(out, in, immediate) : gen.vrndscaleps(out, in, immediate);
  wide() ? gen.vroundpd(out, in, immediate) : gen.vroundps(out, in, immediate);
}

void VectorCode::compare(const Mask& out, Compare how, const Vec& a, const Xbyak::Operand& b) {
  const auto predicate = static_cast<uint8_t>(how);
  Xbyak::CodeGenerator& gen = context_.gen();
  if (avx512()) return wide() ? gen.vcmppd(opmask(out), a, b, predicate) : gen.vcmpps(opmask(out), a, b, predicate);
  wide() ? gen.vcmppd(vector(out), a, b, predicate) : gen.vcmpps(vector(out), a, b, predicate);
}

Mask VectorCode::negative(const Mask& out, const Vec& in) {
  if (!avx512()) return {in.getIdx(), work_bits_};
  wide() ? context_.gen().vpmovq2m(opmask(out), in) : context_.gen().vpmovd2m(opmask(out), in);
  return out;
}

void VectorCode::select(const Vec& out, const Mask& mask, const Xbyak::Operand& yes, const Vec& no) {
  Xbyak::CodeGenerator& gen = context_.gen();
  if (avx512()) return wide() ? gen.vblendmpd(out | opmask(mask), no, yes) : gen.vblendmps(out | opmask(mask), no, yes);
  wide() ? gen.vblendvpd(out, no, yes, vector(mask)) : gen.vblendvps(out, no, yes, vector(mask));
}

void VectorCode::keep(const Vec& out, const Mask& mask, const Vec& in) {
  Xbyak::CodeGenerator& gen = context_.gen();
  if (!avx512()) return gen.vandps(out, in, vector(mask));
  wide() ? gen.vmovapd(out | opmask(mask) | Xbyak::util::T_z, in)
         : gen.vmovaps(out | opmask(mask) | Xbyak::util::T_z, in);
}

void VectorCode::drop(const Vec& out, const Mask& mask, const Vec& in) {
  Xbyak::CodeGenerator& gen = context_.gen();
  if (!avx512()) return gen.vandnps(out, vector(mask), in);
  move(out, in);
  gen.vxorps(out | opmask(mask), out, out);
}

void VectorCode::join_sign(const Vec& out, const Vec& magnitude, const Vec& sign) {
  constexpr uint32_t kSign = 0x80000000;
  Xbyak::CodeGenerator& gen = context_.gen();
  if (avx512()) {
    gen.vpternlogd(magnitude, sign, u32(kSign), 0xf8);  // first | (second & third)
    return move(out, magnitude);
  }
  const Scope scope(*this);
  const Vec bit = temp();
  gen.vandps(bit, sign, u32(kSign));
  gen.vorps(out, magnitude, bit);
}

void VectorCode::look_up(const Vec& out, const Vec& index, std::span<const uint32_t> entries, Held held) {
  const ConstantOperand table = context_.kept_table(entries);
  const int to = out.getIdx(), by = index.getIdx();
  if (entries.size() == 32) {
    constexpr size_t kBytes = 64;  // of a register
    context_.gen().vmovups(X86Context::zmm(to), table);
    return context_.gen().vpermt2ps(X86Context::zmm(to), X86Context::zmm(by), context_.kept_table(entries, kBytes));
  }
  if (to != by && held == Held::anything) cut_dependency(out);
  if (avx512()) return context_.gen().vpermps(X86Context::zmm(to), X86Context::zmm(by), table);
  context_.gen().vpermps(X86Context::ymm(to), X86Context::ymm(by), table);
}

void VectorCode::divide_product(const Vec& out, const Vec& a, const Vec& b, const Vec& d) {
  Xbyak::CodeGenerator& gen = context_.gen();
  const Scope scope(*this);
  const Vec product = temp(), reciprocal = temp(), quotient = temp();
  gen.vmulps(product, a, b);
  gen.vfmsub213ps(a, b, product);  // the rounding error of the product
  if (avx512()) {
    gen.vrcp14ps(reciprocal, d);
    gen.vmulps(quotient, product, reciprocal);
  } else {
    gen.vrcpps(reciprocal, d);
    gen.vdivps(quotient, product, d);
  }
  gen.vfmsub213ps(d, quotient, product);  // the excess of the quotient
  gen.vsubps(d, d, a);
  gen.vfnmadd213ps(d, reciprocal, quotient);
  move(out, d);
}

void VectorCode::multiply_add_down(const Vec& out, const Vec& a, const Vec& b) {
  Xbyak::CodeGenerator& gen = context_.gen();
  const size_t begin = gen.getSize();
  gen.vfmadd213ps(at(out, 512), at(a, 512), at(b, 512));
  // Xbyak 6 cannot encode rounding modes of multiply-adds. In the last of the four prefix bytes, one bit selects a
  // static rounding mode, which then replaces the vector length (Intel's manual, volume 2, 2.7.1).
  constexpr size_t kLast = 3;
  constexpr uint8_t kOwnMode = 0x10, kLength = 0x60, kDown = 0x20;
  const uint8_t last = gen.getCode()[begin + kLast];
  gen.rewrite(begin + kLast, static_cast<uint8_t>((last & ~kLength) | kOwnMode | kDown), 1);
}

void VectorCode::polynomial(const Vec& out, const Vec& x, std::span<const float> coefficients) {
  set(out, coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) context_.gen().vfmadd213ps(out, x, f32(coefficients[i]));
}

}  // namespace tenon::x86
