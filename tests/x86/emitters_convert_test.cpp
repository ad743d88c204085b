// Conversions between all lane types, and to the values of narrower ones, compared with those of the tensor library.
#include <array>
#include <set>

#include "emitters_support.hpp"

namespace tenon::x86::test {
namespace {

using codegen::JitterRow;

constexpr uint32_t kSeed = 4711;

Column sampled(ElementType from) {
  Column column{from, sample(from, 1 << 16, kSeed)};
  if (from != kF32) return column;
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 65521) column.bits.push_back(bits);  // a prime
  while (column.bits.size() % 64 != 0) column.bits.push_back(0);
  return column;
}

class EmitterConversions : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }

  // Compares the row of `op` for these types with `expected`, in both placements that the types allow.
  void expect(const char* op, const Attributes& attributes, const Column& column, ElementType to,
              std::span<const uint64_t> expected) {
    const std::array in{column.element}, out{to};
    const JitterRow* found = nullptr;
    for (const JitterRow* row : elementwise_table().rows())
      if (!found && isa_of(*row) == GetParam() && row->matches({op, in, out, attributes})) found = row;
    ASSERT_TRUE(found) << op << " from " << column.element.to_string() << " to " << to.to_string();
    const bool wide = column.element.bits() == 64 || to.bits() == 64;
    for (const int lanes : {lanes_of(GetParam(), kF32), lanes_of(GetParam(), kF64)}) {
      if (wide && lanes != lanes_of(GetParam(), kF64)) continue;
      // On avx512 a mask and a vector cannot share a register.
      for (const int result_in : {-1, 0}) {
        if (column.element.is_bool() && GetParam() == Isa::avx512 && result_in == 0) continue;
        const RowRun run{found, GetParam(), lanes, {result_in}, attributes};
        const auto got = run_row(run, std::span(&column, 1), to);
        ASSERT_TRUE(got.ok()) << describe(run) << ": " << got.error().message();
        for (size_t i = 0; i < expected.size(); ++i) {
          if (is_nan(to, expected[i]) && is_nan(to, got->bits[i])) continue;
          ASSERT_EQ(got->bits[i], expected[i])
              << describe(run) << " from " << column.element.to_string() << " to " << to.to_string() << " of bits "
              << std::hex << column.bits[i] << ", seed " << std::dec << kSeed;
        }
      }
    }
    expect_scratch_needed(*found, attributes, column, to);
  }

  void expect_scratch_needed(const JitterRow& row, const Attributes& attributes, const Column& column, ElementType to) {
    if (row.scratch.vectors > 0) wanted_.insert(&row);
    const Column few{column.element, std::vector<uint64_t>(64)};
    for (const int lanes : {lanes_of(GetParam(), kF32), lanes_of(GetParam(), kF64)}) {
      if ((column.element.bits() == 64 || to.bits() == 64) && lanes != lanes_of(GetParam(), kF64)) continue;
      // Some rows need scratch registers only if the result is in the operand's register.
      for (const int result_in : {-1, 0})
        if (!run_row({&row, GetParam(), lanes, {result_in}, attributes, 1}, std::span(&few, 1), to).ok())
          needed_.insert(&row);
    }
  }
  void TearDown() override {
    for (const JitterRow* row : wanted_)
      EXPECT_TRUE(needed_.count(row)) << row->op.str() << " asks for " << row->scratch.vectors << " scratch vectors";
  }

  std::set<const JitterRow*> wanted_, needed_;
};

TEST_P(EmitterConversions, AreThoseOfTheTensorLibrary) {
  for (const ElementType from : {kF32, kF64, kI32, kU32, kI64, kU64, kBool}) {
    const Column column = sampled(from);
    for (const ElementType to : kLaneNumbers)
      if (from != to) expect("Convert", {}, column, to, converted(column, std::array{to}));
  }
}

TEST_P(EmitterConversions, OfUnsignedNumbersThatFitSignedOnes) {
  Column column = sampled(kU32);
  for (uint64_t& bits : column.bits) bits &= 0x7fffffff;
  for (const ElementType to : {kF32, kF64})
    for (const Attributes& attributes : {Attributes{}, Attributes{{"fits_i32", 1}}})
      expect("Convert", attributes, column, to, converted(column, std::array{to}));
}

TEST_P(EmitterConversions, RoundToNarrowFloatsOnce) {
  for (const ElementType lane : {kF32, kF64}) {
    const Column column = sampled(lane);
    for (const ElementType to : {kF16, kBF16})
      expect("Round", {{"to", to.to_string()}}, column, lane, converted(column, std::array{to, lane}));
  }
}

TEST_P(EmitterConversions, WrapToNarrowIntegers) {
  for (const ElementType lane : {kI32, kU32})
    for (const ElementType to : {kI8, kI16, kU8, kU16})
      if (to.is_signed_int() == lane.is_signed_int())
        expect("Wrap", {{"to", to.to_string()}}, sampled(lane), lane, converted(sampled(lane), std::array{to, lane}));
}

INSTANTIATE_TEST_SUITE_P(Isas, EmitterConversions, testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86::test
