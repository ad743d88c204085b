// Structure rows: registers, loops, tails, reductions over lanes, slots of the frame.
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "x86/kernel_support.hpp"

namespace tenon::x86::testing {
namespace {

using codegen::Lanes;
using snippet::RegisterId;

constexpr ElementType kNumbers[] = {kF32, kF64, kI32, kU32, kI64, kU64};

class Structure : public MachineTest {
 protected:
  KernelBuilder builder() const { return {GetParam().isa, GetParam().lanes}; }
  int lanes() const { return GetParam().lanes; }
  bool possible(ElementType element) const { return lanes() * element.bits() <= vector_bits(GetParam().isa); }
};

int64_t address_of(const void* data) { return reinterpret_cast<int64_t>(data); }

template <class T>
std::vector<T> random_values(size_t count, std::mt19937_64& random) {
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>)
      value = static_cast<T>(static_cast<int64_t>(random() % 2001) - 1000) / 8;
    else
      value = static_cast<T>(random());
  }
  return values;
}

TEST_P(Structure, ScalarsAndParametersFillAllLanes) {
  for (const ElementType element : kNumbers) {
    if (!possible(element)) continue;
    for (const uint64_t bits : {uint64_t{0}, ~uint64_t{0}, uint64_t{0xffffffff}, uint64_t{0x123456789abcdef0}}) {
      KernelBuilder b = builder();
      const RegisterId y = b.parameter(0), scalar = b.lanes(element), given = b.lanes(element);
      b.add("Scalar", {}, {scalar}, {{"bits", static_cast<int64_t>(bits)}});
      b.add("BroadcastParameter", {}, {given}).number = 1;
      b.at(b.add("Store", {scalar}, {}), {element, y}, Lanes::full);
      b.at(b.add("Store", {given}, {}), {element, y, -1, lanes() * element.bits() / 8}, Lanes::full);
      std::vector<std::byte> memory(static_cast<size_t>(2 * lanes() * element.bits() / 8));
      const int64_t params[] = {address_of(memory.data()), static_cast<int64_t>(bits)};
      b.code()->function()(params);
      for (int i = 0; i < 2 * lanes(); ++i)
        ASSERT_EQ(load_bits(memory.data(), element.bits(), i), element.bits() == 64 ? bits : bits & 0xffffffff)
            << element.to_string() << " lane " << i;
    }
  }
}

TEST_P(Structure, BooleanScalarsFillAllLanes) {
  for (const int64_t truth : {0, 1}) {
    KernelBuilder b = builder();
    const RegisterId y = b.parameter(0), mask = b.lanes(kBool), copy = b.lanes(kBool);
    b.add("Scalar", {}, {mask}, {{"bits", truth}});
    b.add("Copy", {mask}, {copy});
    b.at(b.add("Store", {copy}, {}), {kBool, y}, Lanes::full);
    std::vector<uint8_t> bytes(static_cast<size_t>(lanes()), 7);
    const int64_t params[] = {address_of(bytes.data())};
    b.code()->function()(params);
    for (const uint8_t byte : bytes) EXPECT_EQ(byte, truth);
  }
}

