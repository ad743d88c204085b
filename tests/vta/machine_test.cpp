#include "vta/machine.hpp"

#include <gmock/gmock.h>

#include "vta/streams.hpp"

namespace tenon::vta {
namespace {

using namespace testing;
using ::testing::Each;
using ::testing::HasSubstr;

class VtaMachine : public ::testing::Test {
 protected:
  void run(const Instruction& instruction) {
    const auto done = machine.execute(instruction, dram);
    ASSERT_TRUE(done.ok()) << print(instruction) << ": " << done.error().to_string();
  }
  std::string wrong(const Instruction& instruction) {
    const auto done = machine.execute(instruction, dram);
    return done.ok() ? "nothing" : done.error().to_string();
  }
  // Elements of a memory with these values, as bytes or words of DRAM.
  template <class T>
  uint32_t elements(Memory memory, const std::vector<T>& values) {
    return put(dram, values) / static_cast<uint32_t>(h.element_bytes(memory));
  }
  void micro_ops(const std::vector<MicroOp>& ops) {
    run(load(Memory::uop, 0, elements(Memory::uop, micro_op_words(ops, h)), static_cast<uint32_t>(ops.size())));
  }
  // ACC[at] = values.
  void acc(uint32_t at, const std::vector<int32_t>& values) {
    run(load(Memory::acc, at, elements(Memory::acc, values), static_cast<uint32_t>(values.size() / 16)));
  }

