// X86Context: receives the machine code of the emitters of the x86 jitter table, and names registers and constants.
//
//   Result<void> AddEmitter::emit_code(EmitContext& context, const Emission& e) const {
//     X86Context& c = x86_context(context);
//     c.gen().vaddps(c.vector(e.out[0], e.lanes), c.vector(e.in[0], e.lanes), c.vector(e.in[1], e.lanes));
//     return {};
//   }
//
// Registers of a body with 64-bit lanes: it has half as many lanes, so its 32-bit values fill half registers (vector()
// returns a Ymm or Xmm). Instructions that write a Ymm or Xmm clear the rest, which is never read.
//
// Booleans. avx512: one bit a lane in an opmask; bits beyond the lanes are undefined. avx2: all bits of a lane equal,
// in lanes of mask_bits(lanes) bits: 32, or 64 where a body has 64-bit lanes (4 lanes). A 32-bit operation of such a
// body narrows its mask operands and widens the masks that it makes: narrow_mask(), widen_mask().
//
// Xbyak throws Xbyak::Error for instructions that cannot be encoded; assemble() catches it and names the instruction.
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

// Bits of a boolean's lane in a vector register (avx2), in a kernel with `lanes` lanes.
constexpr int mask_bits(int lanes) { return lanes > 4 ? 32 : 64; }

// A broadcast constant or a table, in memory or in a register reserved for it: an operand of instructions.
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

// Code in ordinary memory, which is later copied to where it runs (jit_memory.hpp). Xbyak's own growing code
// (Xbyak::AutoGrow) keeps a list of all label references until its address is known; our references are all relative,
// so they are valid at any address.
class GrowingCode final : public Xbyak::CodeGenerator {
 public:
  GrowingCode();
  // Ensures room for kRoom more bytes; Xbyak throws when they are exceeded.
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
  // `constants` is borrowed.
  X86Context(Isa isa, codegen::ConstantPool& constants);
  ~X86Context() override;

  std::string_view kind() const override { return kContextKind; }
  void mark(std::string_view label, std::string_view instruction) override;

  Isa isa() const { return isa_; }
  bool avx512() const { return isa_ == Isa::avx512; }
  // Call again after at most a few hundred instructions (GrowingCode).
  Xbyak::CodeGenerator& gen() { return code_.with_room(); }

  // The register for lanes * element bits: an Xmm (also for less than 128 bits), Ymm or Zmm. Booleans of avx2 have
  // mask_bits(lanes) bits a lane.
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
  // A register that any emitter may destroy; it never holds an operand or result.
  static Xbyak::Reg64 scratch() { return Xbyak::util::rax; }

  // A broadcast value of 4 or 8 bytes as a memory operand: {1toN} on avx512 (only for instructions on 32- or 64-bit
  // lanes), N copies in memory on avx2. f32 and i32 share entries of equal bits.
  Xbyak::Address constant(ElementType element, uint64_t bits);
  // The address of its first copy, for scalar instructions, broadcasts and moves.
  Xbyak::Address constant_address(ElementType element, uint64_t bits);
  // The address of a table plus `more_bytes`, for loads and permutations. Each table is in the pool once, 64-byte
  // aligned.
  Xbyak::Address table(std::span<const uint32_t> entries, size_t more_bytes = 0);
  // out = the value in each lane; zero and all ones are made without a load.
  void broadcast(const Xbyak::Xmm& out, ElementType element, uint64_t bits);

  // ---- Constants kept in registers across loops ----
  // After this call, constants that code inside loops requests by kept_*() are loaded once per kernel call, as long as
  // one of these vector registers, which the kernel does not use, is free. Call it once, between the begin of the frame
  // and the first instruction; call place_kept() after the last instruction. It marks the loads, if any, with `label`.
  void keep_constants_in(std::vector<int> vectors);
  void place_kept(std::string_view label);
  void begin_loop() { ++loops_; }
  void end_loop() { --loops_; }
  // constant(), for use in vectors of `bits`. For table(): the register itself, which the entries must fill.
  ConstantOperand kept_constant(ElementType element, uint64_t value, int bits);
  ConstantOperand kept_table(std::span<const uint32_t> entries, size_t more_bytes = 0);
  // broadcast(), from a kept register if there is one.
  void broadcast_kept(const Xbyak::Xmm& out, ElementType element, uint64_t bits);

