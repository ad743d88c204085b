// The errors of the approximated functions of the x86 emitters, over all floats: compared with the functions of std in
// f64. Every kStride-th float is tested, or every TENON_EMITTER_STRIDE-th, with the neighbours of powers of two
// (bench/accuracy_walk.cpp tests all 2^32); TENON_EMITTER_REPORT=1 prints the worst argument:
//
//   TENON_EMITTER_STRIDE=127 TENON_EMITTER_REPORT=1 x86_emitters_accuracy_test --gtest_filter='*Erf*'
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include <immintrin.h>

#include "emitters_support.hpp"

namespace tenon::x86::test {
namespace {

constexpr uint64_t kFloats = uint64_t{1} << 32;
constexpr uint64_t kStride = 8191;  // a prime
constexpr size_t kBlock = 1 << 18;

float as_float(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }

uint64_t stride() {
  const char* const wanted = std::getenv("TENON_EMITTER_STRIDE");
  return std::max<uint64_t>(wanted ? std::strtoull(wanted, nullptr, 0) : kStride, 1);
}

struct Worst {
  double ulp = 0;
  std::array<uint64_t, 2> operands{};
  uint64_t got = 0;
};

// Runs the rows of one function over blocks of operands, and keeps the worst result of each instruction set.
class Walk {
 public:
  explicit Walk(const MathCase& math) : math_(math) {}

  void add(uint64_t x, uint64_t y = 0) {
    operands_[0].bits.push_back(x & 0xffffffffu);
    operands_[1].bits.push_back(y & 0xffffffffu);
    if (operands_[0].bits.size() == kBlock) flush();
  }

  void flush() {
    while (operands_[0].bits.size() % 64 != 0) {
      for (Column& operand : operands_) operand.bits.push_back(0x3f800000);
    }
    if (operands_[0].bits.empty()) return;
    std::vector<double> exact(operands_[0].bits.size());
    for (size_t i = 0; i < exact.size(); ++i) {
      const double x = as_float(operands_[0].bits[i]), y = as_float(operands_[1].bits[i]);
      exact[i] = math_.unary ? math_.unary(x) : math_.binary(x, y);
    }
    for (const Isa isa : machine_isas()) compare(isa, exact);
    for (Column& operand : operands_) operand.bits.clear();
  }

  const Worst& worst(Isa isa) const { return worst_[static_cast<size_t>(isa)]; }

 private:
  void compare(Isa isa, std::span<const double> exact) {
    const RowRun run{math_row(math_, isa), isa, lanes_of(isa, kF32), {}, math_.attributes};
    const auto got = run_row(run, std::span(operands_).first(math_.unary ? 1 : 2), kF32);
    ASSERT_TRUE(got.ok()) << describe(run) << ": " << got.error().message();
    Worst& worst = worst_[static_cast<size_t>(isa)];
    for (size_t i = 0; i < exact.size(); ++i) {
      const double ulp = ulp_error(as_float(got->bits[i]), exact[i]);
      if (ulp > worst.ulp) worst = {ulp, {operands_[0].bits[i], operands_[1].bits[i]}, got->bits[i]};
    }
  }

