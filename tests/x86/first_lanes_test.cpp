// Rows of a few elements: reductions over the lanes that hold them, and masks of counts that are constants of the code.
#include <cstring>
#include <random>

#include "x86/kernel_support.hpp"
#include "x86/passes/passes.hpp"

namespace tenon::x86::testing {
namespace {

using codegen::Lanes;
using snippet::RegisterId;

class FirstLanes : public MachineTest {
 protected:
  int lanes() const { return GetParam().lanes; }
  bool possible(ElementType element) const { return lanes() * element.bits() <= vector_bits(GetParam().isa); }

  // Reduces four rows that are consecutive in memory, each into all lanes: one by one, together, or packed into four
  // lanes.
  enum class Form : uint8_t { alone, together, packed };
  std::shared_ptr<const JitCode> fold(ElementType element, const char* by, Form form, int64_t first) const {
    KernelBuilder b{GetParam().isa, lanes()};
    const RegisterId x = b.parameter(0), y = b.parameter(1);
    const int64_t bytes = lanes() * element.bits() / 8;
    Attributes attributes{{"by", by}};
    if (first > 0) attributes.set("first", first);
    std::vector<RegisterId> rows, folded;
    for (int row = 0; row < 4; ++row) {
      rows.push_back(b.lanes(element)), folded.push_back(b.lanes(element));
      b.at(b.add("Load", {}, {rows.back()}), {element, x, -1, row * bytes}, Lanes::full);
    }
    if (form == Form::alone) {
      for (size_t row = 0; row < 4; ++row) b.add("FoldLanes", {rows[row]}, {folded[row]}, attributes);
    } else if (form == Form::together) {
      b.add("FoldRows", rows, folded, attributes);
    } else {
      const RegisterId four = b.lanes(element), repeated = b.lanes(element);
      b.add("FoldFour", rows, {four}, attributes);
      b.add("RepeatFour", {four}, {repeated});
      for (int64_t row = 0; row < 4; ++row)
        b.add("SpreadFour", {repeated}, {folded[static_cast<size_t>(row)]}, {{"at", row}});
    }
    for (int row = 0; row < 4; ++row)
      b.at(b.add("Store", {folded[static_cast<size_t>(row)]}, {}), {element, y, -1, row * bytes}, Lanes::full);
    return b.code();
  }
};

int64_t address_of(const void* data) { return reinterpret_cast<int64_t>(data); }

struct By {
  const char* name;
  double neutral;
};
constexpr By kFolds[] = {{"Add", 0}, {"Mul", 1}, {"Max", -1e9}, {"Min", 1e9}};

TEST_P(FirstLanes, FoldAsAllDo) {
  constexpr uint64_t kSeed = 31;
  std::mt19937_64 random(kSeed);
  const auto check = [&]<class T>(ElementType element, T, std::initializer_list<Form> forms) {
    for (const By by : kFolds) {
      const auto all = fold(element, by.name, Form::alone, 0);
      ASSERT_NE(all, nullptr);
      for (const Form form : forms) {
        for (int first = 1; first < lanes(); ++first) {
          const auto some = fold(element, by.name, form, first);
          ASSERT_NE(some, nullptr);
          for (int round = 0; round < 20; ++round) {
            const auto count = static_cast<size_t>(lanes());
            std::vector<T> from(4 * count, static_cast<T>(by.neutral)), to(from.size()), expected(from.size());
            for (size_t i = 0; i < from.size(); ++i) {
              if (i % count >= static_cast<size_t>(first)) continue;
              from[i] = static_cast<T>(static_cast<double>(random() % 2001) / 3 - 300);
              if (std::is_floating_point_v<T> && round % 3 == 0) from[i] = -T(0);
              if (std::is_floating_point_v<T> && random() % 64 == 0) from[i] = std::numeric_limits<T>::quiet_NaN();
            }
            const int64_t expect[] = {address_of(from.data()), address_of(expected.data())};
            const int64_t params[] = {address_of(from.data()), address_of(to.data())};
            all->function()(expect);
            some->function()(params);
            for (size_t i = 0; i < to.size(); ++i) {
              if (expected[i] != expected[i] && to[i] != to[i]) continue;  // NaN
              ASSERT_EQ(std::memcmp(&to[i], &expected[i], sizeof(T)), 0)
                  << by.name << " of " << first << " " << element.to_string() << ", form " << static_cast<int>(form)
                  << ", lane " << i << ": " << to[i] << " and not " << expected[i] << ", seed " << kSeed;
            }
          }
        }
      }
    }
  };
  check(kF32, float{}, {Form::alone, Form::together, Form::packed});
  check(kI32, int32_t{}, {Form::alone, Form::together});
  if (!possible(kF64)) return;
  check(kF64, double{}, {Form::alone, Form::together, Form::packed});
  check(kI64, int64_t{}, {Form::alone, Form::together});
}

TEST_P(FirstLanes, OfACountInTheCode) {
  for (int64_t count = 0; count < lanes(); ++count) {
    KernelBuilder b{GetParam().isa, lanes()};
    const RegisterId y = b.parameter(0), mask = b.lanes(kBool), number = b.general();
    b.add("Number", {}, {number}, {{"value", count}});
    b.add("FirstLanes", {number}, {mask});
    b.at(b.add("Store", {mask}, {}), {kBool, y}, Lanes::full);
    mark_first_lanes(b.kernel);
    ASSERT_NE(b.kernel.body[2].attributes.find("count"), nullptr) << print(b.kernel);
    const auto code = b.code();
    ASSERT_NE(code, nullptr);
    std::vector<uint8_t> truth(static_cast<size_t>(lanes()), 9);
    const int64_t params[] = {address_of(truth.data())};
    code->function()(params);
    for (int i = 0; i < lanes(); ++i) EXPECT_EQ(truth[static_cast<size_t>(i)], i < count) << count << ", lane " << i;
  }
}

TENON_ON_ALL_MACHINES(FirstLanes);

snippet::LinearKernel parsed(const std::string& by, int64_t bits, const std::string& load) {
  KernelBuilder b{Isa::avx512, 16};
  const RegisterId x = b.parameter(0), number = b.general(), mask = b.lanes(kBool), loaded = b.lanes(kF32),
                   filled = b.lanes(kF32), folded = b.lanes(kF32);
  b.add("Number", {}, {number}, {{"value", 3}});
  b.add("FirstLanes", {number}, {mask});
  b.at(b.add("Load", {mask, number}, {loaded}), {kF32, x}, Lanes::partial);
  if (load == "filled") b.add("FillTail", {loaded, mask}, {filled}, {{"bits", bits}});
  b.add("FoldLanes", {load == "filled" ? filled : loaded}, {folded}, {{"by", by}});
  b.at(b.add("Store", {folded}, {}), {kF32, x}, Lanes::one);
  mark_first_lanes(b.kernel);
  return b.kernel;
}

// A Load gives 0 after the end of a row, which changes all reductions except sums.
TEST(MarkedFolds, AreOfLanesThatChangeNothing) {
  const auto first = [](const snippet::LinearKernel& kernel) {
    for (const snippet::Instruction& one : kernel.body)
      if (one.op == Name("FoldLanes")) return one.attributes.find("first") != nullptr;
    return false;
  };
  EXPECT_TRUE(first(parsed("Add", 0, "loaded")));
  EXPECT_TRUE(first(parsed("Max", 0xff800000, "filled")));
  EXPECT_FALSE(first(parsed("Max", 0, "loaded")));
}

TEST(MarkedLoadsAndStores, SayHowManyLanesTheyHave) {
  for (const bool known : {true, false}) {
    KernelBuilder b{Isa::avx2, 8};
    const RegisterId x = b.parameter(0), number = known ? b.general() : b.parameter(1), mask = b.lanes(kBool),
                     value = b.lanes(kF32), half = b.lanes(kF32);
    if (known) b.add("Number", {}, {number}, {{"value", 3}});
    b.add("FirstLanes", {number}, {mask});
    b.at(b.add("Load", {mask, number}, {value}), {kF32, x}, Lanes::partial);
    b.at(b.add("Load", {mask, number}, {half}), {kF16, x}, Lanes::partial);
    b.at(b.add("Store", {value, mask, number}, {}), {kF32, x}, Lanes::partial);
    mark_first_lanes(b.kernel);
    for (const snippet::Instruction& one : b.kernel.body) {
      if (one.op != Name("Load")) continue;
      EXPECT_EQ(one.attributes.find("count") != nullptr, known && one.memory->element == kF16)
          << "of 32 bits there are masks: " << print(b.kernel);
    }
    const Attribute* count = b.kernel.body.back().attributes.find("count");
    ASSERT_EQ(count != nullptr, known) << print(b.kernel);
    if (known) {
      EXPECT_EQ(*count->get_if<int64_t>(), 3);
    }
  }
}

}  // namespace
}  // namespace tenon::x86::testing
