// Loads and stores of every element type, for whole rows with tails, between guard pages.
#include <algorithm>
#include <cmath>
#include <random>
#include <support_lib/guarded.hpp>

#include <tenon/tensor/numeric.hpp>

#include "x86/assembly/listing.hpp"
#include "x86/kernel_support.hpp"

namespace tenon::x86::testing {
namespace {

using codegen::Lanes;
using snippet::RegisterId;
using tenon::testing::GuardAt;
using tenon::testing::Guarded;

constexpr ElementType kElements[] = {kF32, kF16, kBF16, kF64, kI8, kU8, kI16, kU16, kI32, kU32, kI64, kU64, kBool};

// y[i] = x[i], stored as `to`; both types have the same lane type.
std::shared_ptr<const JitCode> copy_kernel(const Machine& machine, ElementType from, ElementType to, bool broadcast) {
  KernelBuilder b(machine.isa, machine.lanes);
  const RegisterId x = b.parameter(0), y = b.parameter(1);
  const RegisterId value = b.lanes(codegen::lane_type(from));
  b.over_row(2, [&](Lanes lanes, const std::vector<RegisterId>& tail, RegisterId index) {
    std::vector<RegisterId> stored{value};
    stored.insert(stored.end(), tail.begin(), tail.end());
    if (broadcast)
      b.at(b.add("BroadcastLoad", {}, {value}), {from, x}, Lanes::full);
    else
      b.at(b.add("Load", tail, {value}), {from, x, index}, lanes);
    b.at(b.add("Store", stored, {}), {to, y, index}, lanes);
  });
  return b.code();
}

uint64_t read_bits(const std::byte* data, ElementType element, int64_t index) {
  return load_bits(data, element.bits(), index);
}

// The bits of a lane after a load, and of the element after the store of a lane.
uint64_t lane_of(ElementType element, uint64_t bits) {
  if (element == kF16) {
    const auto lane = std::bit_cast<uint32_t>(static_cast<float>(f16::from_bits(static_cast<uint16_t>(bits))));
    return (lane & 0x7fffffff) > 0x7f800000 ? lane | 0x400000 : lane;  // the machine makes NaNs quiet
  }
  if (element == kBF16) return bits << 16;
  if (element.is_signed_int() && element.bits() < 32)
    return static_cast<uint32_t>(static_cast<int32_t>(bits << (32 - element.bits())) >> (32 - element.bits()));
  return bits;
}
uint64_t stored_of(ElementType element, uint64_t lane) {
  const float value = std::bit_cast<float>(static_cast<uint32_t>(lane));
  if (element == kF16) return f16(value).bits;
  if (element == kBF16) return bf16(value).bits;
  return element.bits() == 64 ? lane : lane & ((uint64_t{1} << element.bits()) - 1);
}

// Random bits; for f32 often those that are hard to round.
uint64_t random_bits(ElementType element, std::mt19937_64& random) {
  if (element.is_bool()) return random() % 2;
  uint64_t bits = random();
  if (element == kF32) {
    constexpr uint32_t kHard[] = {0x7fc00000, 0x7f800001, 0xff800000, 0x7f800000, 0x80000000, 0x00000001,
                                  0x3f808000, 0x3f818000, 0x7f7fffff, 0x477fefff, 0x477ff000, 0x33000000,
                                  0x33000001, 0x387fe000, 0x38801000, 0xffffffff, 0x7fffffff, 0x7f807fff};
    if (random() % 4 == 0)
      bits = kHard[random() % std::size(kHard)];
    else if (random() % 2 == 0)
      bits = 0x30000000 + random() % 0x20000000;  // about the range of f16
    bits = static_cast<uint32_t>(bits);
  }
  return element.bits() == 64 ? bits : bits & ((uint64_t{1} << element.bits()) - 1);
}

class Memory : public MachineTest {
 protected:
  bool possible(ElementType element) const {
    return element.is_bool() || element.bits() < 64 || GetParam().lanes * 64 <= vector_bits(GetParam().isa);
  }
  void check(ElementType from, ElementType to, bool broadcast);
};

void Memory::check(ElementType from, ElementType to, bool broadcast) {
  constexpr uint64_t kSeed = 20260101;
  std::mt19937_64 random(kSeed);
  const auto code = copy_kernel(GetParam(), from, to, broadcast);
  ASSERT_NE(code, nullptr);
  const int lanes = GetParam().lanes;
  for (int64_t width = 0; width <= 3 * lanes; ++width) {
    for (const GuardAt guard : {GuardAt::end, GuardAt::begin}) {
      SCOPED_TRACE(
          str(from, " to ", to, ", width ", width, guard == GuardAt::begin ? ", begin" : ", end", ", seed ", kSeed));
      const auto bytes = [&](ElementType e, int64_t n) { return static_cast<size_t>(n * e.bits() / 8); };
      Guarded<std::byte> x(bytes(from, broadcast ? 1 : width), guard), y(bytes(to, width), guard);
      for (int64_t i = 0; i < (broadcast ? 1 : width); ++i)
        store_bits(x.data(), from.bits(), i, random_bits(from, random));
      std::ranges::fill(y.values(), std::byte{0x5a});
      const int64_t params[] = {reinterpret_cast<int64_t>(x.data()), reinterpret_cast<int64_t>(y.data()), width - lanes,
                                width};
      code->function()(params);
      for (int64_t i = 0; i < width; ++i) {
        const uint64_t lane = lane_of(from, read_bits(x.data(), from, broadcast ? 0 : i));
        ASSERT_EQ(read_bits(y.data(), to, i), stored_of(to, lane)) << "element " << i;
      }
    }
  }
}

TEST_P(Memory, RowsOfEveryTypeAreLoadedAndStored) {
  for (const ElementType from : kElements)
    for (const ElementType to : kElements)
      if (codegen::lane_type(from) == codegen::lane_type(to) && possible(from)) check(from, to, false);
}

TEST_P(Memory, OneElementIsBroadcast) {
  for (const ElementType element : kElements)
    if (possible(element)) check(element, element, true);
}

TEST_P(Memory, OneLaneIsLoadedAndStored) {
  std::mt19937_64 random(7);
  for (const ElementType element : kElements) {
    if (!possible(element)) continue;
    SCOPED_TRACE(str(element));
    KernelBuilder b(GetParam().isa, GetParam().lanes);
    const RegisterId x = b.parameter(0), y = b.parameter(1), value = b.lanes(codegen::lane_type(element));
    b.at(b.add("Load", {}, {value}), {element, x, -1, element.bits() / 8}, Lanes::one);
    b.at(b.add("Store", {value}, {}), {element, y, -1, -element.bits() / 8}, Lanes::one);
    const auto code = b.code();
    ASSERT_NE(code, nullptr);
    for (const GuardAt guard : {GuardAt::end, GuardAt::begin}) {
      const auto bytes = static_cast<size_t>(element.bits() / 8);
      Guarded<std::byte> from(bytes, guard), to(bytes, guard);
      const uint64_t bits = random_bits(element, random);
      store_bits(from.data(), element.bits(), 0, bits);
      const int64_t params[] = {reinterpret_cast<int64_t>(from.data() - bytes),
                                reinterpret_cast<int64_t>(to.data() + bytes)};
      code->function()(params);
      EXPECT_EQ(read_bits(to.data(), element, 0), stored_of(element, lane_of(element, bits)));
    }
  }
}

// Loads and stores of a known number of lanes access no byte outside them.
TEST_P(Memory, KnownNumbersOfLanesAreLoadedAndStored) {
  constexpr uint64_t kSeed = 11;
  std::mt19937_64 random(kSeed);
  for (const ElementType element : kElements) {
    if (!possible(element)) continue;
    for (int64_t count = 1; count < GetParam().lanes; ++count) {
      SCOPED_TRACE(str(element, ", ", count, " lanes, seed ", kSeed));
      KernelBuilder b(GetParam().isa, GetParam().lanes);
      const RegisterId x = b.parameter(0), y = b.parameter(1), value = b.lanes(codegen::lane_type(element));
      const RegisterId number = b.general(), mask = b.lanes(kBool);
      b.add("Number", {}, {number}, {{"value", count}});
      b.add("FirstLanes", {number}, {mask}, {{"count", count}});
      b.at(b.add("Load", {mask, number}, {value}, {{"count", count}}), {element, x}, Lanes::partial);
      b.at(b.add("Store", {value, mask, number}, {}, {{"count", count}}), {element, y}, Lanes::partial);
      const auto code = b.code();
      ASSERT_NE(code, nullptr);
      for (const GuardAt guard : {GuardAt::end, GuardAt::begin}) {
        const auto bytes = [&](int64_t n) { return static_cast<size_t>(n * element.bits() / 8); };
        Guarded<std::byte> from(bytes(count), guard), to(bytes(count), guard);
        for (int64_t i = 0; i < count; ++i) store_bits(from.data(), element.bits(), i, random_bits(element, random));
        const int64_t params[] = {reinterpret_cast<int64_t>(from.data()), reinterpret_cast<int64_t>(to.data())};
        code->function()(params);
        for (int64_t i = 0; i < count; ++i) {
          const uint64_t lane = lane_of(element, read_bits(from.data(), element, i));
          ASSERT_EQ(read_bits(to.data(), element, i), stored_of(element, lane)) << "element " << i;
        }
      }
    }
  }
}

// Lanes that are not stored are not packed: avx2 moves the upper four down only if more than four are stored.
TEST(MemoryOfFew, PacksWhatMemoryTakes) {
  const auto moves = [](Lanes touched, int64_t count) {
    KernelBuilder b(Isa::avx2, 8);
    const RegisterId x = b.parameter(0), y = b.parameter(1), value = b.lanes(kI32);
    const RegisterId number = b.general(), mask = b.lanes(kBool);
    b.add("Number", {}, {number}, {{"value", count}});
    b.add("FirstLanes", {number}, {mask}, {{"count", count}});
    b.at(b.add("Load", {}, {value}), {kI32, x}, Lanes::full);
    if (touched == Lanes::one)
      b.at(b.add("Store", {value}, {}), {kI8, y, -1}, touched);
    else
      b.at(b.add("Store", {value, mask, number}, {}, {{"count", count}}), {kI8, y}, touched);
    const auto code = b.code();
    if (!code) return std::pair(-1, -1);
    const std::string text = listing(code->object());
    const auto has = [&](const char* name) { return static_cast<int>(text.find(name) != text.npos); };
    return std::pair(has("vpshufb"), has("vextracti128"));
  };
  if (!machine_has(Isa::avx2)) GTEST_SKIP() << "this machine has no avx2";
  EXPECT_EQ(moves(Lanes::one, 1), std::pair(0, 0));
  EXPECT_EQ(moves(Lanes::partial, 4), std::pair(1, 0));
  EXPECT_EQ(moves(Lanes::partial, 5), std::pair(1, 1));
}

// Each upper half with each kind of remainder, which covers all cases of rounding to bf16 and f16.
TEST_P(Memory, StoresRoundToTheNearestEven) {
  for (const ElementType to : {kF16, kBF16}) {
    const auto code = copy_kernel(GetParam(), kF32, to, false);
    ASSERT_NE(code, nullptr);
    std::vector<uint32_t> x;
    for (uint32_t high = 0; high < 0x10000; ++high)
      for (const uint32_t low :
           {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0xefffu, 0xf000u, 0xffffu})
        x.push_back(high << 16 | low);
    std::vector<uint16_t> y(x.size());
    const auto size = static_cast<int64_t>(x.size());
    const int64_t params[] = {reinterpret_cast<int64_t>(x.data()), reinterpret_cast<int64_t>(y.data()),
                              size - GetParam().lanes, size};
    code->function()(params);
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(y[i], stored_of(to, x[i])) << to.to_string() << " of the f32 with bits " << x[i];
  }
}

TEST_P(Memory, MemoryOfAnotherLaneTypeIsAnError) {
  KernelBuilder b(GetParam().isa, GetParam().lanes);
  const RegisterId x = b.parameter(0), value = b.lanes(kF32);
  b.at(b.add("Load", {}, {value}), {kI8, x}, Lanes::full);
  const auto object = assemble(b.kernel, structure_table(), target_of(GetParam().isa));
  ASSERT_FALSE(object.ok());
  EXPECT_NE(object.error().message().find("i8 in memory with lanes of f32"), std::string::npos)
      << object.error().to_string();
}

TENON_ON_ALL_MACHINES(Memory);

}  // namespace
}  // namespace tenon::x86::testing
