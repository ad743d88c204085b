#include "vta/hardware.hpp"

#include <gmock/gmock.h>

#include "vta/streams.hpp"

namespace tenon::vta {
namespace {

using namespace testing;
using ::testing::HasSubstr;

std::string refusal(const TargetDescription& target) {
  const auto hardware = Hardware::of(target);
  return hardware.ok() ? "" : hardware.error().to_string();
}

TEST(Hardware, TheDefaultIsTheSampleOfTheDesign) {
  const Hardware h = default_hardware();
  EXPECT_EQ(h.batch, 1);
  EXPECT_EQ(h.block, 16);
  EXPECT_EQ(h.depth(Memory::uop), 8192);
  EXPECT_EQ(h.depth(Memory::inp), 2048);
  EXPECT_EQ(h.depth(Memory::wgt), 1024);
  EXPECT_EQ(h.depth(Memory::acc), 2048);
  EXPECT_EQ(h.depth(Memory::out), 2048);
  EXPECT_EQ(h.element_bytes(Memory::wgt), 256);
  EXPECT_EQ(h.element_bytes(Memory::acc8), 16);
  EXPECT_EQ(h.dram_bytes_per_cycle, 8);
  EXPECT_EQ(h.dram_latency_cycles, 64);
  EXPECT_EQ(h.gemm_step_cycles, 1);
  EXPECT_EQ(h.alu_step_cycles, 1);
  EXPECT_EQ(h.queue_depth, 512);
}

TEST(Hardware, VariantsOfTheDescriptionEncode) {
  constexpr uint64_t K = 1024;
  for (const auto& [batch, block, inp, wgt, acc, uop] :
       {std::tuple(1, 16, 16 * K, 128 * K, 64 * K, 16 * K),   // half of each buffer
        std::tuple(1, 32, 64 * K, 512 * K, 256 * K, 32 * K),  // blocks and buffers doubled
        std::tuple(2, 16, 32 * K, 256 * K, 128 * K, 32 * K), std::tuple(4, 8, 32 * K, 32 * K, 128 * K, 32 * K)}) {
    const TargetDescription target = sized(batch, block, inp, wgt, acc, uop);
    EXPECT_EQ(refusal(target), "") << target.name;
  }
}

TEST(Hardware, WhatDoesNotEncodeIsRefusedWithItsSum) {
  constexpr uint64_t K = 1024;
  const std::string doubled = refusal(sized(1, 16, 64 * K, 512 * K, 256 * K, 64 * K));
  EXPECT_THAT(doubled, HasSubstr("GEMM"));
  EXPECT_THAT(doubled,
              HasSubstr("iter_in 14 + dst_factor_out 12 + dst_factor_in 12 + src_factor_out 12 + src_factor_in 12 + "
                        "wgt_factor_out 11 + wgt_factor_in 11 = 84 bits, 64 fit"));
  // The halves hold it, a micro-op does not.
  EXPECT_THAT(refusal(sized(1, 16, 8 * K, 512 * K, 128 * K, 32 * K)),
              HasSubstr("a micro-op needs dst 11 + src 11 + wgt 11 = 33 bits, 32 fit"));
}

TEST(Hardware, WrongDescriptionsNameTheirPlace) {
  TargetDescription target = default_target();
  for (MemorySpace& memory : target.memories)
    if (memory.name == "wgt") memory.element_bytes = 128;
  EXPECT_THAT(
      refusal(target),
      HasSubstr("memory 'wgt' of target 'vta-default' states elements of 128 bytes; batch 1 and block 16 make 256"));
  target = default_target();
  std::erase_if(target.memories, [](const MemorySpace& memory) { return memory.name == "uop"; });
  EXPECT_THAT(refusal(target), HasSubstr("has no memory 'uop'"));
  target = default_target();
  target.clock_hz = 0;
  EXPECT_THAT(refusal(target), HasSubstr("states no clock"));
  EXPECT_THAT(refusal(sized(1, 16, 48 * 1024, 256 * 1024, 128 * 1024, 32 * 1024)), HasSubstr("not a power of two"));
  EXPECT_THAT(refusal(sized(3, 16, 32 * 1024, 256 * 1024, 128 * 1024, 32 * 1024)),
              HasSubstr("'batch' is 3, no power of two"));
  const auto with = [](const char* key, const char* value) {
    TargetDescription changed = default_target();
    Setting options = Setting::map();
    options.add("hardware", Setting::text(std::string(key) == "hardware" ? value : "0.0.2"));
    if (std::string(key) != "hardware") options.add(key, Setting::word(value));
    changed.options = options;
    return changed;
  };
  EXPECT_THAT(refusal(with("hardware", "0.0.1")), HasSubstr("hardware '0.0.1' is not known"));
  EXPECT_THAT(refusal(with("inp_width", "4 bits")), HasSubstr("'inp_width' is 4 bits; 8 are supported"));
  EXPECT_THAT(refusal(with("blok", "16")), HasSubstr("blok"));
}

}  // namespace
}  // namespace tenon::vta
