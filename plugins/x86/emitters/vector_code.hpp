// VectorCode: what emitters of elementwise operators write code with. It has the registers of one emission at their
// widths, scratch registers, broadcast constants, and steps that differ between the two instruction sets. An algorithm
// is written once, as a function of a VectorCode; instructions that both sets have under one name are called directly:
//
//   void softsign(VectorCode& c) {          // x / (1 + |x|)
//     const Vec t = c.temp();
//     c->vandps(t, c.in(0), c.u32(0x7fffffff));
//     c->vaddps(t, t, c.f32(1));
//     c->vdivps(c.out(), c.in(0), t);
//   }
//
// The result may share a register with an operand: an algorithm writes it last, or when no operand is read any more.
// One emission, one thread.
#pragma once
#include <bit>

#include "x86/assembly/context.hpp"

namespace tenon::x86 {

using Vec = Xbyak::Xmm;  // an Xmm, Ymm or Zmm

// Lanes of booleans: an opmask (avx512), or a vector whose lanes have all bits equal and are as wide as the values that
// were compared (avx2).
struct Mask {
  int number = 0;
  int bits = 0;  // of the vector, avx2
};

// Predicates of vcmpps: quiet; false where an operand is NaN, except for not_equal and unordered.
enum class Compare : uint8_t {
  equal = 0,
  unordered = 3,
  not_equal = 4,
  less = 0x11,
  less_equal = 0x12,
  greater_equal = 0x1d,
  greater = 0x1e,
};
// Rounding to integers: the immediate of vroundps, without the inexact exception.
enum class Rounding : uint8_t { nearest_even = 8, down = 9, up = 10, to_zero = 11 };

class VectorCode {
 public:
  // Borrows both arguments.
  VectorCode(X86Context& context, const codegen::Emission& emission);

  bool avx512() const { return context_.avx512(); }
  X86Context& context() { return context_; }
  Xbyak::CodeGenerator* operator->() { return &context_.gen(); }
  const codegen::Emission& emission() const { return emission_; }
  int lanes() const { return emission_.lanes; }
  // The type that the operator works in: that of the first operand or result that is not boolean; bool if all are.
  ElementType element() const { return element_; }
  bool is(ElementType element) const { return element_ == element; }
  bool wide() const { return element_.bits() == 64; }

  // ---- Registers ----
  Vec in(size_t i) const { return context_.vector(emission_.in[i], lanes()); }
  Vec out() const { return context_.vector(emission_.out[0], lanes()); }
  // The same register at another width.
  static Vec at(const Vec& register_, int bits) { return X86Context::vector(register_.getIdx(), bits); }
  // A scratch register of the row, as wide as element() or `bits`. The emission fails when the row states too few.
  Vec temp() { return temp(work_bits_); }
  Vec temp(int bits) { return X86Context::vector(next(emission_.vectors, vectors_), bits); }
  Mask mask_temp();
  // A boolean operand, at the width of element(); takes a scratch register where the operand's width differs.
  Mask mask_in(size_t i);
  // Where to write a boolean result; deliver() then converts it to the width that booleans have.
  Mask mask_out() const { return {emission_.out[0].at.number, work_bits_}; }
  void deliver(const Mask& mask);
  Vec vector(const Mask& mask) const { return X86Context::vector(mask.number, mask.bits); }
  static Xbyak::Opmask opmask(const Mask& mask) { return Xbyak::Opmask(mask.number); }
  // Releases at its end the scratch registers that were taken during its lifetime.
  class Scope {
   public:
    explicit Scope(VectorCode& code) : code_(code), vectors_(code.vectors_), masks_(code.masks_) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { code_.vectors_ = vectors_, code_.masks_ = masks_; }

   private:
    VectorCode& code_;
    size_t vectors_, masks_;
  };

