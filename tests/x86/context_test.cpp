#include "x86/assembly/context.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>

namespace tenon::x86 {
namespace {

using codegen::ConstantPool;
using codegen::EmitValue;
using codegen::RegisterFile;

EmitValue value(int number, ElementType element) { return {{RegisterFile::vector, number}, element}; }

TEST(X86Context, VectorsAreAsWideAsTheirLanes) {
  ConstantPool pool;
  X86Context c(Isa::avx512, pool);
  EXPECT_TRUE(c.vector(value(17, kF32), 16).isZMM());
  EXPECT_TRUE(c.vector(value(17, kF32), 8).isYMM());
  EXPECT_TRUE(c.vector(value(17, kF64), 8).isZMM());
  X86Context narrow(Isa::avx2, pool);
  EXPECT_TRUE(narrow.vector(value(3, kF32), 4).isXMM());
  EXPECT_TRUE(narrow.vector(value(3, kBool), 4).isYMM()) << "booleans have the widest lanes";
  EXPECT_TRUE(narrow.vector(value(3, kBool), 8).isYMM());
  EXPECT_EQ(narrow.vector(value(3, kF32), 4).getIdx(), 3);
}

TEST(X86Context, TheConstantsLieBehindTheCodeAligned) {
  ConstantPool pool;
  X86Context c(Isa::avx512, pool);
  c.gen().vaddps(c.zmm(0), c.zmm(1), c.constant(kF32, 0x3f800000));
  c.gen().vaddps(c.zmm(0), c.zmm(1), c.constant(kI32, 0x3f800000));
  c.gen().ret();
  const CodeObject object = c.finish("f");
  EXPECT_EQ(object.bytes.size(), 64 + 4u) << "one constant, once";
  EXPECT_LT(object.code_bytes, 64u);
  uint32_t bits = 0;
  std::memcpy(&bits, object.bytes.data() + 64, 4);
  EXPECT_EQ(bits, 0x3f800000u);
}

// Instructions of all encodings, with constants, whose addresses finish() fills in.
void write_piece(X86Context& c, int piece, size_t first, size_t last) {
  using Xbyak::util::rcx;
  using Xbyak::util::rsi;
  const Xbyak::Zmm a = c.zmm(piece), b = c.zmm(8 + piece);
  const Xbyak::Ymm low = c.ymm(2 + piece);
  const std::vector<std::function<void()>> all{
      [&] { c.gen().vaddps(a, b, c.constant(kF32, 7)); },
      [&] { c.gen().vcmpps(c.mask(1 + piece), a, c.constant(kF32, 8), 1); },
      [&] { c.gen().vaddps(low, low, c.gen().ptr[rsi]); },
      [&] { c.gen().vaddps(low, low, c.gen().ptr[rsi + rcx * 4 + 4]); },
      [&] { c.gen().vaddps(a, a, c.gen().ptr[rcx * 4 + 4]); },
      [&] { c.gen().vmovups(a, c.gen().ptr[rsi + 64]); },
      [&] { c.gen().vmovups(b, c.gen().ptr[rsi + 4000]); },
      [&] { c.gen().vroundps(low, low, 1); },
      [&] { c.gen().vpslld(low, low, 3); },
      [&] { c.gen().vshufps(low, low, c.constant_address(kF32, 9), 1); },
      [&] {
        c.gen().vpermps(low, low, c.table(std::array<uint32_t, 8>{1, 2, 3, 4, 5, 6, 7, 8}));
      },
      [&] { c.gen().vblendvps(low, low, low, low); },
      [&] { c.gen().vfmadd213ps(a | c.mask(1), a, b); },
      [&] { c.gen().kandnq(c.mask(1), c.mask(2), c.mask(3)); },
      [&] { c.gen().vaddps(a, a, b); },
  };
  for (size_t i = first; i < std::min(last, all.size()); ++i) all[i]();
}

TEST(X86Context, CodeInTurnIsThatWrittenInTurn) {
  constexpr size_t kInstructions = 15, kFewer = 12;
  ConstantPool pool, other_pool;
  X86Context c(Isa::avx512, pool), other(Isa::avx512, other_pool);
  for (X86Context* one : {&c, &other}) one->gen().mov(Xbyak::util::ecx, 1);
  // Constants have the order in which the pieces are written.
  for (X86Context* one : {&c, &other})
    for (const uint32_t bits : {7, 8, 9}) one->constants().add(kF32, bits);
  const auto made = c.in_turn(2, [&](size_t piece) -> Result<void> {
    write_piece(c, static_cast<int>(piece), 0, piece == 0 ? kInstructions : kFewer);
    return {};
  });
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  for (size_t i = 0; i < kInstructions; ++i)
    for (const int piece : {0, 1})
      if (piece == 0 || i < kFewer) write_piece(other, piece, i, i + 1);
  for (X86Context* one : {&c, &other}) one->gen().ret();
  const CodeObject in_turn = c.finish("f"), expected = other.finish("f");
  EXPECT_EQ(in_turn.code_bytes, expected.code_bytes);
  EXPECT_EQ(in_turn.bytes, expected.bytes);
}

// Equals code that is written last, and is listed under the code that requested it.
TEST(X86Context, CodeThatSeldomRunsLiesBehindAllOther) {
  ConstantPool pool, other_pool;
  X86Context c(Isa::avx2, pool), other(Isa::avx2, other_pool);
  const auto one = [](X86Context& to) { to.gen().vaddps(X86Context::ymm(1), X86Context::ymm(2), X86Context::ymm(3)); };
  const auto seldom = [](X86Context& to, Xbyak::Label& from, Xbyak::Label& back) {
    to.gen().L(from);
    to.gen().vdivps(X86Context::ymm(1), X86Context::ymm(2), to.constant(kF32, 7));
    to.gen().jmp(back, Xbyak::CodeGenerator::T_NEAR);
  };
  for (X86Context* const to : {&c, &other}) {
    Xbyak::Label from, back;
    to->mark("Add", "%1 = Add %2, %3");
    one(*to);
    to->gen().jnz(from, Xbyak::CodeGenerator::T_NEAR);
    to->gen().L(back);
    if (to == &c) to->write_behind([=](X86Context& behind) mutable { seldom(behind, from, back); });
    to->mark("frame", "leave");
    to->gen().ret();
    if (to == &other) {
      to->mark("Add", "%1 = Add %2, %3");
      seldom(*to, from, back);
    }
  }
  const CodeObject behind = c.finish("f"), expected = other.finish("f");
  EXPECT_EQ(behind.bytes, expected.bytes);
  EXPECT_EQ(behind.code_bytes, expected.code_bytes);
  EXPECT_EQ(behind.marks, expected.marks);
}

TEST(X86Context, WhatIsNoVectorInstructionDoesNotGoInTurn) {
  const std::function<void(Xbyak::CodeGenerator&)> others[] = {
      [](auto& g) { g.add(Xbyak::util::rax, 1); },
      [](auto& g) { g.vzeroupper(); },
      [](auto& g) {
        Xbyak::Label label;
        g.L(label);
        g.jmp(label);
      },
  };
  for (const auto& write : others) {
    ConstantPool pool;
    X86Context c(Isa::avx512, pool);
    const auto made = c.in_turn(2, [&](size_t) -> Result<void> { return write(c.gen()), Result<void>(); });
    EXPECT_FALSE(made.ok());
  }
}

TEST(X86Context, ConstantsOfLoopsStayInRegistersAsLongAsThereAreAny) {
  ConstantPool pool;
  X86Context c(Isa::avx512, pool);
  const auto is_register = [](const Xbyak::Operand& operand) { return operand.isREG(); };
  EXPECT_FALSE(is_register(c.kept_constant(kF32, 1, 512))) << "it has none yet";
  c.keep_constants_in({30, 31});
  EXPECT_FALSE(is_register(c.kept_constant(kF32, 1, 512))) << "outside loops";
  c.begin_loop();
  const auto number = [](const Xbyak::Operand& operand) { return operand.getIdx(); };
  const int first = number(c.kept_constant(kF32, 1, 512));
  EXPECT_EQ(number(c.kept_constant(kI32, 1, 256)), first) << "the same bits";
  EXPECT_TRUE(static_cast<const Xbyak::Operand&>(c.kept_constant(kF32, 1, 256)).isYMM());
  EXPECT_NE(number(c.kept_constant(kF64, 1, 512)), first) << "other lanes";
  EXPECT_FALSE(is_register(c.kept_constant(kF32, 2, 512))) << "there were two";
  c.end_loop();
  EXPECT_EQ(number(c.kept_constant(kF32, 1, 512)), first) << "loaded before all code";
  c.gen().ret();
  c.place_kept("constants");
  const CodeObject object = c.finish("f");
  ASSERT_EQ(object.marks.size(), 1u);
  int32_t distance = 0;
  std::memcpy(&distance, object.bytes.data() + 1, 4);
  EXPECT_EQ(distance + 5, static_cast<int32_t>(object.marks[0].offset)) << "the code begins by loading them";
}

TEST(X86Context, CodeThatKeepsNoConstantsDoesNotJump) {
  ConstantPool pool;
  X86Context c(Isa::avx2, pool);
  c.keep_constants_in({14, 15});
  c.gen().ret();
  c.place_kept("constants");
  const CodeObject object = c.finish("f");
  EXPECT_EQ(object.code_bytes, 6u);
  EXPECT_EQ(object.bytes[0], std::byte{0x0f}) << "nothing to do, in five bytes";
  EXPECT_TRUE(object.marks.empty());
}

// Positions are aligned relative to the beginning of the code, so the buffer must be aligned to a cache line, as
// executable memory is.
TEST(X86Context, CodeIsAlignedWhereverItHasGrownTo) {
  ConstantPool pool;
  X86Context c(Isa::avx2, pool);
  for (int i = 0; i < 2000; ++i) {
    for (int k = 0; k < 70; ++k) c.gen().nop();
    c.gen().align(64);
    ASSERT_EQ(c.gen().getSize() % 64, 0u) << i;
  }
}

TEST(X86Context, CodeGrowsBeyondItsFirstBuffer) {
  ConstantPool pool;
  X86Context c(Isa::avx2, pool);
  Xbyak::Label end;
  c.gen().jmp(end);
  for (int i = 0; i < 20000; ++i) c.gen().vaddps(c.ymm(0), c.ymm(1), c.constant(kF32, 7));
  c.gen().L(end);
  c.gen().ret();
  const CodeObject object = c.finish("long");
  EXPECT_EQ(object.code_bytes, 5 + 20000 * 8 + 1u);
  int32_t distance = 0;
  std::memcpy(&distance, object.bytes.data() + 1, 4);
  EXPECT_EQ(distance, 20000 * 8) << "the jump was resolved after the code had moved";
}

}  // namespace
}  // namespace tenon::x86
