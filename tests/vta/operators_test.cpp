// The operators' verifiers: a valid tiled kernel, and the error for each single change of its text.
#include "vta/operators.hpp"

#include <gmock/gmock.h>

#include "fused_ops.hpp"

namespace tenon::vta {
namespace {

using namespace testing;
using ::testing::HasSubstr;

TargetDescription small_machine() { return sized(1, 16, 1 << 10, 8 << 10, 8 << 10, 1 << 10); }

OneOp small_convolution() {
  OneOp one;
  Value* x = one.graph->body().add_input("x", Type(kI8, {1, 16, 4, 4}));
  Value* w = one.constant(*Tensor::zeros(kI8, {32, 16, 3, 3}));
  Value* b = one.constant(*Tensor::zeros(kI32, {32}));
  one.finish("fused.QConv", {x, w, b}, {{"pads", Attribute::Integers{1, 1, 1, 1}}, {"shift", int64_t{4}}});
  return one;
}

// The text of a graph after the phases' passes up to `last`.
std::string text_after(const Graph& graph, std::string_view last) {
  auto backend = create_backend(small_machine());
  EXPECT_TRUE(backend.ok());
  PassManager passes;
  EXPECT_TRUE((*backend)->add_tensor_sel(passes).ok() && (*backend)->add_tensor_sched(passes).ok() &&
              (*backend)->add_mem_alloc(passes).ok() && (*backend)->add_code_emit(passes).ok());
  const auto copy = graph.clone();
  const auto done = passes.run(*copy, {.stop_after = std::string(last)});
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().to_string());
  return print(*copy);
}

// The error for a text with the first `from` after `mark` replaced by `to`: "" if it still passes the verifier.
std::string complaint(std::string text, std::string_view mark, std::string_view from, std::string_view to) {
  const size_t begin = text.find(mark);
  const size_t at = begin == std::string::npos ? begin : text.find(from, begin);
  if (at == std::string::npos) return str("no ", from, " behind ", mark, " in\n", text);
  text.replace(at, from.size(), to);
  const auto graph = parse_graph(text);
  if (!graph.ok()) return graph.error().to_string();
  const auto verified = verify(**graph);
  return verified.ok() ? "" : verified.error().to_string();
}

struct Mutation {
  const char *after, *mark, *from, *to, *says;
};
class Operators : public ::testing::TestWithParam<Mutation> {};

TEST_P(Operators, SayWhatIsWrong) {
  const Mutation& m = GetParam();
  const std::string text = text_after(*small_convolution().graph, m.after);
  EXPECT_EQ(complaint(text, "graph", "graph", "graph"), "") << "as it is";
  EXPECT_THAT(complaint(text, m.mark, m.from, m.to), HasSubstr(m.says));
}

INSTANTIATE_TEST_SUITE_P(
    Mutations, Operators,
    ::testing::Values(
        Mutation{"vta-select", "vta.Gemm", "pads = [1, 1, 1, 1]", "pads = [1, 1, 0, 1]",
                 "x has 3 windows along its rows"},
        Mutation{"vta-select", "vta.Gemm", "kernel = [3, 3]", "kernel = [3, 0]", "'kernel' holds 0"},
        Mutation{"vta-select", "vta.Gemm", "kernel = [3, 3]", "kernel = [3]", "'kernel' has 1 numbers, not 2"},
        Mutation{"vta-select", "vta.Gemm", "{", "{group = 2, ", "16 channels in 2 groups become 32"},
        Mutation{"vta-select", "vta.Zero", "shape = [1, 32, 4, 4]", "shape = [1, 48, 4, 4]", "declared"},
        Mutation{"vta-select", "vta.Alu", "op = \"add\"", "op = \"sub\"", "allowed are"},
        Mutation{"vta-select", "immediate", "immediate", "vector_block", "either a vector or an immediate"},
        Mutation{"vta-select", "vta.Narrow", "max = 127", "max = 128", "limits -128 and 128"},
        Mutation{"vta-select", "vta.Narrow", "max = 127, ", "", "one of 'min' and 'max'"},
        Mutation{"vta-select", "vta.Narrow", "shift = 4", "shift = 32", "shift 32"},
        Mutation{"vta-pack", "vta.Gemm", "form = \"dense\"", "form = \"diagonal\"", "a diagonal one has one element"},
        Mutation{"vta-pack", "vta.Gemm", "form = \"dense\"", "form = \"uniform\"", "a uniform one is one element"},
        Mutation{"vta-double-buffer", "vta.Kernel", "slots = 2", "slots = 0", "'slots' is 0"},
        Mutation{"vta-tile", "vta.Kernel", "slots = 2, ", "", "tiles without a number of slots"},
        Mutation{"vta-tile", "vta.Kernel", "tile = [", "tile = [1, ", "'tile' has 4 numbers, not 3"},
        Mutation{"vta-insert-dma", "vta.Gemm", "blocks = 1", "blocks = 2", "2 of 1 input blocks"},
        Mutation{"vta-insert-dma", "dma.store", "begin = [0, ", "begin = [1, ", "along dim 0 its part is [1, 2)"},
        Mutation{"vta-scratchpads", "vta.Zero", "uops = [", "uops = [7, 7, ", "'uops' holds the range [7, 7)"},
        Mutation{"vta-scratchpads", "vta.Zero", "at = ", "at = -", "'at' is negative"},
        Mutation{"vta-dram", "vta.Kernel", "dram = [0", "dram = [64", "left it at 0"},
        Mutation{"vta-encode", "vta.Stream", "dram = [0", "dram = [0, 0", "'dram' has"}));

// An accumulator can be read only from the slot where it was written last.
TEST(Kernels, ReadWhatTheirSlotsHold) {
  const auto graph = parse_graph(text_after(*small_convolution().graph, "vta-insert-dma"));
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  ASSERT_TRUE(verify(**graph).ok()) << verify(**graph).error().to_string();
  int changed = 0;
  for_each_op((*graph)->body(), [&](Op& op) {
    if (!op.is(NarrowOp::name()) || changed++ > 0) return;
    op.set_operand(0, op.operand(0)->producer()->operand(0));
  });
  ASSERT_GT(changed, 0);
  EXPECT_THAT(verify(**graph).error().to_string(), HasSubstr("slot 0 of acc holds no longer"));
}

TEST(View, KeepsBlocksTogether) {
  ASSERT_TRUE(register_operators().ok());
  const auto view = [](std::string_view shape) {
    const auto graph = parse_graph(str("graph(%x: i8[2,40,1,1]) -> %y { %y = vta.View %x {shape = ", shape, "} }"));
    return !graph.ok() ? graph.error().to_string() : verify(**graph).ok() ? "" : verify(**graph).error().to_string();
  };
  EXPECT_EQ(view("[2, 40]"), "");
  EXPECT_EQ(view("[2, 40, 1]"), "");
  EXPECT_THAT(view("[2, 20, 2, 1]"), HasSubstr("values move between blocks"));
  EXPECT_THAT(view("[80]"), HasSubstr("values move between blocks"));
}

// A kernel states the selected layer, through a round trip of graph and text.
TEST(Kernels, SayTheLayerThatTheyWereMadeOf) {
  std::mt19937 r(21);
  for (int i = 0; i < 40; ++i) {
    const OneOp one = i % 2 ? random_convolution(r) : random_addition(r);
    const Hardware hardware = default_hardware();
    const auto made = device_op(one.op(), hardware);
    ASSERT_TRUE(made.ok()) << one.what;
    const auto graph = parse_graph(text_after(*one.graph, "vta-pack"));
    ASSERT_TRUE(graph.ok()) << graph.error().to_string();
    for (Op& op : (*graph)->body()) {
      const auto kernel = dyn_cast<Kernel>(op);
      if (!kernel) continue;
      auto layer = layer_of(kernel, hardware);
      ASSERT_TRUE(layer.ok()) << layer.error().to_string();
      Layer expected = std::get<Layer>(made->work), read = std::get<Layer>(*layer);
      for (size_t t = 0; t < read.terms.size(); ++t) expected.terms[t].weights = read.terms[t].weights;
      expected.bias_operand = read.bias_operand;
      EXPECT_TRUE(read == expected) << one.what;
    }
  }
}

}  // namespace
}  // namespace tenon::vta
