// The machine is read from its file: numbers, and errors for contradictions.
#include "nvdla/hardware.hpp"

#include <gmock/gmock.h>

#include "layers.hpp"

namespace tenon::nvdla {
namespace {

using namespace testing;
using ::testing::HasSubstr;

TEST(Hardware, OfTheTargetFiles) {
  const auto full = Hardware::of(target_of("nvdla-full")), small = Hardware::of(target_of("nvdla-small"));
  ASSERT_TRUE(full.ok() && small.ok());
  EXPECT_TRUE(full->half());
  EXPECT_FALSE(small->half());
  EXPECT_EQ(full->atom_channels, 16);
  EXPECT_EQ(small->atom_channels, 8);
  EXPECT_EQ(full->bank_entries, 256);
  EXPECT_EQ(small->bank_entries, 512);
  EXPECT_EQ(full->dram_bytes_per_cycle, 64);
  EXPECT_EQ(full->fusions.size(), 3u);
}

TEST(Image, IsSurfacesOfAtoms) {
  const Hardware full = *Hardware::of(target_of("nvdla-full"));
  const Image image = *Image::of({1, 17, 3, 5}, full);
  EXPECT_EQ(image.surfaces, 2);
  EXPECT_EQ(image.line_bytes, 5 * 32);
  EXPECT_EQ(image.surface_bytes, 3 * 5 * 32);
  EXPECT_EQ(image.bytes, 2 * 3 * 5 * 32);
  EXPECT_EQ(Image::of({1, 17}, full)->bytes, 64) << "one pixel";
}

// The error for a changed nvdla-full.
template <class Change>
std::string fault(Change change) {
  TargetDescription target = target_of("nvdla-full");
  change(target);
  const auto made = Hardware::of(target);
  return made.ok() ? "" : made.error().message();
}

TEST(Hardware, RefusesWhatContradictsItself) {
  EXPECT_EQ(fault([](TargetDescription& t) { t.engines[0].macs_per_cycle = 512; }),
            "engine 'conv' does 512 products a cycle, atomic_c * atomic_k is 1024 in target 'nvdla-full'");
  EXPECT_EQ(fault([](TargetDescription& t) {
              t.engines[0].types = {"f16", "i8"};
            }),
            "engine 'conv' multiplies f16 by i8; f16 by f16 and i8 by i8 are known in target 'nvdla-full'");
  EXPECT_EQ(fault([](TargetDescription& t) { t.memories[1].banks = 5; }),
            "cbuf of 524288 bytes is not 5 banks of whole entries of 128 bytes in target 'nvdla-full'");
  EXPECT_EQ(fault([](TargetDescription& t) { t.memories.pop_back(); }),
            "memory 'cbuf' is not stated in target 'nvdla-full'");
  EXPECT_EQ(fault([](TargetDescription& t) { t.memories[0].size_bytes = uint64_t{1} << 33; }),
            "dram of 8589934592 bytes is beyond addresses of 32 bits in target 'nvdla-full'");
}

TEST(Hardware, RefusesLayoutsThatTheUnitsDoNotRead) {
  EXPECT_EQ(fault([](TargetDescription& t) { t.layouts["activation"] = "NHWC"; }),
            "layout \"NHWC\" of 'activation' is not of atoms of 32 bytes, one for each pixel of a surface in target "
            "'nvdla-full'");
  EXPECT_THAT(fault([](TargetDescription& t) { t.layouts["weight"] = "KCRS"; }),
              HasSubstr("is not of ragged blocks of 16 kernels and 64 channels"));
  EXPECT_EQ(fault([](TargetDescription& t) { t.layouts.erase("weight"); }),
            "the layout of 'weight' is not stated in target 'nvdla-full'");
  EXPECT_EQ(fault([](TargetDescription& t) { t.layouts["activation"] = "NCHW{16c};align(H)=256B"; }), "")
      << "longer lines";
}

}  // namespace
}  // namespace tenon::nvdla