// Copies the rows of a matrix, with pointers that are advanced by params.
TEST_P(Structure, LoopsNestAndPointersMove) {
  KernelBuilder b = builder();
  const RegisterId x = b.parameter(0), y = b.parameter(1), row = b.general(), value = b.lanes(kI32);
  // Loops 0 and 1 are those of over_row().
  b.kernel.loops.reserve(3);
  b.add("Zero", {}, {row});
  b.add("LoopBegin", {row}, {}).number = 2;
  b.over_row(2, [&](Lanes touched, const std::vector<RegisterId>& tail, RegisterId index) {
    std::vector<RegisterId> stored{value};
    stored.insert(stored.end(), tail.begin(), tail.end());
    b.at(b.add("Load", tail, {value}), {kI32, x, index}, touched);
    b.at(b.add("Store", stored, {}), {kI32, y, index}, touched);
  });
  b.kernel.loops.push_back({.counter = row, .increment = 1, .limit = 4});
  b.add("AddParameter", {x}, {x}).number = 5;
  b.add("AddParameter", {y}, {y}).number = 6;
  b.add("LoopEnd", {row}, {}).number = 2;
  const auto code = b.code();
  ASSERT_NE(code, nullptr);
  for (const int64_t width : widths(lanes())) {
    for (const int64_t rows : {0, 1, 3}) {
      const int64_t stride = width + 5;
      std::vector<int32_t> from(static_cast<size_t>(rows * stride)), to(static_cast<size_t>(rows * width) + 1, -1);
      std::iota(from.begin(), from.end(), 0);
      const int64_t params[] = {
          address_of(from.data()), address_of(to.data()), width - lanes(), width, rows - 1, stride * 4, width * 4};
      code->function()(params);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < width; ++i)
          ASSERT_EQ(to[static_cast<size_t>(r * width + i)], r * stride + i) << "row " << r << ", column " << i;
      EXPECT_EQ(to.back(), -1) << "behind the last row";
    }
  }
}

TEST_P(Structure, ACounterMayBecomeTheCount) {
  KernelBuilder b = builder();
  const RegisterId y = b.parameter(0), counter = b.parameter(1), mask = b.lanes(kBool);
  b.kernel.loops.push_back({.kind = snippet::Loop::Kind::tail, .counter = counter, .limit = 2});
  b.add("TailBegin", {counter}, {mask, counter}).number = 0;
  b.at(b.add("Store", {mask}, {}), {kBool, y}, Lanes::full);
  b.add("TailEnd", {}, {}).number = 0;
  const auto code = b.code();
  ASSERT_NE(code, nullptr);
  for (int64_t count = -1; count < lanes(); ++count) {
    std::vector<uint8_t> bytes(static_cast<size_t>(lanes()), 9);
    const int64_t params[] = {address_of(bytes.data()), 100, 100 + count};
    code->function()(params);
    for (int i = 0; i < lanes(); ++i)
      EXPECT_EQ(bytes[static_cast<size_t>(i)], count <= 0 ? 9 : i < count) << count << " lanes, lane " << i;
  }
}

// HeadLanes gives the number of elements up to the next aligned vector, from which FirstLanes makes their mask.
TEST_P(Structure, HeadsCountTheLanesBeforeAVector) {
  for (const ElementType element : {kF32, kF64, kF16, kU8}) {
    const int64_t bytes = element.bits() / 8;
    if (lanes() * element.bits() > vector_bits(GetParam().isa)) continue;
    for (const bool known : {false, true}) {
      KernelBuilder b = builder();
      const RegisterId x = b.parameter(0), y = b.parameter(1), lanes_of_head = b.general(), mask = b.lanes(kBool);
      snippet::Instruction& head = b.add("HeadLanes", {}, {lanes_of_head});
      head.memory = snippet::Memory{.element = element, .base = x, .displacement_bytes = bytes};
      head.number = 2;
      b.kernel.params.resize(3);
      if (known) b.kernel.params[2].known = lanes() + 1;
      b.add("FirstLanes", {lanes_of_head}, {mask});
      b.at(b.add("Store", {mask}, {}), {kBool, y}, Lanes::full);
      const auto code = b.code();
      ASSERT_NE(code, nullptr);
      for (int64_t at = 0; at < lanes(); ++at) {
        for (const int64_t most : {int64_t{0}, int64_t{1}, int64_t{lanes() - 1}, int64_t{lanes() + 1}}) {
          if (known && most <= lanes()) continue;
          std::vector<uint8_t> truth(static_cast<size_t>(lanes()), 9);
          // The address is only a number; the memory is not accessed.
          const int64_t params[] = {4096 + (at - 1) * bytes, address_of(truth.data()), most};
          code->function()(params);
          for (int64_t i = 0; i < lanes(); ++i)
            EXPECT_EQ(truth[static_cast<size_t>(i)], i < std::min((lanes() - at) % lanes(), most))
                << element.to_string() << ", " << at << " behind a vector, " << most << " at most, lane " << i;
        }
      }
    }
  }
}