  // ---- Broadcast constants, as operands in memory or in reserved registers ----
  ConstantOperand f32(float value) { return u32(std::bit_cast<uint32_t>(value)); }
  ConstantOperand u32(uint32_t bits) { return context_.kept_constant(kF32, bits, work_bits_); }
  ConstantOperand f64(double value) { return u64(std::bit_cast<uint64_t>(value)); }
  ConstantOperand u64(uint64_t bits) { return context_.kept_constant(kF64, bits, work_bits_); }
  // out = the value in all lanes, by a move, a load, or a zeroing idiom.
  void set(const Vec& out, float value) { set_u32(out, std::bit_cast<uint32_t>(value)); }
  void set_u32(const Vec& out, uint32_t bits) { context_.broadcast_kept(out, kF32, bits); }
  void set_u64(const Vec& out, uint64_t bits) { context_.broadcast_kept(out, kF64, bits); }

  // For instructions that have a false dependency on their result register: vpermps and vrangeps of some processors
  // (Golden Cove). Where a loop ends with the register in which it begins, each vector would wait for the one before.
  // The zeroing idiom is eliminated at register renaming.
  void cut_dependency(const Vec& out) { set(out, 0); }

  // ---- Steps. Operands and results may be one register unless said otherwise. ----
  void move(const Vec& out, const Vec& in) { context_.move(out, in); }
  void round(const Vec& out, const Xbyak::Operand& in, Rounding mode);  // f32, f64
  // f32 or f64, as element() is.
  void compare(const Mask& out, Compare how, const Vec& a, const Xbyak::Operand& b);
  // Mask of set sign bits. Takes no register (avx2: `in` itself is the mask).
  Mask negative(const Mask& out, const Vec& in);
  // 32- or 64-bit lanes. out = mask ? yes : no.
  void select(const Vec& out, const Mask& mask, const Xbyak::Operand& yes, const Vec& no);
  // out = y where `a how b` holds. Takes the mask.
  void replace(const Vec& out, const Mask& mask, Compare how, const Vec& a, const Xbyak::Operand& b, const Vec& y) {
    compare(mask, how, a, b);
    select(out, mask, y, out);
  }
  // out = mask ? in : 0
  void keep(const Vec& out, const Mask& mask, const Vec& in);
  // out = mask ? 0 : in; 32-bit lanes.
  void drop(const Vec& out, const Mask& mask, const Vec& in);
  // out = magnitude, whose sign bit is clear, with the sign of `sign`; f32. Destroys `magnitude`. avx2 takes a scratch
  // vector.
  void join_sign(const Vec& out, const Vec& magnitude, const Vec& sign);
  // Lane i of out = entry i of 16 (avx512) or 8 (avx2), by the low 4 or 3 bits of the index's 32-bit lanes. out may be
  // the index. avx512 also takes 32 entries, by 5 bits; then out is not the index. All lanes of the register are
  // written, also those beyond lanes(). Where out `held` the result of a lookup by the same index, there is no false
  // dependency to cut.
  enum class Held : uint8_t { anything, of_index };
  void look_up(const Vec& out, const Vec& index, std::span<const uint32_t> entries, Held held = Held::anything);
  // out = a b / d of f32 within 0.6 ulp, including the rounding error of the product, where d and 1 / d are normal
  // numbers; zeros have their sign. Destroys a and d; takes three scratch vectors. avx512: by an approximate reciprocal
  // and one Newton step.
  void divide_product(const Vec& out, const Vec& a, const Vec& b, const Vec& d);
  // out = out a + b of f32, rounded down: -1 + 1 is -0. avx512. Writes all lanes of the register.
  void multiply_add_down(const Vec& out, const Vec& a, const Vec& b);
  // out = c[0] + c[1] x + c[2] x^2 ..., by Horner's rule; f32. out and x differ.
  void polynomial(const Vec& out, const Vec& x, std::span<const float> coefficients);

  // An error when the row states too few scratch registers.
  Result<void> finish() const;

 private:
  int next(std::span<const int> scratch, size_t& taken);

  X86Context& context_;
  const codegen::Emission& emission_;
  ElementType element_;
  int work_bits_ = 0;  // of a vector of element()
  size_t vectors_ = 0, masks_ = 0;
  bool starved_ = false;
};

}  // namespace tenon::x86
