// The errors of the functions of f64: compared with those of std in long double, which has 11 bits more on x86.
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>

#include "emitters_support.hpp"

namespace tenon::x86::test {
namespace {

static_assert(std::numeric_limits<long double>::digits >= 64);

constexpr uint32_t kSeed = 20261123;
constexpr size_t kValues = 1 << 16;  // per range

using Arguments = std::array<double, 2>;  // functions of one argument ignore the second

struct Function {
  std::string_view op;
  size_t operands;
  long double (*exact)(long double, long double);
  std::vector<Arguments> (*values)(std::mt19937_64&);
};

double random_in(std::mt19937_64& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

// Arguments with all finite results and beyond, small ones, and those around the borders between exponents.
std::vector<Arguments> exponentials(std::mt19937_64& random) {
  std::vector<Arguments> values;
  for (size_t i = 0; i < kValues; ++i) {
    values.push_back({random_in(random, -760, 720)});
    values.push_back({random_in(random, -1, 1)});
    values.push_back({std::ldexp(random_in(random, -1, 1), -static_cast<int>(random() % 70))});
    const double border = (static_cast<double>(random() % 2200) - 1099.5) * 0.6931471805599453;
    values.push_back({border + std::ldexp(random_in(random, -1, 1), -static_cast<int>(random() % 50))});
  }
  return values;
}

// Arguments with every exponent, including denormals, around 1, and around the borders of the significand.
std::vector<Arguments> logarithms(std::mt19937_64& random) {
  std::vector<Arguments> values;
  for (size_t i = 0; i < kValues; ++i) {
    values.push_back({std::ldexp(random_in(random, 1, 2), static_cast<int>(random() % 2100) - 1075)});
    values.push_back({1 + std::ldexp(random_in(random, -1, 1), -static_cast<int>(random() % 53))});
    for (const double border : {0.75, 1.5, 3.0})
      values.push_back({border + std::ldexp(random_in(random, -1, 1), -static_cast<int>(random() % 52) - 1)});
  }
  return values;
}

// a with every exponent and near 1, with b of a size for which a^b is finite; integers a with multiples of 1/2 as b;
// pairs of special values.
std::vector<Arguments> powers(std::mt19937_64& random) {
  std::vector<Arguments> values;
  const auto add = [&](double a) {
    const double limit = 1100 / std::max(std::abs(std::log2(a)), 1e-290);
    values.push_back({a, limit * random_in(random, -1, 1)});
  };
  for (size_t i = 0; i < kValues; ++i) {
    add(std::ldexp(random_in(random, 1, 2), static_cast<int>(random() % 2090) - 1070));
    add(1 + std::ldexp(random_in(random, -0.9, 1), -static_cast<int>(random() % 53)));
    values.push_back({static_cast<double>(static_cast<int>(random() % 2001) - 1000),
                      static_cast<double>(static_cast<int>(random() % 81) - 40) / 2});
  }
  const std::vector<Column> pairs = sample_columns(kF64, 2, kSeed);
  for (size_t i = 0; i < pairs[0].bits.size(); ++i)
    values.push_back({std::bit_cast<double>(pairs[0].bits[i]), std::bit_cast<double>(pairs[1].bits[i])});
  return values;
}

// Infinite a by the function of f64, because that of long double (glibc 2.36) gives inf for -inf to the power of -2^63.
long double exact_power(long double a, long double b) {
  return std::isinf(a) ? std::pow(static_cast<double>(a), static_cast<double>(b)) : std::pow(a, b);
}

constexpr Function kFunctions[] = {
    {"Exp", 1, [](long double x, long double) { return std::exp(x); }, exponentials},
    {"Log", 1, [](long double x, long double) { return std::log(x); }, logarithms},
    {"Pow", 2, exact_power, powers},
};

double wide_ulp_error(double got, long double exact) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (std::isnan(exact)) return std::isnan(got) ? 0 : kInfinity;
  const auto nearest = static_cast<double>(exact);
  if (std::isinf(nearest) || std::isinf(got) || std::isnan(got)) return got == nearest ? 0 : kInfinity;
  const double magnitude = std::abs(nearest);
  const double ulp = magnitude == std::numeric_limits<double>::max() ? magnitude - std::nextafter(magnitude, 0)
                                                                     : std::nextafter(magnitude, kInfinity) - magnitude;
  return static_cast<double>(std::abs(got - exact) / ulp);
}

class WideFunctions : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
  static const codegen::JitterRow* row_of(const Function& function) {
    const std::array types{kF64, kF64};
    const Attributes none;
    const codegen::Signature signature{function.op, std::span(types).first(function.operands),
                                       std::span(types).first(1), none};
    for (const codegen::JitterRow* row : elementwise_table().rows())
      if (isa_of(*row) == GetParam() && row->matches(signature)) return row;
    return nullptr;
  }
  static std::vector<Column> columns_of(const Function& function) {
    std::mt19937_64 random(kSeed);
    std::vector<Column> columns(function.operands, Column{kF64, sample(kF64, 4096, kSeed)});
    for (const Arguments& arguments : function.values(random))
      for (size_t i = 0; i < columns.size(); ++i) columns[i].bits.push_back(std::bit_cast<uint64_t>(arguments[i]));
    for (Column& column : columns) column.bits.resize((column.bits.size() + 15) / 16 * 16);
    return columns;
  }
};

TEST_P(WideFunctions, AreAsExactAsTheirRowsState) {
  for (const Function& function : kFunctions) {
    const codegen::JitterRow* const row = row_of(function);
    ASSERT_TRUE(row) << function.op;
    const std::vector<Column> columns = columns_of(function);
    for (const int result_in : {-1, 0}) {
      const RowRun run{row, GetParam(), lanes_of(GetParam(), kF64), {.result_in = result_in}, {}};
      const auto got = run_row(run, columns, kF64);
      ASSERT_TRUE(got.ok()) << describe(run) << ": " << got.error().message();
      double worst = 0;
      for (size_t i = 0; i < got->bits.size(); ++i) {
        const auto value = [&](const Column& column) { return std::bit_cast<double>(column.bits[i]); };
        const double a = value(columns.front()), b = value(columns.back()), result = value(*got);
        const double ulp = wide_ulp_error(result, function.exact(a, b));
        ASSERT_LE(ulp, row->max_ulp) << describe(run) << " of " << a << ", " << b << " got " << result << ", seed "
                                     << kSeed;
        worst = std::max(worst, ulp);
      }
      if (std::getenv("TENON_EMITTER_REPORT"))
        std::printf("%s %s worst %.3f ulp\n", describe(run).c_str(), std::string(isa_name(GetParam())).c_str(), worst);
    }
  }
}

// Integers to the power of floats are converted to integers, so integral results must be exact before truncation.
TEST_P(WideFunctions, PowersThatAreWholeNumbersAreExact) {
  std::vector<Column> columns(2, Column{kF64, {}});
  std::vector<double> expected;
  const auto add = [&](double a, double b, double power) {
    columns[0].bits.push_back(std::bit_cast<uint64_t>(a));
    columns[1].bits.push_back(std::bit_cast<uint64_t>(b));
    expected.push_back(power);
  };
  for (int base = 2; base <= 3000; ++base) {
    double power = 1;
    for (int n = 0; power < 0x1p53; ++n, power *= base) {
      add(base, n, power);
      add(-base, n, n % 2 == 0 ? power : -power);
      if (double{power} * power < 0x1p53) add(power * power, 0.5, power);
      if (std::pow(power, 4) < 0x1p53) add(std::pow(power, 4), 0.25, power);
      if (std::pow(power, 3) < 0x1p53) add(power * power, 1.5, std::pow(power, 3));
    }
  }
  while (expected.size() % 16 != 0) add(1, 1, 1);
  const RowRun run{row_of(kFunctions[2]), GetParam(), lanes_of(GetParam(), kF64), {}, {}};
  const auto got = run_row(run, columns, kF64);
  ASSERT_TRUE(got.ok()) << got.error().message();
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(std::bit_cast<double>(got->bits[i]), expected[i])
        << std::bit_cast<double>(columns[0].bits[i]) << " to the power of "
        << std::bit_cast<double>(columns[1].bits[i]);
}

INSTANTIATE_TEST_SUITE_P(Isas, WideFunctions, testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86::test