template <class T>
T folded(const std::string& by, const std::vector<T>& x) {
  using Wide = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;  // integers wrap
  T acc = x[0];
  for (size_t i = 1; i < x.size(); ++i) {
    if (by == "Add") acc = static_cast<T>(static_cast<Wide>(acc) + static_cast<Wide>(x[i]));
    if (by == "Mul") acc = static_cast<T>(static_cast<Wide>(acc) * static_cast<Wide>(x[i]));
    if (by == "Max") acc = std::max(acc, x[i]);
    if (by == "Min") acc = std::min(acc, x[i]);
  }
  return acc;
}

std::shared_ptr<const JitCode> fold_kernel(KernelBuilder b, ElementType element, const char* by, bool in_place) {
  const RegisterId x = b.parameter(0), y = b.parameter(1), value = b.lanes(element);
  const RegisterId result = in_place ? value : b.lanes(element);
  b.at(b.add("Load", {}, {value}), {element, x}, Lanes::full);
  b.add("FoldLanes", {value}, {result}, {{"by", by}});
  b.at(b.add("Store", {result}, {}), {element, y}, Lanes::full);
  return b.code();
}

TEST_P(Structure, LanesAreFolded) {
  constexpr uint64_t kSeed = 11;
  std::mt19937_64 random(kSeed);
  const auto check = [&]<class T>(ElementType element, T) {
    for (const char* by : {"Add", "Mul", "Max", "Min"}) {
      const auto code = fold_kernel(builder(), element, by, by[0] == 'M');
      ASSERT_NE(code, nullptr);
      for (int round = 0; round < 50; ++round) {
        std::vector<T> x = random_values<T>(static_cast<size_t>(lanes()), random), y(x.size());
        // Products of few eighths are exact, so the other factors are 1.
        if (std::is_floating_point_v<T> && std::string(by) == "Mul")
          for (size_t i = 2; i < x.size(); ++i) x[i] = 1;
        std::shuffle(x.begin(), x.end(), random);
        const int64_t params[] = {address_of(x.data()), address_of(y.data())};
        code->function()(params);
        const T expected = folded<T>(by, x);
        for (const T value : y) ASSERT_EQ(value, expected) << by << " of " << element.to_string() << ", seed " << kSeed;
      }
    }
  };
  check(kF32, float{});
  check(kI32, int32_t{});
  check(kU32, uint32_t{});
  if (!possible(kF64)) return;
  check(kF64, double{});
  check(kI64, int64_t{});
  check(kU64, uint64_t{});
}

// Random values. Floats include NaN and both zeros, and their sums are rounded, so that the order has an effect.
template <class T>
std::vector<T> awkward_values(size_t count, std::mt19937_64& random) {
  std::vector<T> values = random_values<T>(count, random);
  if constexpr (std::is_floating_point_v<T>) {
    for (T& value : values) {
      value /= 3;
      if (random() % 16 == 0) value = random() % 2 ? T(0) : -T(0);
      if (random() % 256 == 0) value = std::numeric_limits<T>::quiet_NaN();
    }
  }
  return values;
}

