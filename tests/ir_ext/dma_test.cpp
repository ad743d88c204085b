// Transfers: what they may look like, and that they change nothing.
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
      "  %d, %u = dma.store %c, %t {from = \"acc\", to = \"dram\"}\n"
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

}  // namespace
}  // namespace tenon::dma
