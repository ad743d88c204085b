#include "x86/assembly/context.hpp"

#include <gtest/gtest.h>

#include <cstring>

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