TEST_P(Structure, RowsAreFoldedAsEachAlone) {
  constexpr uint64_t kSeed = 12;
  std::mt19937_64 random(kSeed);
  const auto check = [&]<class T>(ElementType element, T, bool packed = false) {
    for (const char* by : {"Add", "Mul", "Max", "Min"}) {
      KernelBuilder b = builder();
      const RegisterId x = b.parameter(0), y = b.parameter(1);
      const int64_t bytes = lanes() * element.bits() / 8;
      std::vector<RegisterId> rows, folded;
      for (int row = 0; row < 4; ++row) {
        rows.push_back(b.lanes(element)), folded.push_back(b.lanes(element));
        b.at(b.add("Load", {}, {rows.back()}), {element, x, -1, row * bytes}, Lanes::full);
      }
      if (packed) {
        const RegisterId four = b.lanes(element), repeated = b.lanes(element);
        b.add("FoldFour", rows, {four}, {{"by", by}});
        b.add("RepeatFour", {four}, {repeated});
        for (int64_t row = 0; row < 4; ++row)
          b.add("SpreadFour", {repeated}, {folded[static_cast<size_t>(row)]}, {{"at", row}});
      } else {
        b.add("FoldRows", rows, folded, {{"by", by}});
      }
      for (int row = 0; row < 4; ++row)
        b.at(b.add("Store", {folded[static_cast<size_t>(row)]}, {}), {element, y, -1, row * bytes}, Lanes::full);
      const auto together = b.code(), alone = fold_kernel(builder(), element, by, false);
      ASSERT_NE(together, nullptr);
      for (int round = 0; round < 50; ++round) {
        const auto count = static_cast<size_t>(lanes());
        const std::vector<T> from = awkward_values<T>(4 * count, random);
        std::vector<T> to(from.size()), expected(from.size());
        const int64_t params[] = {address_of(from.data()), address_of(to.data())};
        together->function()(params);
        for (size_t row = 0; row < 4; ++row) {
          const int64_t of_row[] = {address_of(from.data() + row * count), address_of(expected.data() + row * count)};
          alone->function()(of_row);
        }
        for (size_t i = 0; i < to.size(); ++i) {
          if (expected[i] != expected[i] && to[i] != to[i]) continue;  // NaN
          ASSERT_EQ(std::memcmp(&to[i], &expected[i], sizeof(T)), 0)
              << by << " of " << element.to_string() << ", row " << i / count << ", seed " << kSeed;
        }
      }
    }
  };
  check(kF32, float{});
  check(kF32, float{}, /*packed=*/true);
  check(kI32, int32_t{});
  check(kU32, uint32_t{});
  if (!possible(kF64)) return;
  check(kF64, double{});
  check(kF64, double{}, /*packed=*/true);
  check(kI64, int64_t{});
  check(kU64, uint64_t{});
}

TEST_P(Structure, ExtremesPassNaNOnAndAllLanesAgree) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* by : {"Max", "Min"}) {
    const auto code = fold_kernel(builder(), kF32, by, false);
    ASSERT_NE(code, nullptr);
    for (int at = 0; at < lanes(); ++at) {
      std::vector<float> x(static_cast<size_t>(lanes()), 1), y(x.size());
      x[static_cast<size_t>(at)] = nan;
      const int64_t params[] = {address_of(x.data()), address_of(y.data())};
      code->function()(params);
      for (const float value : y) EXPECT_TRUE(std::isnan(value)) << by << ", NaN in lane " << at;
      x.assign(x.size(), 0.0f);
      x[static_cast<size_t>(at)] = -0.0f;
      code->function()(params);
      for (const float value : y) EXPECT_EQ(std::signbit(value), std::signbit(y[0])) << by << ", -0 in lane " << at;
    }
  }
}

TEST_P(Structure, AnUnknownFoldIsAnError) {
  KernelBuilder b = builder();
  const RegisterId value = b.lanes(kF32);
  b.add("FoldLanes", {value}, {value}, {{"by", "Xor"}}).vectors = {0, 1, 2};
  const auto object = assemble(b.kernel, structure_table(), target_of(GetParam().isa));
  ASSERT_FALSE(object.ok());
  EXPECT_NE(object.error().message().find("FoldLanes by 'Xor'"), std::string::npos) << object.error().to_string();
}

