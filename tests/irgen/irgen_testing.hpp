// Graphs in text form, run by the interpreter and as programs.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include <support_lib/random_tensor.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/irgen/graph_runner.hpp>
#include <tenon/irgen/reference_kernels.hpp>
#include <tenon/program/exec/interpreter.hpp>
#include <tenon/program/ir/text.hpp>
#include <tenon/program/ir/verify.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon::irgen::testing {

inline std::unique_ptr<Graph> parsed(std::string_view text) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  if (!graph.ok()) return std::make_unique<Graph>("broken");
  const auto checked = verify(**graph);
  EXPECT_TRUE(checked.ok()) << checked.error().to_string();
  return *std::move(graph);
}

inline GraphProgram lowered(const Graph& graph, const LowerOptions& options = {}) {
  auto made = from_graph(graph, reference_kernels(), options);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  if (!made.ok()) return {};
  const auto checked = program::verify(made->program);
  EXPECT_TRUE(checked.ok()) << checked.error().to_string() << program::print(made->program);
  return *std::move(made);
}

inline void expect_identical(const std::vector<Datum>& wanted, const std::vector<Datum>& got,
                             const std::string& about) {
  ASSERT_EQ(wanted.size(), got.size()) << about;
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(wanted[i].is_tensor(), got[i].is_tensor()) << about;
    if (!wanted[i].is_tensor()) continue;
    const Tensor &a = wanted[i].tensor(), &b = got[i].tensor();
    ASSERT_TRUE(a.identical(b)) << about << "\noutput " << i << ": " << a.to_string() << " and " << b.to_string();
  }
}

// Runs the program with the interpreter of programs; `contract`: checks each kernel's accesses.
inline Result<std::vector<Datum>> interpreted(const GraphProgram& program, const std::vector<Datum>& inputs,
                                              bool contract = false, program::RunStatistics* statistics = nullptr) {
  std::vector<Dims> dims;
  for (const Datum& input : inputs) dims.push_back(input.tensor().dims());
  TENON_TRY(scalars, scalars_of(program, dims));
  TENON_TRY(arguments, arguments_of(program, scalars));
  const auto give = [&](program::BufferId id, const Tensor& tensor) {
    arguments.buffers.find(program.program.buffer(id).name)->second.data = const_cast<std::byte*>(tensor.data());
  };
  for (size_t i = 0; i < inputs.size(); ++i) give(program.inputs[i], inputs[i].tensor());
  std::vector<Datum> outputs;
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    TENON_TRY(extents, dims_of_output(program, i, scalars));
    TENON_TRY(made, Tensor::allocate(program.output_types[i].element(), extents));
    give(program.outputs[i], made);
    outputs.emplace_back(std::move(made));
  }
  TENON_OK(program::interpret(program.program, arguments, {.contract = contract}, statistics));
  return outputs;
}

}  // namespace tenon::irgen::testing