  // avx2, 4 lanes: converts a mask of 64-bit lanes (Ymm) to 32-bit lanes (Xmm) and back. narrow_mask: out != in.
  void narrow_mask(const Xbyak::Xmm& out, const Xbyak::Ymm& in);
  void widen_mask(const Xbyak::Ymm& out, const Xbyak::Xmm& in);
  // Copies a register where out != in: vectors of any width, masks, general registers.
  void move(const Xbyak::Xmm& out, const Xbyak::Xmm& in);
  void move(const Xbyak::Opmask& out, const Xbyak::Opmask& in);
  void move(const Xbyak::Reg64& out, const Xbyak::Reg64& in);

  // [base + index * bytes of the element + displacement + more_bytes], without an operand size.
  Xbyak::Address address(const codegen::EmitAddress& memory, int64_t more_bytes = 0) const;
  // The same for an element in memory that is broadcast to all lanes: {1toN}. avx512, elements of 4 or 8 bytes.
  Xbyak::Address address_broadcast(const codegen::EmitAddress& memory) const;
  // A 64-bit param of the kernel; a slot of the frame, 64 bytes and aligned.
  Xbyak::Address param(int64_t number) const;
  Xbyak::Address slot(int64_t number) const;

  // Cold code: `write` runs after all other code was written, so that hot code is contiguous and jumps in it are not
  // taken. The code begins at a label that `write` places and ends with a jump back. It is listed as part of the
  // instruction that is being written now.
  void write_behind(std::function<void(X86Context&)> write);

  // Interleaves the code that `write` writes for the pieces 0 ... pieces - 1, one instruction of each in turn. Each
  // piece is a dependency chain as long as a function, and the out-of-order window covers only a few of them, so chains
  // that start together run in parallel. A piece must consist of vector instructions only (otherwise an error) and must
  // not write registers that another piece reads or writes.
  Result<void> in_turn(size_t pieces, const std::function<Result<void>(size_t)>& write);

  // Labels of loop or tail `number` of the kernel.
  struct LoopLabels {
    Xbyak::Label begin, end;
  };
  LoopLabels& loop_labels(int64_t number) { return labels_[number]; }
  // The label after the code of a when, which may be skipped; end_when() is for the innermost open one.
  Xbyak::Label& begin_when() { return whens_.emplace_back(); }
  Xbyak::Label end_when() {
    const Xbyak::Label end = whens_.back();
    whens_.pop_back();
    return end;
  }

  // Appends the constant pool, resolves labels and returns the code. Call it once, at the end.
  CodeObject finish(std::string name);

 private:
  // The constant that a register is loaded with: pool offset, and its bits in each lane; 0: a whole register.
  struct Kept {
    size_t offset;
    int bits;
    auto operator<=>(const Kept&) const = default;
  };
  // Code may move after it was written, and then an Xbyak label would point to its old position. Instructions are
  // therefore written with the distance from the begin of the pool, and finish() adds the rest.
  Xbyak::RegRip in_pool(size_t offset) const {
    const auto bytes = static_cast<int64_t>(offset);
    return moves_ ? Xbyak::util::rip + bytes : Xbyak::util::rip + pool_ + bytes;
  }
  // Operand for a constant at this offset, as described for constant().
  Xbyak::Address in_lanes(size_t offset);
  struct PoolUse {
    size_t distance_at, end;  // position of the distance, and end of the instruction
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
  std::vector<uint8_t> taken_;      // code that is being moved
  std::vector<PoolUse> pool_uses_;  // in code that has moved
  std::map<int64_t, LoopLabels> labels_;
  std::vector<Xbyak::Label> whens_;  // open ones
  std::vector<int> free_;
  std::map<Kept, int> kept_;
  int loops_ = 0;
  std::optional<size_t> entry_;  // offset of the jump to the code that loads kept constants
  Xbyak::Label load_kept_, begin_;
  CodeMarks marks_;
  // Cold code requested by instructions (write_behind).
  struct Behind {
    std::string label, instruction;
    std::function<void(X86Context&)> write;
  };
  std::vector<Behind> behind_;
};

// The context that an emitter of the x86 table gets.
inline X86Context& x86_context(codegen::EmitContext& context) { return static_cast<X86Context&>(context); }

}  // namespace tenon::x86
