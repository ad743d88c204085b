// The form of snippets for GPUs, on a CPU: work groups whose items share the lanes.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>

#include <snippet/bodies.hpp>

#include "graph_support.hpp"
#include "opencl/group_form.hpp"

namespace tenon::opencl::testing {
namespace {

using snippet::test::BodyBuilder;
using ::testing::HasSubstr;
using ::testing::Not;

snippet::Body sum_of_rows(int64_t extent) {
  BodyBuilder build("sum", "kr");
  build.output(build.reduce("ReduceSum", build.input(3)));
  snippet::Body body = build.take();
  body.dims.back().extent = Expr(extent);
  return body;
}
snippet::Body copy_of_rows(int64_t extent) {
  BodyBuilder build("copy", "kk");
  build.output(build.op("Neg", {build.input(3)}));
  snippet::Body body = build.take();
  body.dims.back().extent = Expr(extent);
  return body;
}

TEST(OpenclGroupForm, ShortRowsLeaveItemsToOtherChunks) {
  EXPECT_EQ(items_of_chunk(copy_of_rows(1000), 4, 64), 64);
  EXPECT_EQ(items_of_chunk(copy_of_rows(7), 4, 64), 2);
  EXPECT_EQ(items_of_chunk(copy_of_rows(3), 4, 64), 1);
  EXPECT_EQ(items_of_chunk(copy_of_rows(1000), 4, 48), 32) << "a power of two";
  EXPECT_EQ(items_of_chunk(copy_of_rows(1000), 16, 1), 1) << "a CPU";
  EXPECT_EQ(items_of_chunk(sum_of_rows(7), 4, 64), 32) << "lanes are folded by a whole work group";
  EXPECT_EQ(items_of_chunk(BodyBuilder("scalar", "").take(), 4, 64), 1);
}

// The code that clang generates from a source for GPUs without vector accesses at element alignment; empty if clang is
// not installed.
std::string ptx_of(const std::string& source) {
  const std::filesystem::path file =
      std::filesystem::path(::testing::TempDir()) / str("tenon_group_form_", getpid(), ".cl");
  std::ofstream(file, std::ios::binary) << source;
  const std::string command =
      str("clang -x cl -cl-std=CL1.2 -w -O2 -Xclang -finclude-default-header -target nvptx64-unknown-unknown -S -o - ",
          file.string(), " 2>/dev/null");
  std::string text;
  if (FILE* pipe = popen(command.c_str(), "r")) {
    char part[4096];
    for (size_t bytes; (bytes = fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, bytes);
    pclose(pipe);
  }
  std::filesystem::remove(file);
  return text;
}

class OpenclGroups : public OpenclTest {
 protected:
  Compiler compiler(int64_t group) const {
    return {target, *table, {.lanes = 4, .work_group = group, .sub_groups = false}};
  }

  void right(const char* text, std::vector<Dims> shapes, int64_t group) {
    SCOPED_TRACE(str(text, " in groups of ", group));
    TargetDescription groups = cpu_target();
    groups.options.add("work_group", Setting::word(str(group)));
    auto backend = create_backend(groups);
    ASSERT_TRUE(backend.ok()) << backend.error().to_string();
    auto graph = *parse_graph(text);
    std::vector<Datum> inputs;
    uint32_t seed = 7;
    for (size_t i = 0; i < shapes.size(); ++i) {
      Tensor x = *Tensor::allocate(graph->body().input(i)->type().element(), shapes[i]);
      // Integers, so that sums are exact in any order.
      for (float& value : x.mutable_as<float>()) value = static_cast<float>((seed = seed * 1664525 + 1013904223) >> 29);
      inputs.emplace_back(std::move(x));
    }
    expect_reference(*stream, **backend, *graph, inputs, {.rtol = 1e-5, .atol = 1e-6});
  }
};

TEST_F(OpenclGroups, NeighboursTouchNeighbouringElements) {
  const auto one = compiler(64).compile(copy_of_rows(4000));
  ASSERT_TRUE(one.ok()) << one.error().to_string();
  EXPECT_EQ((*one)->form.items, 64);
  EXPECT_EQ((*one)->form.group, 64);
  EXPECT_EQ((*one)->kernel.lanes, 256);
  EXPECT_THAT((*one)->source, HasSubstr("reqd_work_group_size(64, 1, 1)"));
  EXPECT_THAT((*one)->source, HasSubstr("const long lane = item * 4;"));
  EXPECT_THAT((*one)->source, HasSubstr(" + lane * 4"));
  EXPECT_THAT((*one)->source, Not(HasSubstr("barrier")));
  const auto cpu = compiler(1).compile(copy_of_rows(4000));
  EXPECT_THAT((*cpu)->source, Not(HasSubstr("lane *")));
}

TEST_F(OpenclGroups, VectorsAreLoadedAndStoredWhole) {
  const auto one = compiler(64).compile(copy_of_rows(4000));
  ASSERT_TRUE(one.ok()) << one.error().to_string();
  EXPECT_THAT((*one)->source, HasSubstr("TENON_WHOLE(element##lanes, from)"));
  const auto cpu = compiler(1).compile(copy_of_rows(4000));
  EXPECT_THAT((*cpu)->source, Not(HasSubstr("TENON_WHOLE")));
  const std::string ptx = ptx_of((*one)->source);
  if (ptx.empty()) GTEST_SKIP() << "no clang on this machine has a GPU as a target (Debian: clang)";
  const auto has = [&](const char* pattern) { return std::regex_search(ptx, std::regex(pattern)); };
  EXPECT_TRUE(has("ld\\.global[.a-z]*\\.v4\\.")) << ptx;
  EXPECT_TRUE(has("st\\.global[.a-z]*\\.v4\\.")) << ptx;
  EXPECT_FALSE(has("(ld|st)\\.global[.a-z]*\\.[usb]8")) << "an element of four bytes is moved byte by byte:\n" << ptx;
}

TEST_F(OpenclGroups, FoldInLocalMemory) {
  const auto sum = compiler(64).compile(sum_of_rows(4000));
  ASSERT_TRUE(sum.ok()) << sum.error().to_string();
  EXPECT_TRUE(exchange_of((*sum)->kernel).folds);
  EXPECT_THAT((*sum)->source, HasSubstr("__local float shared_float[64];"));
  const auto short_rows = compiler(256).compile(sum_of_rows(100));
  EXPECT_EQ((*short_rows)->form.items, 32);
  EXPECT_EQ((*short_rows)->form.group, 32) << "items that wait for one another are a work group";
}

// Each item reads only those elements again that it has written itself.
TEST_F(OpenclGroups, ItemsWaitForWhatOthersWriteOnly) {
  BodyBuilder build("softmax", "kr");
  const int x = build.input(3), all = build.op("Exp", {x});
  build.output(build.op("Div", {all, build.reduce("ReduceSum", all)}));
  snippet::Body body = build.take();
  body.dims.back().extent = Expr(4000);
  const auto softmax = compiler(64).compile(body);
  ASSERT_TRUE(softmax.ok()) << softmax.error().to_string();
  EXPECT_TRUE(exchange_of((*softmax)->kernel).folds);
  EXPECT_FALSE(exchange_of((*softmax)->kernel).memory);
  EXPECT_THAT((*softmax)->source, Not(HasSubstr("CLK_GLOBAL_MEM_FENCE")));
  // With shifted loads, items read elements that other items have written.
  snippet::LinearKernel kernel = (*softmax)->kernel;
  for (snippet::Instruction& instruction : kernel.body)
    if (instruction.op == Name("Load")) instruction.memory->displacement_bytes += 4;
  EXPECT_TRUE(exchange_of(kernel).memory);
}

TEST_F(OpenclGroups, ElementwiseOperatorsAreRightWithTailsAndBroadcasts) {
  constexpr const char* kText = R"(graph @g(%a: f32[N,C,W], %b: f32[C,1], %c: f32[N,1,W]) -> (%y) {
    %s = Add %a, %b
    %m = Mul %s, %c
    %y = Relu %m
  })";
  for (const int64_t width : {1, 3, 64, 127, 300}) right(kText, {{2, 5, width}, {5, 1}, {2, 1, width}}, 32);
  right(kText, {{2, 5, 0}, {5, 1}, {2, 1, 0}}, 32);
  right("graph @g(%a: f32[37,5], %b: f32[5]) -> (%y) { %y = Sub %a, %b }", {{37, 5}, {5}}, 64);
}

TEST_F(OpenclGroups, CopiesOfBoxesAreRight) {
  constexpr const char* kText = R"(graph @g(%a: f32[A,B,C]) -> (%t, %c) {
    %t = Transpose %a {perm = [2, 0, 1]}
    %c = Concat %a, %a {axis = 1}
  })";
  right(kText, {{4, 6, 5}}, 32);
  right(kText, {{3, 130, 7}}, 32);
}

