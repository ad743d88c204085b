// Every architecture of the zoo in its small form: programs give the bits of the interpreter, in no more memory.
#include <gmock/gmock.h>

#include <tenon/irgen/strips.hpp>
#include <tenon/passes/standard.hpp>
#include <tenon/program/exec/bound_program.hpp>
#include <tenon/runtime/thread_pool.hpp>

#include "irgen/irgen_testing.hpp"
#include "zoo/zoo.hpp"

namespace tenon::irgen {
namespace {

using namespace irgen::testing;

constexpr int64_t kAlignment = 64;  // of buffers in an arena

class ZooPrograms : public ::testing::TestWithParam<std::string> {};

TEST_P(ZooPrograms, GiveTheInterpretersBits) {
  const auto graph = zoo::build(GetParam(), {.size = zoo::Size::tiny});
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const auto passes = standard_passes();
  ASSERT_TRUE(passes.ok() && passes->run(**graph, {}).ok());
  const auto inputs = zoo::inputs(**graph, 3);
  ASSERT_TRUE(inputs.ok()) << inputs.error().to_string();
  const auto oracle = Interpreter::prepare(**graph);
  const auto runner = GraphRunner::prepare(**graph, reference_kernels());
  ASSERT_TRUE(oracle.ok() && runner.ok()) << (runner.ok() ? oracle.error() : runner.error()).to_string();
  const auto wanted = (*oracle)->run(*inputs, default_pool()),
             got = (*runner)->run(*inputs, {.parallel = default_pool()});
  ASSERT_TRUE(wanted.ok() && got.ok()) << (got.ok() ? wanted.error() : got.error()).to_string();
  expect_identical(*wanted, *got, GetParam());

  std::string on_host;
  for (const HostOp& op : (*runner)->report().host_ops) on_host += str(op.op, " ", op.label, ": ", op.reason, "\n");
  for (const GraphProgram* program : (*runner)->programs()) {
    const auto checked = program::verify(program->program);
    EXPECT_TRUE(checked.ok()) << checked.error().to_string();
  }
  EXPECT_LE(static_cast<double>((*runner)->arena_bytes()),
            1.05 * static_cast<double>((*runner)->arena_lower_bound_bytes()));
  std::printf("%-20s %5zu operators in %zu programs, %zu on the host; arena %zu, the interpreter's %zu\n%s",
              GetParam().c_str(), (*runner)->report().program_ops, (*runner)->report().programs,
              (*runner)->report().host_ops.size(), (*runner)->arena_bytes(), (*oracle)->arena_bytes(), on_host.c_str());
}

// The planned memory is that of an interpreter that frees as the program states: not a byte more, and less by at most
// the alignment of buffers.
TEST_P(ZooPrograms, TakeTheMemoryThatWasPredicted) {
  const auto graph = zoo::build(GetParam(), {.size = zoo::Size::tiny});
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const auto passes = standard_passes();
  ASSERT_TRUE(passes.ok() && passes->run(**graph, {}).ok());
  const auto inputs = zoo::inputs(**graph, 5);
  ASSERT_TRUE(inputs.ok()) << inputs.error().to_string();
  const GraphProgram program = lowered(**graph);
  const auto arguments = arguments_of(program, {});
  ASSERT_TRUE(arguments.ok()) << arguments.error().to_string();
  const auto bound = program::BoundProgram::bind(program.program, *arguments);
  ASSERT_TRUE(bound.ok()) << bound.error().to_string();
  program::RunStatistics measured;
  const auto outputs = interpreted(program, *inputs, false, &measured);
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  int64_t padding = 0;
  for (const int64_t bytes : measured.heap) padding += (kAlignment - bytes % kAlignment) % kAlignment;
  const int64_t planned = bound->arena_bytes().at("host");
  EXPECT_GE(planned, measured.heap_peak);
  EXPECT_LE(planned, measured.heap_peak + padding);
  EXPECT_EQ(planned, bound->arena_lower_bound_bytes().at("host"));
}

// With chains in strips wherever possible: the same bits.
TEST_P(ZooPrograms, GiveTheSameBitsInStrips) {
  const auto graph = zoo::build(GetParam(), {.size = zoo::Size::tiny});
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const auto passes = standard_passes();
  ASSERT_TRUE(passes.ok() && passes->run(**graph, {}).ok());
  const auto inputs = zoo::inputs(**graph, 4);
  const auto oracle = Interpreter::prepare(**graph);
  RunnerOptions options;
  StripReport strips;
  options.lower.grouping = strip_grouping({.mode = StripMode::always}, &strips);
  const auto runner = GraphRunner::prepare(**graph, reference_kernels(), options);
  ASSERT_TRUE(inputs.ok() && oracle.ok() && runner.ok()) << (runner.ok() ? "" : runner.error().to_string());
  for (const GraphProgram* program : (*runner)->programs()) {
    const auto checked = program::verify(program->program);
    EXPECT_TRUE(checked.ok()) << checked.error().to_string();
  }
  const auto wanted = (*oracle)->run(*inputs, default_pool()),
             got = (*runner)->run(*inputs, {.parallel = default_pool()});
  ASSERT_TRUE(wanted.ok() && got.ok()) << (got.ok() ? wanted.error() : got.error()).to_string();
  expect_identical(*wanted, *got, GetParam());
  std::printf("%-20s %zu chains in strips; arena %zu\n", GetParam().c_str(), strips.rows.size(),
              (*runner)->arena_bytes());
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const auto& model : zoo::models()) names.push_back(std::string(model.name));
  return names;
}
std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, ZooPrograms, ::testing::ValuesIn(names()), test_name);

}  // namespace
}  // namespace tenon::irgen