TEST_P(Structure, TailsAreFilledOutside) {
  for (const ElementType element : kNumbers) {
    if (!possible(element)) continue;
    for (const bool in_place : {false, true}) {
      KernelBuilder b = builder();
      const RegisterId x = b.parameter(0), y = b.parameter(1), counter = b.general(), mask = b.lanes(kBool);
      const RegisterId count = b.general(), value = b.lanes(element), out = in_place ? value : b.lanes(element);
      b.kernel.loops.push_back({.kind = snippet::Loop::Kind::tail, .counter = counter, .limit = 2});
      b.add("Zero", {}, {counter});
      b.add("TailBegin", {counter}, {mask, count}).number = 0;
      b.at(b.add("Load", {}, {value}), {element, x}, Lanes::full);
      b.add("FillTail", {value, mask}, {out}, {{"bits", int64_t{0x4142434445464748}}});
      b.at(b.add("Store", {out}, {}), {element, y}, Lanes::full);
      b.add("TailEnd", {}, {}).number = 0;
      const auto code = b.code();
      ASSERT_NE(code, nullptr);
      const size_t bytes = static_cast<size_t>(lanes() * element.bits() / 8);
      for (int64_t width = 1; width <= lanes(); ++width) {
        std::vector<std::byte> from(bytes, std::byte{0x11}), to(bytes);
        const int64_t params[] = {address_of(from.data()), address_of(to.data()), width};
        code->function()(params);
        for (int i = 0; i < lanes(); ++i) {
          const uint64_t filler = element.bits() == 64 ? 0x4142434445464748u : 0x45464748u;
          const uint64_t bits = load_bits(to.data(), element.bits(), i);
          ASSERT_EQ(bits, i < width ? load_bits(from.data(), element.bits(), i) : filler)
              << element.to_string() << ", width " << width << ", lane " << i;
        }
      }
    }
  }
}

// Also with so many slots that the frame spans pages.
TEST_P(Structure, EveryFileIsSpilledAndReloaded) {
  for (const int slots : {3, 200}) {
    KernelBuilder b = builder();
    b.kernel.frame_slots = slots;
    const RegisterId x = b.parameter(0), y = b.parameter(1), masks = b.parameter(2), value = b.lanes(kF32);
    const RegisterId back = b.lanes(kF32), mask = b.lanes(kBool), mask_back = b.lanes(kBool), y_back = b.general();
    b.at(b.add("Load", {}, {value}), {kF32, x}, Lanes::full);
    b.at(b.add("Load", {}, {mask}), {kBool, masks}, Lanes::full);
    b.add("Spill", {value}, {}).number = slots - 1;
    b.add("Spill", {mask}, {}).number = 1;
    b.add("Spill", {y}, {}).number = 0;
    b.add("Zero", {}, {y});
    b.add("Reload", {}, {back}).number = slots - 1;
    b.add("Reload", {}, {mask_back}).number = 1;
    b.add("Reload", {}, {y_back}).number = 0;
    b.at(b.add("Store", {back}, {}), {kF32, y_back}, Lanes::full);
    b.at(b.add("Store", {mask_back}, {}), {kBool, masks, -1, lanes()}, Lanes::full);
    std::vector<float> from(static_cast<size_t>(lanes())), to(from.size());
    std::iota(from.begin(), from.end(), 1.0f);
    std::vector<uint8_t> bytes(from.size() * 2);
    for (size_t i = 0; i < from.size(); ++i) bytes[i] = i % 3 == 0;
    const int64_t params[] = {address_of(from.data()), address_of(to.data()), address_of(bytes.data())};
    b.code()->function()(params);
    EXPECT_EQ(to, from);
    for (size_t i = 0; i < from.size(); ++i) EXPECT_EQ(bytes[from.size() + i], i % 3 == 0);
  }
}

TENON_ON_ALL_MACHINES(Structure);

}  // namespace
}  // namespace tenon::x86::testing