  const Hardware h = default_hardware();
  Dram dram{h.dram_bytes};
  Machine machine{h};
};

std::vector<int32_t> ramp(int32_t from) {
  std::vector<int32_t> values(16);
  for (size_t i = 0; i < 16; ++i) values[i] = from + static_cast<int32_t>(i);
  return values;
}

TEST_F(VtaMachine, LoadsRowsWithZerosAround) {
  std::vector<int8_t> image(6 * 16);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<int8_t>(i / 16 + 1);  // 2 rows of 3 elements
  Instruction i = load(Memory::inp, 5, elements(Memory::inp, image), 2);
  i.transfer.y_size = 2, i.transfer.x_stride = 3;  // the first two of each row
  i.transfer.y_pad_0 = 1, i.transfer.x_pad_0 = 1, i.transfer.x_pad_1 = 2;
  run(i);
  const int wanted[] = {0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 4, 5, 0, 0};
  for (int e = 0; e < 15; ++e) EXPECT_THAT(machine.element(Memory::inp, 5 + e), Each(wanted[e])) << e;
}

TEST_F(VtaMachine, AccumulatorsOf8BitsAreWidened) {
  std::vector<int8_t> values(16, -5);
  run(load(Memory::acc8, 3, put(dram, values) / 16, 1));
  EXPECT_THAT(machine.element(Memory::acc, 3), Each(-5));
}

TEST_F(VtaMachine, StoresKeepTheLowBits) {
  acc(0, std::vector<int32_t>(16, 0x1fe));
  const uint32_t address = put(dram, std::vector<int8_t>(16));
  run(store(0, address / 16, 1));
  EXPECT_EQ((*dram.at(address, 16))[7], std::byte{0xfe});
}

TEST_F(VtaMachine, ProductsAreOfTheTransposedWeights) {
  std::vector<int8_t> inp(16), wgt(256);
  for (int k = 0; k < 16; ++k) inp[static_cast<size_t>(k)] = static_cast<int8_t>(k - 8);
  for (int i = 0; i < 256; ++i) wgt[static_cast<size_t>(i)] = static_cast<int8_t>(i % 7 - 3);
  run(load(Memory::inp, 2, elements(Memory::inp, inp), 1));
  run(load(Memory::wgt, 3, elements(Memory::wgt, wgt), 1));
  acc(4, ramp(100));
  micro_ops({{4, 2, 3}});
  run(gemm({.uop_end = 1}));
  const auto got = machine.element(Memory::acc, 4);
  for (int o = 0; o < 16; ++o) {
    int32_t sum = 100 + o;
    for (int k = 0; k < 16; ++k) sum += (k - 8) * ((o * 16 + k) % 7 - 3);
    EXPECT_EQ(got[static_cast<size_t>(o)], sum) << o;
  }
  run(gemm({.reset = true, .uop_end = 1}));
  EXPECT_THAT(machine.element(Memory::acc, 4), Each(0));
}

TEST_F(VtaMachine, FactorsMoveAddresses) {
  micro_ops({{1, 0, 0}});
  run(gemm({.reset = true, .uop_end = 1, .iter_out = 2, .iter_in = 3, .dst_factor_out = 10, .dst_factor_in = 2}));
  acc(20, ramp(0));
  // ACC[1 + 10 i + 2 j] += ACC[20].
  micro_ops({{1, 20, 0}});
  run(alu(AluOp::add, {.uop_end = 1, .iter_out = 2, .iter_in = 3, .dst_factor_out = 10, .dst_factor_in = 2}));
  for (const int at : {1, 3, 5, 11, 13, 15}) EXPECT_EQ(machine.element(Memory::acc, at), ramp(0)) << at;
}

TEST_F(VtaMachine, ValuesOfTheAlu) {
  constexpr int32_t kLeast = INT32_MIN, kMost = INT32_MAX;
  EXPECT_EQ(alu_value(AluOp::min, -3, 2), -3);
  EXPECT_EQ(alu_value(AluOp::max, -3, 2), 2);
  EXPECT_EQ(alu_value(AluOp::add, kMost, 1), kLeast);
  EXPECT_EQ(alu_value(AluOp::mul, 1 << 30, 4), 0);
  EXPECT_EQ(alu_value(AluOp::shr, -5, 1), -3);
  EXPECT_EQ(alu_value(AluOp::shr, -5, 40), -1);
  EXPECT_EQ(alu_value(AluOp::shr, 5, -3), 40);
  EXPECT_EQ(alu_value(AluOp::shr, 5, -32), 0);
  EXPECT_EQ(alu_value(AluOp::shr, kLeast, -31), 0);
  EXPECT_EQ(alu_value(AluOp::shr, 1, -31), kLeast);
}

TEST_F(VtaMachine, WhatLeavesAMemoryIsAnError) {
  const uint32_t image = elements(Memory::inp, std::vector<int8_t>(64));
  EXPECT_THAT(wrong(load(Memory::inp, 2046, image, 3)), HasSubstr("INP[2048] is outside of its 2048 elements"));
  EXPECT_THAT(wrong(load(Memory::inp, 0, image, 5)), HasSubstr("leaves the buffer"));
  EXPECT_THAT(wrong(load(Memory::inp, 0, 0, 1)), HasSubstr("lies in no buffer"));
  EXPECT_THAT(wrong(load(Memory::out, 0, image, 1)), HasSubstr("OUT is not loaded"));
  EXPECT_THAT(wrong(store(9, image, 1)), HasSubstr("ACC[9] is read, and nothing has written it"));
  EXPECT_THAT(wrong(gemm({.uop_end = 1})), HasSubstr("UOP[0] is run, and nothing has written it"));
  micro_ops({{2047, 0, 0}});
  EXPECT_THAT(wrong(gemm({.reset = true, .uop_end = 1, .iter_in = 2, .dst_factor_in = 1})), HasSubstr("ACC[2048]"));
  Instruction padded = store(2047, image, 1);
  padded.transfer.y_pad_0 = 1;
  EXPECT_THAT(wrong(padded), HasSubstr("no padding"));
  Instruction of_inp = store(2047, image, 1);
  of_inp.transfer.memory = Memory::inp;
  EXPECT_THAT(wrong(of_inp), HasSubstr("INP is not stored"));
  EXPECT_EQ(wrong(load(Memory::inp, 60000, 0, 0)), "nothing");  // x_size 0 does nothing
}

TEST(VtaDram, BuffersAreApart) {
  Dram dram(1 << 20);
  std::byte* a = *dram.allocate(100);
  std::byte* b = *dram.allocate(5000);
  const uint32_t at_a = *dram.physical_address(a), at_b = *dram.physical_address(b);
  EXPECT_EQ(at_a % Dram::kPageBytes, 0u);
  EXPECT_GE(at_b, at_a + 2 * Dram::kPageBytes);
  EXPECT_EQ(*dram.physical_address(b + 4999), at_b + 4999);
  EXPECT_FALSE(dram.physical_address(b + 5000).ok());
  EXPECT_EQ((*dram.at(at_b + 10, 4990)).data(), b + 10);
  EXPECT_FALSE(dram.at(at_b + 10, 4991).ok());
  EXPECT_FALSE(dram.at(at_a + 100, 1).ok());
  EXPECT_FALSE(dram.at(UINT64_MAX, 2).ok());
  ASSERT_TRUE(dram.free(a).ok());
  EXPECT_FALSE(dram.free(a).ok());
  EXPECT_EQ(*dram.physical_address(*dram.allocate(8)), at_a);  // the gap is used again
  EXPECT_EQ(dram.used_bytes(), 5008u);
  EXPECT_EQ(dram.peak_bytes(), 5100u);
  EXPECT_THAT(dram.allocate(1 << 20).error().message(), HasSubstr("5008 of 1048576 are in use"));
  EXPECT_FALSE(dram.allocate(0).ok());
  EXPECT_FALSE(dram.allocate(Dram::kMaxBufferBytes + 1).ok());
}

}  // namespace
}  // namespace tenon::vta
