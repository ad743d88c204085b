#include "vta/instruction.hpp"

#include <gmock/gmock.h>

#include <random>

#include "vta/streams.hpp"

namespace tenon::vta {
namespace {

using namespace testing;
using ::testing::HasSubstr;

TEST(Instruction, BitsOfATransfer) {
  Instruction i = load(Memory::inp, 0x1234, 0x89abcdef, 0);
  i.pop_next = i.push_next = true;
  i.transfer = {.memory = Memory::inp,
                .sram_base = 0x1234,
                .dram_base = 0x89abcdef,
                .y_size = 0x0102,
                .x_size = 0x0304,
                .x_stride = 0x0506,
                .y_pad_0 = 1,
                .y_pad_1 = 2,
                .x_pad_0 = 3,
                .x_pad_1 = 4};
  const Words words = *encode(i, default_hardware());
  // opcode 0, pop_next bit 4, push_next bit 6, memory 2 from bit 7, sram_base from 10, dram_base from 26.
  EXPECT_EQ(words[0], uint64_t{1} << 4 | uint64_t{1} << 6 | uint64_t{2} << 7 | uint64_t{0x1234} << 10 |
                          uint64_t{0x89abcdef} << 26);
  EXPECT_EQ(words[1], uint64_t{0x0102} | uint64_t{0x0304} << 16 | uint64_t{0x0506} << 32 | uint64_t{0x4321} << 48);
}

TEST(Instruction, BitsOfStepsAtTheDefaultSizes) {
  Instruction i = gemm({.reset = true,
                        .uop_begin = 3,
                        .uop_end = 8192,
                        .iter_out = 5,
                        .iter_in = 16383,
                        .dst_factor_out = 1,
                        .dst_factor_in = 2,
                        .src_factor_out = 3,
                        .src_factor_in = 2047,
                        .wgt_factor_out = 4,
                        .wgt_factor_in = 1023});
  i.pop_prev = i.push_prev = true;
  Words words = *encode(i, default_hardware());
  EXPECT_EQ(words[0], uint64_t{2} | uint64_t{1} << 3 | uint64_t{1} << 5 | uint64_t{1} << 7 | uint64_t{3} << 8 |
                          uint64_t{8192} << 21 | uint64_t{5} << 35 | uint64_t{16383} << 49);
  EXPECT_EQ(words[1], uint64_t{1} | uint64_t{2} << 11 | uint64_t{3} << 22 | uint64_t{2047} << 33 | uint64_t{4} << 44 |
                          uint64_t{1023} << 54);
  words = *encode(alu(AluOp::shr, {.dst_factor_in = 7}, -3), default_hardware());
  EXPECT_EQ(words[1], uint64_t{7} << 11 | uint64_t{3} << 44 | uint64_t{1} << 47 | uint64_t{0xfffd} << 48);
}

TEST(Instruction, FieldsThatWouldStraddleStartTheSecondHalf) {
  constexpr uint64_t K = 1024;
  // 14 bits of uop_begin leave no room for iter_in in the first half; half-size factors leave some in the second.
  const Hardware hardware = *Hardware::of(sized(1, 16, 4 * K, 64 * K, 8 * K, 64 * K));
  const Words words = *encode(gemm({.uop_end = 1, .iter_out = 2, .iter_in = 3, .dst_factor_out = 5}), hardware);
  EXPECT_EQ(words[0] >> 51, 0u);
  EXPECT_EQ(words[1], uint64_t{3} | uint64_t{5} << 14);
}

TEST(Instruction, WhatIsEncodedIsDecoded) {
  std::mt19937 random(1);
  const auto below = [&](int64_t limit) { return static_cast<uint32_t>(random() % static_cast<uint64_t>(limit)); };
  const Hardware h = default_hardware();
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE(round);
    Instruction i;
    i.opcode = static_cast<Opcode>(below(5));
    i.pop_prev = below(2), i.pop_next = below(2), i.push_prev = below(2), i.push_next = below(2);
    if (i.opcode == Opcode::load || i.opcode == Opcode::store)
      i.transfer = {static_cast<Memory>(below(6)),
                    below(65536),
                    static_cast<uint32_t>(random()),
                    below(65536),
                    below(65536),
                    below(65536),
                    below(16),
                    below(16),
                    below(16),
                    below(16)};
    if (i.opcode == Opcode::gemm || i.opcode == Opcode::alu)
      i.steps = {below(2) != 0, below(8192), below(8193), below(16384), below(16384),
                 below(2048),   below(2048), below(2048), below(2048)};
    if (i.opcode == Opcode::gemm) i.steps.wgt_factor_out = below(1024), i.steps.wgt_factor_in = below(1024);
    if (i.opcode == Opcode::alu) {
      i.alu = static_cast<AluOp>(below(5));
      i.use_imm = below(2);
      i.imm = static_cast<int32_t>(below(65536)) - 32768;
    }
    const auto words = encode(i, h);
    ASSERT_TRUE(words.ok()) << words.error().to_string();
    const auto back = decode(*words, h);
    ASSERT_TRUE(back.ok()) << back.error().to_string();
    EXPECT_EQ(*back, i) << print(i) << "\n" << print(*back);
    const MicroOp op{below(2048), below(2048), below(1024)};
    EXPECT_EQ(decode_micro_op(*encode(op, h), h), op);
  }
}

TEST(Instruction, WhatDoesNotFitIsNamed) {
  const Hardware h = default_hardware();
  const auto wrong = [&](const Instruction& i) { return encode(i, h).error().message(); };
  EXPECT_THAT(wrong(gemm({.iter_in = 16384})), HasSubstr("iter_in is 16384, its 14 bits hold 0 to 16383"));
  EXPECT_THAT(wrong(alu(AluOp::add, {}, 32768)), HasSubstr("imm is 32768, its 16 bits hold -32768 to 32767"));
  EXPECT_THAT(encode(MicroOp{.wgt = 1024}, h).error().message(), HasSubstr("wgt is 1024"));
  Instruction padded = load(Memory::inp, 0, 0, 1);
  padded.transfer.x_pad_1 = 16;
  EXPECT_THAT(wrong(padded), HasSubstr("x_pad_1 is 16, its 4 bits hold 0 to 15"));
}

TEST(Instruction, WhatIsNoInstructionIsAnError) {
  const Hardware h = default_hardware();
  EXPECT_THAT(decode({5, 0}, h).error().message(), HasSubstr("no opcode 5"));
  EXPECT_THAT(decode({uint64_t{6} << 7, 0}, h).error().message(), HasSubstr("no memory 6"));
  EXPECT_THAT(decode({4, uint64_t{7} << 44}, h).error().message(), HasSubstr("no ALU operation 7"));
}

TEST(Instruction, UnitsByWhatIsDone) {
  EXPECT_EQ(load(Memory::inp, 0, 0, 1).unit(), UnitId::load);
  EXPECT_EQ(load(Memory::wgt, 0, 0, 1).unit(), UnitId::load);
  for (const Memory memory : {Memory::uop, Memory::acc, Memory::acc8})
    EXPECT_EQ(load(memory, 0, 0, 1).unit(), UnitId::compute);
  EXPECT_EQ(store(0, 0, 1).unit(), UnitId::store);
  EXPECT_EQ(gemm({}).unit(), UnitId::compute);
  EXPECT_EQ(Instruction().unit(), UnitId::compute);
}

}  // namespace
}  // namespace tenon::vta