  const MathCase& math_;
  std::array<Column, 2> operands_{{{kF32, {}}, {kF32, {}}}};
  std::array<Worst, 2> worst_{};
};

// One operand: all floats at a stride. Two: pairs of special values, then seeded random ones.
void walk_floats(Walk& walk, const MathCase& math) {
  constexpr uint32_t kSeed = 20261122;
  if (!math.unary) {
    const std::vector<Column> pairs = sample_columns(kF32, 2, kSeed);
    for (size_t i = 0; i < pairs[0].bits.size(); ++i) walk.add(pairs[0].bits[i], pairs[1].bits[i]);
    // Each pair alone in a vector of ordinary ones, for which code may have a shorter path.
    constexpr uint64_t kTwo = 0x40000000, kThree = 0x40400000;
    for (size_t i = 0; i < pairs[0].bits.size(); ++i)
      for (size_t lane = 0; lane < 16; ++lane)
        lane == i % 16 ? walk.add(pairs[0].bits[i], pairs[1].bits[i]) : walk.add(kThree, kTwo);
    // a at a stride, with b of a size for which a^b is finite.
    uint64_t step = stride() * 16 + 1;
    for (uint64_t x = 0; x < kFloats / 2; x += step) {
      const double log = std::log2(std::max(as_float(x), 1e-45f));
      const double limit = 150 / std::max(std::abs(log), 1e-7);
      const double y = limit * std::sin(static_cast<double>(x));
      walk.add(x, std::bit_cast<uint32_t>(static_cast<float>(y)));
    }
    return;
  }
  for (const uint64_t bits : sample(kF32, 4096, kSeed)) walk.add(bits);
  for (uint64_t exponent = 0; exponent < 512; ++exponent)
    for (uint64_t near = 0; near < 64; ++near) walk.add((exponent << 23) - 32 + near);
  for (uint64_t bits = 0; bits < kFloats; bits += stride()) walk.add(bits);
}

class EmitterAccuracy : public testing::TestWithParam<MathCase> {};

TEST_P(EmitterAccuracy, IsAsStatedOverAllFloats) {
  const MathCase& math = GetParam();
  for (const Isa isa : machine_isas()) ASSERT_TRUE(math_row(math, isa)) << math.op << " on " << isa_name(isa);
  Walk walk(math);
  walk_floats(walk, math);
  walk.flush();
  for (const Isa isa : machine_isas()) {
    const Worst& worst = walk.worst(isa);
    const double stated = math_row(math, isa)->max_ulp;
    EXPECT_LE(worst.ulp, stated) << math.op << " on " << isa_name(isa) << " of " << std::hex << worst.operands[0]
                                 << ", " << worst.operands[1] << " (" << as_float(worst.operands[0]) << ", "
                                 << as_float(worst.operands[1]) << ") got " << worst.got << " (" << as_float(worst.got)
                                 << ")";
    if (std::getenv("TENON_EMITTER_REPORT"))
      std::printf(
          "%-10s %-7s worst %.3f ulp at %#llx, %#llx (stated %.2f), every %lluth float\n", std::string(math.op).c_str(),
          std::string(isa_name(isa)).c_str(), worst.ulp, static_cast<unsigned long long>(worst.operands[0]),
          static_cast<unsigned long long>(worst.operands[1]), stated, static_cast<unsigned long long>(stride()));
  }
}

// ---- Swish of any alpha that the row takes ----

template <float kAlpha>
MathCase swish_of() {
  MathCase made{.op = "Swish", .unary = [](double x) { return x / (1 + std::exp(-static_cast<double>(kAlpha) * x)); }};
  made.attributes.set("alpha", kAlpha);
  return made;
}

// x is large at the end of the gate if alpha is small, and small if it is large. With 0, infinities have no result.
TEST(SwishOfAlpha, IsAsStated) {
  const MathCase cases[] = {swish_of<0.0f>(),  swish_of<0x1p-44f>(), swish_of<-0x1p-44f>(), swish_of<0x1p-20f>(),
                            swish_of<-1.0f>(), swish_of<1e10f>(),    swish_of<-3.4e38f>()};
  for (const MathCase& math : cases) {
    Walk walk(math);
    for (const uint64_t bits : sample(kF32, 4096, 27)) walk.add(bits);
    for (uint64_t bits = 0; bits < kFloats; bits += stride() * 4 + 1) walk.add(bits);
    walk.flush();
    for (const Isa isa : machine_isas()) {
      const Worst& worst = walk.worst(isa);
      EXPECT_LE(worst.ulp, math_row(math, isa)->max_ulp)
          << isa_name(isa) << ", alpha " << *math.attributes.find("alpha")->get_if<float>() << ": of "
          << as_float(worst.operands[0]) << " got " << as_float(worst.got);
    }
  }
}

// ---- Powers of a constant ----

template <float kExponent>
double raised(double x) {
  return std::pow(x, kExponent);
}
template <float kExponent>
MathCase raise_by(std::initializer_list<std::string_view> flags) {
  MathCase made{.op = "PowBy", .unary = raised<kExponent>};
  made.attributes.set("exponent", static_cast<int64_t>(std::bit_cast<uint32_t>(kExponent)));
  for (const std::string_view flag : flags) made.attributes.set(std::string(flag), 1);
  return made;
}

// Over all numbers for which the row is used (x86/body/numbers.hpp).
TEST(PowersByConstants, AreAsStated) {
  const MathCase cases[] = {raise_by<2.4f>({}),
                            raise_by<0.3f>({}),
                            raise_by<-0.7f>({}),
                            raise_by<-11.25f>({}),
                            raise_by<1e-3f>({}),
                            raise_by<0x1p-149f>({}),
                            raise_by<0.45454547f>({"no_sign"}),
                            raise_by<3.0f>({"no_sign"}),
                            raise_by<-3.0f>({"no_sign"}),
                            raise_by<7e8f>({"no_sign"}),
                            raise_by<-3e38f>({"no_sign"}),
                            raise_by<2.2f>({"no_sign", "normal"}),
                            raise_by<-0.25f>({"no_sign", "normal"})};
  for (const MathCase& math : cases) {
    const bool no_sign = math.attributes.has("no_sign"), normal = math.attributes.has("normal");
    Walk walk(math);
    const auto add = [&](uint64_t bits) {
      const float x = as_float(bits);
      if ((no_sign && std::signbit(x)) || (normal && x != 0 && std::abs(x) < 0x1p-126f)) return;
      walk.add(bits);
    };
    for (const uint64_t bits : sample(kF32, 4096, 27)) add(bits);
    for (uint64_t exponent = 0; exponent < 512; ++exponent)
      for (uint64_t near = 0; near < 64; ++near) add((exponent << 23) - 32 + near);
    for (uint64_t bits = 0; bits < kFloats; bits += stride() * 4 + 1) add(bits);
    walk.flush();
    for (const Isa isa : machine_isas()) {
      const Worst& worst = walk.worst(isa);
      EXPECT_LE(worst.ulp, math_row(math, isa)->max_ulp)
          << isa_name(isa) << ", " << math.unary(2) << " of 2: of " << as_float(worst.operands[0]) << " got "
          << as_float(worst.got);
    }
  }
}
TEST(PowersByConstants, OfFewLanes) {
  const MathCase math = raise_by<2.4f>({});
  const Column x{kF32, sample(kF32, 256, 27)};
  for (const Isa isa : machine_isas())
    for (int lanes = lanes_of(isa, kF32) / 2; lanes >= 4; lanes /= 2) {
      const RowRun run{math_row(math, isa), isa, lanes, {}, math.attributes};
      const auto got = run_row(run, std::span(&x, 1), kF32);
      ASSERT_TRUE(got.ok()) << describe(run) << ": " << got.error().message();
      for (size_t i = 0; i < x.bits.size() / 16 * 16; ++i)
        EXPECT_LE(ulp_error(as_float(got->bits[i]), math.unary(as_float(x.bits[i]))), run.row->max_ulp)
            << describe(run) << " of " << as_float(x.bits[i]);
    }
}

// Results between 0 and the least float take the machine many times as long as others, and all powers of masked scores
// are such results.
TEST(EmitterSpeed, PowersOfMaskedScoresDoNotUnderflow) {
  const MathCase& exponential = *std::ranges::find(math_cases(), "Exp", &MathCase::op);
  Column x{kF32, {}};
  for (const float score : {-176.f, -1e3f, -1e4f, -65504.f, -1e9f, -1e30f, std::numeric_limits<float>::lowest(),
                            -std::numeric_limits<float>::infinity()})
    x.bits.insert(x.bits.end(), 16, std::bit_cast<uint32_t>(score));
  for (const Isa isa : machine_isas()) {
    const RowRun run{math_row(exponential, isa), isa, lanes_of(isa, kF32)};
    _MM_SET_EXCEPTION_STATE(0);
    const auto got = run_row(run, std::span(&x, 1), kF32);
    const unsigned raised = _MM_GET_EXCEPTION_STATE();
    ASSERT_TRUE(got.ok()) << got.error().message();
    for (const uint64_t bits : got->bits) EXPECT_EQ(bits, 0u) << isa_name(isa);
    // On avx512 one instruction scales by a power of two, and underflow does not slow it down.
    const unsigned slow = isa == Isa::avx2 ? _MM_EXCEPT_UNDERFLOW | _MM_EXCEPT_DENORM : 0;
    EXPECT_EQ(raised & slow, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, EmitterAccuracy, testing::ValuesIn(math_cases().begin(), math_cases().end()),
                         [](const auto& info) {
                           return std::string(info.param.op) + "_" + std::to_string(info.index);
                         });

}  // namespace
}  // namespace tenon::x86::test
