#include <tenon/ir/serialize.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <support_lib/random_graph.hpp>
#include <support_lib/spoilt.hpp>
#include <support_lib/test_ops.hpp>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/support/memory.hpp>

namespace tenon {
namespace {

// From memory with the alignment of a mapped file.
Result<std::unique_ptr<Graph>> loaded(const std::string& bytes) {
  const std::shared_ptr<std::byte[]> owner = *allocate_aligned(bytes.size());
  std::memcpy(owner.get(), bytes.data(), bytes.size());
  return deserialize({owner.get(), bytes.size()}, owner);
}

std::unique_ptr<Graph> with_blocks() {
  auto graph = std::make_unique<Graph>("blocks");
  Builder b(graph->body());
  Value* x = graph->body().add_input("x", Type(kF32, {1, 64}));
  Value* w = b.constant(*Tensor::zeros(kF32, {64, 64}));
  Value* flags = b.constant(*Tensor::zeros(kBool, {300}));
  graph->body().add_output(*b.op("test.Add", {x, w}), "y");
  graph->body().add_output(flags, "flags");
  return graph;
}

TEST(Serialize, SpoiltGraphsAreReadOrRefused) {
  testing::register_test_ops();
  testing::Spoilt graphs;
  for (uint64_t seed = 1; seed <= 20; ++seed)
    graphs.good.push_back(serialize(*testing::random_graph(
        {.seed = seed, .ops = 8, .use = {"test.Neg", "test.Add", "test.Split"}, .branch = "test.If"})));
  for (int i = 0; i < 20; ++i) graphs.good.push_back(serialize(*with_blocks()));
  for (const char* piece : {"block = ", "block = 1", "str[", "bool[", "i4[", "f32[", "{", "}", "%"})
    graphs.pieces.push_back(piece);
  testing::read_spoilt(graphs, 3000, [](const std::string& bytes) {
    const auto graph = loaded(bytes);
    if (!graph.ok()) return false;
    (void)verify(**graph, {.allow_unknown_ops = true, .require_types = false});
    const std::string again = serialize(**graph);
    const auto back = loaded(again);
    EXPECT_TRUE(back.ok()) << back.error().to_string();
    if (back.ok()) {
      EXPECT_EQ(serialize(**back), again);
    }
    return true;
  });
}

// Bytes of a file must not be taken for strings, whose pointers would come from the file.
TEST(Serialize, BlocksHoldNoStrings) {
  std::string bytes = serialize(*with_blocks());
  ASSERT_TRUE(loaded(bytes).ok());
  const std::string from = "f32[64,64]", to = "str[16,32]";
  for (size_t at = bytes.find(from); at != std::string::npos; at = bytes.find(from)) bytes.replace(at, from.size(), to);
  const auto graph = loaded(bytes);
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.error().to_string().find("strings"), std::string::npos) << graph.error().to_string();
}

}  // namespace
}  // namespace tenon