TEST_F(OpenclGroups, RowsAndColumnsAreRight) {
  constexpr const char* kText = R"(graph @g(%a: f32[R,W]) -> (%rows, %columns, %all) {
    %0 = Constant {value = dense<i64[1]: 0>} : i64[1]
    %1 = Constant {value = dense<i64[1]: 1>} : i64[1]
    %rows = ReduceSum %a, %1 {keepdims = 0}
    %columns = ReduceMax %a, %0 {keepdims = 0}
    %all = ReduceSum %a {keepdims = 0}
  })";
  for (const int64_t width : {1, 31, 129, 1000}) right(kText, {{9, width}}, 64);
}

TEST_F(OpenclGroups, SoftmaxAndNormalisationAreRight) {
  for (const int64_t width : {1, 7, 130, 1025}) {
    right("graph @g(%a: f32[R,W]) -> (%y) { %y = Softmax %a {axis = -1} }", {{6, width}}, 64);
    right("graph @g(%a: f32[R,W], %s: f32[W]) -> (%y) { %y = LayerNormalization %a, %s {axis = -1} }",
          {{6, width}, {width}}, 64);
  }
  right("graph @g(%a: f32[R,W]) -> (%y) { %y = Softmax %a {axis = 0} }", {{70, 33}}, 64);
}

}  // namespace
}  // namespace tenon::opencl::testing
