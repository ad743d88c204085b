// Functions that skip some of their instructions if all lanes are ordinary: which operands are ordinary, and that the
// results of others are correct in any lane among ordinary ones.
#include <bit>
#include <cmath>
#include <limits>

#include "emitters_support.hpp"

namespace tenon::x86::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kLargest = std::numeric_limits<float>::max(), kLeastNormal = 0x1p-126f, kLeast = 0x1p-149f;

struct Operands {
  float a = 0, b = 0;
};

struct Ways {
  std::string_view op;
  std::vector<Isa> isas;
  std::vector<Operands> ordinary, others;
};

std::vector<Ways> ways() {
  return {{.op = "Log",
           .isas = {Isa::avx2},  // avx512 has a single path
           .ordinary = {{1}, {0.75f}, {0x1.fffffep-1f}, {kLeastNormal}, {kLargest}, {1e-30f}, {1e30f}},
           .others = {{0},
                      {-0.f},
                      {kLeast},
                      {0x1.fffffcp-127f},
                      {-kLeast},
                      {-kLeastNormal},
                      {-1},
                      {-kLargest},
                      {kInf},
                      {-kInf},
                      {kNaN},
                      {-kNaN}}},
          {.op = "Pow",
           .isas = {Isa::avx2, Isa::avx512},
           .ordinary = {{1, 5}, {kLeast, 1.5f}, {kLargest, -1}, {2, -kLargest}, {0.5f, 0}, {7, -0.f}, {7, kLeast}},
           .others = {{0, 2},
                      {-0.f, 3},
                      {-kLeast, 3},
                      {-1, 7},
                      {-2, 0.5f},
                      {-kLargest, 2},
                      {kInf, 2},
                      {-kInf, -3},
                      {kNaN, 2},
                      {-kNaN, 0},
                      {3, kInf},
                      {3, -kInf},
                      {3, kNaN},
                      {-1, kInf},
                      {0, -kInf}}}};
}

class EmitterWays : public testing::TestWithParam<Ways> {
 protected:
  // Runs one vector of ordinary operands, except for `odd` in `lane`, checks all results, and returns how many
  // instructions ran.
  size_t instructions(Isa isa, Operands odd, size_t lane) {
    constexpr Operands kOrdinary{3, 2};
    const MathCase& math = *std::ranges::find(math_cases(), GetParam().op, &MathCase::op);
    const int lanes = lanes_of(isa, kF32);
    size_t count = 0;
    const RowRun run{.row = math_row(math, isa), .isa = isa, .lanes = lanes, .instructions = &count};
    std::array<Column, 2> columns{{{kF32, {}}, {kF32, {}}}};
    std::vector<double> exact;
    for (size_t i = 0; i < static_cast<size_t>(lanes); ++i) {
      const auto [a, b] = i == lane ? odd : kOrdinary;
      columns[0].bits.push_back(std::bit_cast<uint32_t>(a));
      columns[1].bits.push_back(std::bit_cast<uint32_t>(b));
      exact.push_back(math.unary ? math.unary(a) : math.binary(a, b));
    }
    const auto got = run_row(run, std::span(columns).first(math.unary ? 1 : 2), kF32);
    EXPECT_TRUE(got.ok()) << got.error().message();
    for (size_t i = 0; i < exact.size(); ++i)
      EXPECT_LE(ulp_error(std::bit_cast<float>(static_cast<uint32_t>(got->bits[i])), exact[i]), run.row->max_ulp)
          << describe(run) << ", lane " << i << " where " << odd.a << ", " << odd.b << " is in " << lane;
    return count;
  }
};

TEST_P(EmitterWays, TheShorterOneIsForOrdinaryLanesAlone) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer puts off what signals do";
#endif
  for (const Isa isa : GetParam().isas) {
    if (!machine_has(isa)) continue;
    const size_t shorter = instructions(isa, {3, 2}, 0);
    for (size_t lane = 0; lane < static_cast<size_t>(lanes_of(isa, kF32)); ++lane) {
      for (const Operands& odd : GetParam().ordinary)
        EXPECT_EQ(instructions(isa, odd, lane), shorter)
            << isa_name(isa) << ": " << odd.a << ", " << odd.b << " in lane " << lane;
      for (const Operands& odd : GetParam().others)
        EXPECT_GT(instructions(isa, odd, lane), shorter + 10)
            << isa_name(isa) << ": " << odd.a << ", " << odd.b << " in lane " << lane;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, EmitterWays, testing::ValuesIn(ways()),
                         [](const auto& info) { return std::string(info.param.op); });

}  // namespace
}  // namespace tenon::x86::test
