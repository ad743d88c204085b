// X86Context: where emitters of the x86 jitter table write machine code, and how they name registers and constants.
//
//   Result<void> AddEmitter::emit_code(EmitContext& context, const Emission& e) const {
//     X86Context& c = x86_context(context);
//     c.gen().vaddps(c.vector(e.out[0], e.lanes), c.vector(e.in[0], e.lanes), c.vector(e.in[1], e.lanes));
//     return {};
//   }
//
// Registers of a body with 64-bit lanes: it has half the lanes, so its 32-bit values are half registers (vector()
// answers with a Ymm or Xmm). Instructions that write a Ymm or Xmm clear the rest; nobody reads it.
//
// Booleans. avx512: one bit a lane in an opmask; bits beyond the lanes are undefined. avx2: all bits of a lane alike,
// in lanes of mask_bits(lanes) bits: 32, or 64 where a body has 64-bit lanes (4 lanes). A 32-bit operation of such a
// body narrows its masks and widens what it compares: narrow_mask(), widen_mask().
//
// Xbyak throws Xbyak::Error for what cannot be encoded; assemble() catches it and names the instruction.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <tenon/codegen/emitter.hpp>

#include "x86/code/code_object.hpp"
#include "x86/isa.hpp"
#include "x86/xbyak.hpp"

namespace tenon::x86 {

inline constexpr std::string_view kContextKind = "x86";

// Bits of a lane of a boolean in a vector register (avx2), of a kernel with so many lanes.
constexpr int mask_bits(int lanes) { return lanes > 4 ? 32 : 64; }

// A constant in all lanes or a table, in memory or in a register that keeps it: an operand of instructions.
class ConstantOperand {
 public:
  ConstantOperand(const Xbyak::Address& memory) : at_(memory) {}
  ConstantOperand(const Xbyak::Xmm& kept) : at_(kept) {}

  operator const Xbyak::Operand&() const {
    return std::visit([](const auto& at) -> const Xbyak::Operand& { return at; }, at_);
  }

 private:
  std::variant<Xbyak::Address, Xbyak::Xmm> at_;
};

// Code in ordinary memory, moved to where it runs later (jit_memory.hpp). Xbyak's own code that grows
// (Xbyak::AutoGrow) keeps a list of all references to labels until it knows where it lies; ours are relative alone, and
// so are right wherever it does.
class GrowingCode final : public Xbyak::CodeGenerator {
 public:
  GrowingCode();
  // With room for kRoom bytes more; beyond them Xbyak throws.
  Xbyak::CodeGenerator& with_room() {
    if (maxSize_ - size_ < kRoom) grow();
    return *this;
  }
  void append(std::span<const uint8_t> code);

 private:
  static constexpr size_t kFirstBytes = 32768, kRoom = 8192;
  void grow();
};

class X86Context final : public codegen::EmitContext {
 public:
  // The pool is borrowed.
  X86Context(Isa isa, codegen::ConstantPool& constants);
  ~X86Context() override;

  std::string_view kind() const override { return kContextKind; }
  void mark(std::string_view label, std::string_view instruction) override;

  Isa isa() const { return isa_; }
  bool avx512() const { return isa_ == Isa::avx512; }
  // To be asked for anew every few hundred instructions (GrowingCode).
  Xbyak::CodeGenerator& gen() { return code_.with_room(); }

  // A register of lanes * element bits: an Xmm (also for less than 128 bits), Ymm or Zmm by its kind. Booleans of avx2:
  // mask_bits(lanes) a lane.
  Xbyak::Xmm vector(const codegen::EmitValue& value, int lanes) const;
  Xbyak::Xmm vector(int number, ElementType element, int lanes) const;
  static Xbyak::Xmm vector(int number, int bits);
  static Xbyak::Xmm xmm(int number) { return Xbyak::Xmm(number); }
  static Xbyak::Ymm ymm(int number) { return Xbyak::Ymm(number); }
  static Xbyak::Zmm zmm(int number) { return Xbyak::Zmm(number); }
  static Xbyak::Opmask mask(int number) { return Xbyak::Opmask(number); }
  static Xbyak::Opmask mask(const codegen::EmitValue& value) { return Xbyak::Opmask(value.at.number); }
  static Xbyak::Reg64 general(int number) { return Xbyak::Reg64(number); }
  static Xbyak::Reg64 general(const codegen::EmitValue& value) { return Xbyak::Reg64(value.at.number); }
  // Any emitter may destroy it; never an operand or result.
  static Xbyak::Reg64 scratch() { return Xbyak::util::rax; }

  // A value of 4 or 8 bytes in each lane, as a memory operand: {1toN} on avx512 (instructions on 32- or 64-bit lanes
  // only), so many copies on avx2. Of f32 and i32 by their bits alike.
  Xbyak::Address constant(ElementType element, uint64_t bits);
  // The same, its first copy, for scalar instructions, broadcasts and moves.
  Xbyak::Address constant_address(ElementType element, uint64_t bits);
  // A table, for loads and permutations, `more_bytes` behind its begin. Its entries stand once, aligned to 64 bytes.
  Xbyak::Address table(std::span<const uint32_t> entries, size_t more_bytes = 0);
  // out = the value in each lane; zero and all ones without a load.
  void broadcast(const Xbyak::Xmm& out, ElementType element, uint64_t bits);

