// The self-check: code with a seeded fault is detected at its first wrong element, and code without one passes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <support_lib/random_tensor.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/irgen/graph_runner.hpp>
#include <tenon/irgen/snippet_kernels.hpp>
#include <tenon/snippet/tokenize/tokenize.hpp>

#include "x86/backend.hpp"
#include "x86/compiler.hpp"
#include "x86/kernel_support.hpp"
#include "x86/structure/internal.hpp"

namespace tenon::x86 {
namespace {

using ::testing::HasSubstr;

// ---- Emitters that compute something else ----

Result<void> emit_difference(X86Context& c, const Emission& e) {
  c.gen().vsubps(c.vector(e.out[0], e.lanes), c.vector(e.in[0], e.lanes), c.vector(e.in[1], e.lanes));
  return {};
}
Result<void> emit_least(X86Context& c, const Emission& e) {
  c.gen().vpminsd(c.vector(e.out[0], e.lanes), c.vector(e.in[0], e.lanes), c.vector(e.in[1], e.lanes));
  return {};
}
// Accurate to 12 bits.
Result<void> emit_rough_root(X86Context& c, const Emission& e) {
  const auto x = c.vector(e.in[0], e.lanes), y = c.vector(e.out[0], e.lanes);
  if (c.avx512()) {
    c.gen().vrsqrt14ps(y, x);
    c.gen().vrcp14ps(y, y);
  } else {
    c.gen().vrsqrtps(y, x);
    c.gen().vrcpps(y, y);
  }
  return {};
}

const codegen::JitterTable& table_with(JitterRow fault) {
  // Tables must outlive all code of the process, and must remain reachable for LeakSanitizer.
  static auto* const all = new std::vector<codegen::JitterTable*>;
  auto* table = all->emplace_back(new codegen::JitterTable(std::string(kContextKind)));
  EXPECT_TRUE(table->add(std::move(fault)).ok());
  EXPECT_TRUE(add_structure_rows(*table).ok());
  EXPECT_TRUE(add_elementwise_rows(*table).ok());
  return *table;
}

class SelfCheck : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }

  // The error of the run; empty if there is none.
  static std::string run(std::string_view text, const codegen::JitterTable& table, bool check) {
    auto graph = parse_graph(text);
    EXPECT_TRUE(graph.ok()) << graph.error().to_string();
    auto compiler = std::make_shared<Compiler>(testing::target_of(GetParam()), table);
    EXPECT_TRUE(snippet::tokenize_snippets(**graph).ok());
    const irgen::SnippetKernels kernels("x86", compiler, {.self_check = check});
    const auto runner = irgen::GraphRunner::prepare(**graph, kernels);
    EXPECT_TRUE(runner.ok()) << runner.error().to_string();
    EXPECT_TRUE((*runner)->report().host_ops.empty());
    std::mt19937 random(3);
    std::vector<Datum> inputs;
    for (size_t i = 0; i < (*graph)->body().input_count(); ++i) {
      const Type& type = (*graph)->body().input(i)->type();
      Tensor tensor = tenon::testing::random_tensor(random, type.element(), {3, 37}, 2, 90);
      for (int64_t k = 0; type.element() == kF32 && k < tensor.size(); ++k)
        tensor.set_double(k, std::abs(tensor.double_at(k)) + 1);
      inputs.emplace_back(std::move(tensor));
    }
    const auto made = (*runner)->run(inputs);
    return made.ok() ? "" : made.error().to_string();
  }
};

// A process caches code by what a kernel computes, independently of the table, so each text needs a different kernel.
int next_constant() {
  static int count = 1;
  return ++count;
}
std::string floats() {
  return str(R"(graph @g(%x: f32[N,37], %b: f32[N,37]) -> (%y, %z) {
  %c = Constant {value = dense<f32[]: )",
             next_constant(), R"(>}
  %s = Add %x, %b "sum"
  %r = Sqrt %s "root"
  %y = Neg %r "negative"
  %z = Mul %b, %c "product"
})");
}
std::string integers() {
  return str(R"(graph @g(%x: i32[N,37], %b: i32[N,37]) -> %y {
  %c = Constant {value = dense<i32[]: )",
             next_constant(), R"(>}
  %s = Add %b, %c "sum"
  %y = Max %x, %s "greater"
})");
}

TEST_P(SelfCheck, NamesKernelOutputIndexValuesAndOperator) {
  const std::string fault =
      run(floats(), table_with({.op = "Add", .types = {kF32}, .make = make_function<emit_difference>}), true);
  for (const char* part :
       {"self-check of kernel", "output 0 at [", "the reference gives -", " is allowed", "it comes from Neg negative"})
    EXPECT_THAT(fault, HasSubstr(part));
}

TEST_P(SelfCheck, NoticesAWrongInteger) {
  const std::string fault =
      run(integers(), table_with({.op = "Max", .types = {kI32}, .make = make_function<emit_least>}), true);
  EXPECT_THAT(fault, HasSubstr("it comes from Max greater"));
}

// A function accurate to three digits, which a usual tolerance would accept.
TEST_P(SelfCheck, NoticesARoughFunction) {
  const JitterRow rough{.op = "Sqrt", .types = {kF32}, .early_result = true, .make = make_function<emit_rough_root>};
  EXPECT_THAT(run(floats(), table_with(JitterRow{rough}), true), HasSubstr("output 0"));
  JitterRow honest{rough};
  honest.max_ulp = 0x1p13;  // with its true accuracy stated, it is accepted
  EXPECT_EQ(run(floats(), table_with(std::move(honest)), true), "");
}

TEST_P(SelfCheck, PassesWhatIsRightAndIsOffUnlessAskedFor) {
  EXPECT_EQ(run(floats(), testing::full_table(), true), "");
  EXPECT_EQ(run(integers(), testing::full_table(), true), "");
  EXPECT_EQ(run(floats(), table_with({.op = "Add", .types = {kF32}, .make = make_function<emit_difference>}), false),
            "");
}

// Rows of 37 elements are parts of rows of 74. The sum uses the wrong row of the table only in the last lanes, because
// elsewhere it has a memory operand, for which there is another row.
TEST_P(SelfCheck, LooksAtPartsWhereTheyLie) {
  const auto joined = [] {
    return str("graph @g(%x: f32[N,37], %b: f32[N,37]) -> %y {\n %c = Constant {value = dense<f32[]: ", next_constant(),
               ">}\n %s = Add %x, %b\n %t = Mul %s, %c\n %y = Concat %s, %t {axis = 1} }");
  };
  EXPECT_EQ(run(joined(), testing::full_table(), true), "");
  const JitterRow wrong{.op = "Add", .types = {kF32}, .make = make_function<emit_difference>};
  EXPECT_THAT(run(joined(), table_with(JitterRow{wrong}), true), HasSubstr("output 0 at [0, 32]"));
}

TEST_P(SelfCheck, IsAnOptionOfTheTarget) {
  TargetDescription target = testing::target_of(GetParam());
  target.options.add("self_check", Setting::word("true"));
  EXPECT_TRUE(create_backend(target).ok());
  TargetDescription wrong = testing::target_of(GetParam());
  wrong.options.add("self_check", Setting::word("often"));
  const auto refused = create_backend(wrong);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().to_string(), HasSubstr("self_check"));
}

INSTANTIATE_TEST_SUITE_P(Both, SelfCheck, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86
