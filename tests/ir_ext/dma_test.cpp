// Transfers: their valid forms, and that they do not change values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>
#include <tenon-ext/dma/operators.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon::dma {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

TEST(Dma, AGraphWithTransfersGivesWhatItGivesWithoutThem) {
  const auto graph = parse_graph(
      "graph @g(%x: f32[2,3]) -> %y {\n"
      "  %a, %t = dma.load %x {from = \"dram\", to = \"inp\"}\n"
      "  %b = dma.wait %a, %t\n"
      "  %c = Neg %b\n"
      "  %d, %u = dma.store %c, _, %t {from = \"acc\", to = \"dram\"}\n"
      "  %y = dma.wait %d, %u\n"
      "}\n");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  ASSERT_TRUE(verify(**graph).ok()) << verify(**graph).error().to_string();
  const auto interpreter = Interpreter::prepare(**graph);
  ASSERT_TRUE(interpreter.ok()) << interpreter.error().to_string();
  const std::vector<Datum> inputs{Tensor::of<float>({2, 3}, {1, -2, 3, -4, 5, -6})};
  const auto outputs = (*interpreter)->run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  EXPECT_TRUE((*outputs)[0].tensor().identical(Tensor::of<float>({2, 3}, {-1, 2, -3, 4, -5, 6})));
}

TEST(Dma, Types) {
  EXPECT_EQ(inferred("(%x: i8[N,3]) -> (%y, %t) { %a, %t = dma.load %x {from = \"dram\", to = \"inp\"}\n"
                     "%y = dma.wait %a, %t }"),
            "i8[N,3] bool[]");
}

TEST(Dma, ATransferThatIsNotOverIsNotRead) {
  const auto load = [](std::string_view rest, std::string_view memories = "from = \"dram\", to = \"inp\"") {
    return inferred(str("(%x: i8[4]) -> %y { %a, %t = dma.load %x {", memories, "}\n", rest, " }"));
  };
  EXPECT_EQ(load("%y = dma.wait %a, %t"), "i8[4]");
  EXPECT_THAT(load("%y = Identity %a"), HasSubstr("reads the result of dma.load"));
  EXPECT_THAT(load("%b = dma.wait %a, %t\n%y = Max %a, %b"), HasSubstr("reads the result of dma.load"));
  EXPECT_THAT(load("%c, %u = dma.load %x {from = \"dram\", to = \"wgt\"}\n%y = dma.wait %a, %u"), HasSubstr("dma."));
  EXPECT_THAT(load("%y = dma.wait %x, %t"), HasSubstr("must wait for data and token of one"));
  EXPECT_THAT(load("%y = dma.wait %a, %t", "from = \"inp\", to = \"inp\""), HasSubstr("it needs two that differ"));
  EXPECT_THAT(load("%y = dma.wait %a, %t", "from = \"inp\""), HasSubstr("error: "));
}

// ---- Parts ----

std::string part(std::string_view attributes) {
  return inferred(str("(%x: i8[2,8,6]) -> %y { %y = dma.load %x {from = \"dram\", to = \"inp\", ", attributes, "} }"));
}

TEST(Dma, ALoadTakesAPartWithZerosAround) {
  EXPECT_EQ(part("begin = [1, 2, 0], extent = [1, 4, 6]"), "i8[1,4,6]");
  EXPECT_EQ(part("begin = [0, 1, 0], extent = [2, 3, 6], steps = [1, 3, 1], pads = [0, 1, 2, 0, 0, 3]"), "i8[2,4,11]");
  EXPECT_THAT(part("begin = [0, 5, 0], extent = [2, 4, 6]"),
              HasSubstr("along dim 1 its part is [5, 9), the tensor has 8"));
  EXPECT_THAT(part("extent = [2, 4, 6], steps = [1, 3, 1]"), HasSubstr("its part is [0, 10)"));
  EXPECT_THAT(part("begin = [0, 0]"), HasSubstr("'begin' has 2 numbers, the tensor wants 3"));
  EXPECT_THAT(part("extent = [2, 0, 6]"), HasSubstr("extent 0"));
  EXPECT_THAT(part("slot = -1"), HasSubstr("slot -1, which is negative"));
}

TEST(Dma, AStoreIntoATensorFitsIt) {
  const auto store = [](std::string_view begin) {
    return inferred(str("(%x: i8[2,3]) -> %y { %a = dma.alloc {memory = \"dram\"} : i8[4,3]\n",
                        "%y = dma.store %x, %a {from = \"acc\", to = \"dram\", begin = ", begin, "} }"));
  };
  EXPECT_EQ(store("[2, 0]"), "i8[4,3]");
  EXPECT_EQ(inferred("(%x: i8[2,3]) -> %y { %y = dma.store %x {from = \"dram\", to = \"host\"} }"), "i8[2,3]");
  EXPECT_THAT(store("[3, 0]"), HasSubstr("along dim 0 its part is [3, 5), the tensor has 4"));
  EXPECT_THAT(inferred("() -> %y { %y = dma.alloc {memory = \"dram\"} }"), HasSubstr("states no type"));
}

// A copy by overlapping rows with a border, piece by piece, like the transfers of a tiled kernel.
TEST(Dma, PartsGiveWhatTheyAreCutFrom) {
  const auto graph = parse_graph(
      "graph @g(%x: i8[4,3]) -> (%y, %p) {\n"
      "  %a = dma.alloc {memory = \"dram\"} : i8[4,3]\n"
      "  %top = dma.load %x {from = \"dram\", to = \"inp\", extent = [1, 3]}\n"
      "  %rest = dma.load %x {from = \"dram\", to = \"inp\", begin = [1, 0], extent = [3, 3], slot = 1}\n"
      "  %b = dma.store %rest, %a {from = \"acc\", to = \"dram\", begin = [1, 0]}\n"
      "  %y = dma.store %top, %b {from = \"acc\", to = \"dram\"}\n"
      "  %p = dma.load %x {from = \"dram\", to = \"inp\", begin = [1, 0], extent = [2, 2], steps = [2, 1], pads = [0, "
      "1, 1, "
      "0]}\n"
      "}\n");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  ASSERT_TRUE(verify(**graph).ok()) << verify(**graph).error().to_string();
  const auto interpreter = Interpreter::prepare(**graph);
  ASSERT_TRUE(interpreter.ok()) << interpreter.error().to_string();
  const Tensor x = Tensor::of<int8_t>({4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const auto outputs = (*interpreter)->run(std::vector<Datum>{x});
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  EXPECT_TRUE((*outputs)[0].tensor().identical(x));
  EXPECT_TRUE((*outputs)[1].tensor().identical(Tensor::of<int8_t>({3, 3}, {0, 4, 5, 0, 10, 11, 0, 0, 0})));
}

}  // namespace
}  // namespace tenon::dma
