// Each fused operator on simulated machines: bit for bit the reference's result, over seeded shapes and machines.
// TENON_VTA_CASES: the number of shapes of products (2,000); a tenth of it for everything else.
#include "fused_ops.hpp"

#include <cstdlib>

namespace tenon::vta {
namespace {

using namespace testing;

int cases() {
  const char* text = std::getenv("TENON_VTA_CASES");
  return text ? std::atoi(text) : 2000;
}

// One operator on one machine. `ran` counts those that are not refused.
void expect_same(const OneOp& one, const TargetDescription& target, int seed, int& ran) {
  if (!refusal(target, one).empty()) return;
  const auto program = compile_program(*one.graph, target);
  ASSERT_TRUE(program.ok()) << "seed " << seed << ", " << target.name << ", " << one.what << ": "
                            << program.error().to_string();
  ++ran;
  const auto y = run_program(*program, one);
  ASSERT_TRUE(y.ok()) << "seed " << seed << ", " << target.name << ", " << one.what << ": " << y.error().to_string();
  const auto wanted = on_reference(one);
  ASSERT_TRUE(wanted.ok()) << wanted.error().to_string();
  ASSERT_TRUE(y->identical(*wanted)) << "seed " << seed << ", " << target.name << ", " << one.what;
}

template <class Make>
void expect_all_same(int count, Make make) {
  const auto targets = machines();
  int ran = 0;
  for (int seed = 0; seed < count; ++seed) {
    std::mt19937 r(static_cast<uint32_t>(seed));
    const OneOp one = make(r);
    if (::testing::Test::HasFatalFailure()) return;
    expect_same(one, targets[static_cast<size_t>(seed) % targets.size()], seed, ran);
    if (::testing::Test::HasFailure()) return;
  }
  // Hardly any shape is too much for a machine.
  EXPECT_GE(ran, count * 9 / 10);
}

TEST(FusedOps, Convolutions) { expect_all_same(cases() * 3 / 4, random_convolution); }
TEST(FusedOps, DenseProducts) { expect_all_same(cases() / 4, random_dense); }
TEST(FusedOps, Additions) { expect_all_same(cases() / 10, random_addition); }
TEST(FusedOps, AveragePools) { expect_all_same(cases() / 10, random_average); }
TEST(FusedOps, MaxPools) { expect_all_same(cases() / 10, random_max); }

}  // namespace
}  // namespace tenon::vta