  // ---- Constants that loops keep ----
  // From here on constants that code inside loops asks for by kept_*() are loaded once a call, as long as one of these
  // vector registers, which the kernel does not use, is left. Once, between the frame's begin and the first
  // instruction; place_kept() then goes behind the code's last one, and marks the loads, if any, with `label`.
  void keep_constants_in(std::vector<int> vectors);
  void place_kept(std::string_view label);
  void begin_loop() { ++loops_; }
  void end_loop() { --loops_; }
  // constant(), to be used in vectors of `bits`; the registers' own for table(), whose entries must fill one.
  ConstantOperand kept_constant(ElementType element, uint64_t value, int bits);
  ConstantOperand kept_table(std::span<const uint32_t> entries, size_t more_bytes = 0);
  // broadcast(), from a register if there is one.
  void broadcast_kept(const Xbyak::Xmm& out, ElementType element, uint64_t bits);

  // avx2, 4 lanes: a mask of 64-bit lanes (Ymm) to 32-bit lanes (Xmm) and back. `narrow` has out != in.
  void narrow_mask(const Xbyak::Xmm& out, const Xbyak::Ymm& in);
  void widen_mask(const Xbyak::Ymm& out, const Xbyak::Xmm& in);
  // Register to register where they differ: vectors of any width, masks, general registers.
  void move(const Xbyak::Xmm& out, const Xbyak::Xmm& in);
  void move(const Xbyak::Opmask& out, const Xbyak::Opmask& in);
  void move(const Xbyak::Reg64& out, const Xbyak::Reg64& in);

  // [base + index * bytes of the element + displacement], without a size; `more_bytes` further.
  Xbyak::Address address(const codegen::EmitAddress& memory, int64_t more_bytes = 0) const;
  // The same as `element` of memory broadcast to lanes: {1toN}. avx512, elements of 4 or 8 bytes.
  Xbyak::Address address_broadcast(const codegen::EmitAddress& memory) const;
  // The kernel's 64-bit param; a 64-byte slot of the frame, aligned.
  Xbyak::Address param(int64_t number) const;
  Xbyak::Address slot(int64_t number) const;

  // Code that seldom runs, for `write` to write behind all other: what runs is then one stretch of memory, and the
  // jumps in it are not taken. It begins at a label that `write` places and ends with a jump back, and is listed as
  // the instruction that is being written now.
  void write_behind(std::function<void(X86Context&)> write);

  // What `write` writes for 0, 1 ... pieces - 1, an instruction of each in turn: a processor sees no further than a few
  // chains of a function's length, so it finds more to do where several begin at once. A piece consists of vector
  // instructions alone, else it is an error, and writes no register that another one reads or writes.
  Result<void> in_turn(size_t pieces, const std::function<Result<void>(size_t)>& write);

  // Of loop or tail `number` of the kernel.
  struct LoopLabels {
    Xbyak::Label begin, end;
  };
  LoopLabels& loop_labels(int64_t number) { return labels_[number]; }
  // The label behind what may not run: of the innermost one that has begun.
  Xbyak::Label& begin_when() { return whens_.emplace_back(); }
  Xbyak::Label end_when() {
    const Xbyak::Label end = whens_.back();
    whens_.pop_back();
    return end;
  }

  // Appends the constant pool, resolves labels, and hands out what has been made. Once, at the end.
  CodeObject finish(std::string name);

 private:
  // What a register is loaded with: what stands in the pool there, `bits` of it in each lane; 0: a whole register.
  struct Kept {
    size_t offset;
    int bits;
    auto operator<=>(const Kept&) const = default;
  };
  // Where code moves after it was written, Xbyak's label would look for it where it was: it is written with the
  // distance from the pool's begin, and finish() adds the rest.
  Xbyak::RegRip in_pool(size_t offset) const {
    const auto bytes = static_cast<int64_t>(offset);
    return moves_ ? Xbyak::util::rip + bytes : Xbyak::util::rip + pool_ + bytes;
  }
  // A constant that stands there, as constant() says.
  Xbyak::Address in_lanes(size_t offset);
  struct PoolUse {
    size_t distance_at, end;  // of the instruction
  };
  struct Piece {
    size_t at, end;  // in taken_
  };
  Result<std::vector<Piece>> take_out(size_t pieces, const std::function<Result<void>(size_t)>& write);
  Result<void> move_in(Piece& piece);
  std::optional<int> kept(const Kept& what);
  void load(int number, const Kept& what);

  const Isa isa_;
  GrowingCode code_;
  Xbyak::Label pool_;
  bool moves_ = false;
  std::vector<uint8_t> taken_;      // code on its way
  std::vector<PoolUse> pool_uses_;  // of code that has moved
  std::map<int64_t, LoopLabels> labels_;
  std::vector<Xbyak::Label> whens_;  // that have begun
  std::vector<int> free_;
  std::map<Kept, int> kept_;
  int loops_ = 0;
  std::optional<size_t> entry_;  // of the jump to where they are loaded
  Xbyak::Label load_kept_, begin_;
  CodeMarks marks_;
  // Of the code that instructions put behind all other.
  struct Behind {
    std::string label, instruction;
    std::function<void(X86Context&)> write;
  };
  std::vector<Behind> behind_;
};

// The context that an emitter of the x86 table is handed.
inline X86Context& x86_context(codegen::EmitContext& context) { return static_cast<X86Context&>(context); }

}  // namespace tenon::x86
