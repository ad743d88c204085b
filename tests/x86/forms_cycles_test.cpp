// The cost of a call of a form, in cycles.
#include <cmath>
#include <utility>

#include "x86/forms_support.hpp"

namespace tenon::x86 {
namespace {

using FormsCycles = Forms;

// The loop over whole vectors runs once per vector, then the tail once.
TEST_P(FormsCycles, CyclesOfACallCountTripsOfLoops) {
  const FormMaker maker(target(), **jitter_table(), {});
  const int lanes = lanes_of(GetParam(), kF32);
  snippet::LinearKernel kernel = testing::parsed(testing::row_kernel(
      lanes, testing::load("f32") + testing::load("f32").replace(4, 3, "%11") + "    %20:f32 = Div %10, %11\n"));
  const auto cycles = [&](int64_t vectors, int64_t more) {
    kernel.extents = {vectors * lanes + more};
    return *maker.cycles_of_call(kernel);
  };
  const double vector = cycles(1, 0) - cycles(0, 0), tail = cycles(0, 1) - cycles(0, 0);
  EXPECT_GT(vector, 5) << "two loads, a division, a store and the loop's end";
  EXPECT_GT(tail, 5);
  EXPECT_EQ(cycles(7, 0), cycles(0, 0) + 7 * vector);
  EXPECT_EQ(cycles(7, 3), cycles(7, 0) + tail);
  kernel.extents = {-1};
  EXPECT_EQ(maker.cycles_of_call(kernel), std::nullopt);
}

// Only one of two conditional regions runs.
TEST_P(FormsCycles, CyclesOfACallCountOneOfTwoWhens) {
  const FormMaker maker(target(), **jitter_table(), {});
  const int lanes = lanes_of(GetParam(), kF32);
  const auto when = [&](const char* head, int id) {
    return str("  when ", head, "%3 {\n    loop ", id - 6, " d0 dim 0 %4 vector step ", lanes, " limit #2 {\n      %",
               id, ":f32 = Load f32 [%0 + %4]\n      Store f32 [%1 + %4], %", id, "\n    }\n  }\n");
  };
  const auto kernel = [&](const std::string& whens) {
    snippet::LinearKernel made = testing::parsed(
        str("kernel @when lanes ", lanes, " {\n  #0 = pointer 0\n  #1 = pointer 1\n  #2 = limit loop 0\n",
            "  %0:g = Parameter #0\n  %1:g = Parameter #1\n  %2:f32 = BroadcastLoad f32 [%0]\n",
            "  %3:bool = Less %2, %2\n  %4:g = Zero\n  %5:g = Zero\n", whens, "}\n"));
    made.extents = {1000};
    return made;
  };
  const snippet::LinearKernel one = kernel(when("", 6)), both = kernel(when("", 6) + when("not ", 7));
  EXPECT_EQ(*maker.cycles_of_call(both), *maker.cycles_of_call(one));
}

// Cycles are proportional to elements, whether several vectors or rows are processed at once, rows form one stretch, or
// a loop traverses several stretches.
TEST_P(FormsCycles, CyclesOfACallGoWithItsElements) {
  const FormMaker maker(target(), **jitter_table(), {});
  const auto per_element = [&](std::string_view dims, int64_t elements, std::string_view operators) {
    const snippet::Body body = body_of(str("f32[", dims, "]"), operators);
    double least = INFINITY, most = 0;
    for (const FormMaker::Tier& tier : maker.tiers_of(body)) {
      const auto form = maker.make(body, tier);
      const double cycles = *maker.cycles_of_call(form->kernel) / static_cast<double>(elements);
      least = std::min(least, cycles), most = std::max(most, cycles);
    }
    return std::pair(least, most);
  };
  const auto expect_alike = [&](std::pair<double, double> one, std::pair<double, double> other, std::string_view what) {
    EXPECT_GT(other.first, 0.7 * one.first) << what;
    EXPECT_LT(other.second, 2.5 * one.second) << what << ", where sums are merged, too";
  };
  const std::string_view norm = "%y = MeanVarianceNormalization %x {axes = [1]}";
  for (const std::string_view op : {std::string_view("%y = Abs %x"), {"%y = Softmax %x {axis = -1}"}, norm})
    for (const auto& [rows, columns] : {std::pair(8, 1024), {7, 1024}, {400, 1024}, {2, 500'000}})
      expect_alike(per_element("4,1024", 4096, op), per_element(str(rows, ",", columns), rows * columns, op), op);
  const std::string_view groups = R"(%s = Constant {value = dense<f32[8]: 1, 2, 3, 4, 5, 6, 7, 8>}
%y = GroupNormalization %x, %s, %s {num_groups = 1, epsilon = 1e-5})";
  expect_alike(per_element("4,1024", 4096, norm), per_element("2,8,1024", 16384, groups), "a stretch");
}

// A table replaces the function and the operators before it. Calls that join short rows do not run the tail of each.
TEST_P(FormsCycles, CyclesOfACallAreThoseOfTheFinishedKernel) {
  Compiler compiler(target(), **jitter_table());
  const auto cycles = [&](std::string_view type, std::string_view operators) {
    const auto made = *compiler.compile(body_of(type, operators));
    double elements = 1;
    for (const snippet::BodyDim& dim : made->body.dims)
      elements *= dim.extent.is_constant() ? static_cast<double>(dim.extent.constant()) : 0;
    return std::pair(compiler.cycles_of_call(*made), made->cycles_per_element * elements);
  };
  const auto [kernel, graph] = cycles("f32[8,512]", R"(%h = Constant {value = dense<f32[]: 0.70710678>}
%o = Constant {value = dense<f32[]: 1>}
%a = Mul %x, %h
%b = Erf %a
%c = Add %b, %o
%y = Mul %x, %c)");
  EXPECT_LT(kernel, 0.8 * graph);
  const auto [open, none] = cycles("f32[N,512]", "%y = Abs %x");
  EXPECT_EQ(open, 0);
  const auto [joined, same] = cycles("f32[4096,3]", R"(%w = Constant {value = dense<f32[3]: 1, 2, 3>}
%y = Mul %x, %w)");
  EXPECT_EQ(joined, same);
}

INSTANTIATE_TEST_SUITE_P(Both, FormsCycles, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86
