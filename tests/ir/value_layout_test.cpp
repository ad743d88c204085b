#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/serialize.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/value_layout.hpp>
#include <tenon/ir/verify.hpp>

namespace tenon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::string_view kTwo = R"(graph @two(%x: f32[1,17,8,8]) -> %y {
  %conv1_out = Relu %x : f32[1,17,8,8]
  %y = Sigmoid %conv1_out : f32[1,17,8,8]
}
)";

std::unique_ptr<Graph> parsed(std::string_view text) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().to_string()) << "\nin\n" << text;
  return graph.ok() ? *std::move(graph) : nullptr;
}
std::string parse_error(std::string_view text) {
  auto graph = parse_graph(text);
  return graph.ok() ? "parsed: " + print(**graph) : graph.error().to_string();
}
template <class T>
std::string error_of(const Result<T>& result) {
  return result.ok() ? "no error" : result.error().to_string();
}
// One input of type `type`, including what follows the type.
std::string input_text(std::string_view behind_type) {
  return str("graph @g(%x: ", behind_type, ") -> %x {}\n");
}
const ValueLayout* layout_of(Graph& graph, size_t op) { return graph.body().ops()[op]->result()->layout(); }

TEST(DefaultLayoutDims, FollowRankAndLetters) {
  const auto dims = [](std::string_view text, size_t rank) {
    auto found = default_layout_dims(text, rank);
    return found.ok() ? *found : "error";
  };
  EXPECT_EQ(dims("NHWC<6c:8>", 4), "NCHW");
  EXPECT_EQ(dims("[4h]NCHW", 4), "NCHW");
  EXPECT_EQ(dims("OIHW{4i16o4i}", 4), "OIHW");
  EXPECT_EQ(dims("KCRS{16k~64c~};size=128B", 4), "KCRS");
  EXPECT_EQ(dims("NDHWC", 5), "NCDHW");
  EXPECT_EQ(dims("RC{4r128c2r}", 2), "RC");
  EXPECT_EQ(dims("CN", 2), "NC");
  EXPECT_EQ(dims("X{4x}", 1), "X");
  EXPECT_EQ(dims("", 0), "");
  EXPECT_EQ(dims("NPC;fuse(P)=HW", 4), "NCHW");
  EXPECT_EQ(dims("(b, m, k) -> (k, b, m)", 3), "BMK");
  EXPECT_EQ(dims("NHW", 4), "NCHW");  // the layout itself says what is missing
  EXPECT_EQ(dims("KN", 2), "error");  // [K, N] or [N, K]
  EXPECT_EQ(dims("XYZW", 4), "error");
  EXPECT_EQ(dims("ABCDEFG", 7), "error");
  EXPECT_THAT(error_of(default_layout_dims("NK{16n4k}", 2)), AllOf(HasSubstr("NK{16n4k}"), HasSubstr("name the dims")));
}

TEST(SetLayout, ByNameFromTextEnumMapAndLambda) {
  auto graph = parsed(kTwo);
  ASSERT_TRUE(set_layout(*graph, "conv1_out", "NCHW{16c}").ok());
  ASSERT_TRUE(layout_of(*graph, 0));
  EXPECT_EQ(*layout_of(*graph, 0), (ValueLayout{"NCHW{16c}", "NCHW", PadState::dirty, 0, true}));
  EXPECT_FALSE(layout_of(*graph, 1));

  ASSERT_TRUE(set_layout(*graph, "conv1_out", LayoutName::NHWC).ok());
  EXPECT_EQ(layout_of(*graph, 0)->text, "NHWC");
  const auto nhwc = resolve_layout(*graph->body().first()->result());
  ASSERT_TRUE(nhwc.ok());

  ASSERT_TRUE(set_layout(*graph, "x", "(n, c, h, w) -> (n, h, w, c)").ok());
  const auto map = resolve_layout(*graph->body().input(0));
  ASSERT_TRUE(map.ok());
  EXPECT_TRUE(map->same_function(*nhwc));

  const auto made = set_layout(*graph, "y", [](Expr n, Expr c, Expr h, Expr w) {
    LayoutMap to;
    to.address = {n, h, w, c};
    return to;
  });
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  const auto lambda = resolve_layout(*graph->body().output(0));
  ASSERT_TRUE(lambda.ok());
  EXPECT_TRUE(lambda->same_function(*nhwc));
}

TEST(SetLayout, EveryNameInCommonUseFitsItsRank) {
  for (int i = 0; i <= static_cast<int>(LayoutName::DHWIO); ++i) {
    const std::string_view text = layout_name_text(static_cast<LayoutName>(i));
    const auto rank =
        static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; }));
    const auto dims = default_layout_dims(text, rank);
    ASSERT_TRUE(dims.ok()) << text;
    EXPECT_TRUE(Layout::parse(text, *dims, Dims(rank, 3), 32).ok()) << text;
  }
  EXPECT_EQ(layout_name_text(LayoutName::DHWIO), "DHWIO");
  EXPECT_EQ(layout_name_text(LayoutName::NC), "NC");
}

TEST(SetLayout, InRegionsAndByTheNameOfAnOutput) {
  auto graph = parsed(R"(graph @g(%c: bool[], %x: f32[2,3]) -> sum: %s {
    %s = If %c (() -> %t { %t = Neg %x }, () -> %t { %t = Relu %x }) : f32[2,3]
  })");
  ASSERT_TRUE(set_layout(*graph, "t", "CN").ok());
  ASSERT_TRUE(set_layout(*graph, "sum", "CN").ok());
  const Op& branch = *graph->body().first();
  EXPECT_EQ(branch.region(0).first()->result()->layout()->text, "CN");
  EXPECT_EQ(branch.region(1).first()->result()->layout()->text, "CN");
  EXPECT_EQ(branch.result()->layout()->text, "CN");
}

TEST(SetLayout, RefusesWhatIsNoValueOrDoesNotFit) {
  auto graph = parsed(kTwo);
  EXPECT_THAT(error_of(set_layout(*graph, "conv1_ot", "NHWC")),
              AllOf(HasSubstr("'conv1_ot'"), HasSubstr("did you mean 'conv1_out'")));
  EXPECT_THAT(error_of(set_layout(*graph, "nothing like it at all", "NHWC")), HasSubstr("no value of the graph"));
  EXPECT_THAT(error_of(set_layout(*graph, "", "NHWC")), HasSubstr("no value of the graph"));
  EXPECT_THAT(error_of(set_layout(*graph, "x", "NHW")), AllOf(HasSubstr("E_MISSING_DIM"), HasSubstr("'x'")));
  EXPECT_THAT(error_of(set_layout(*graph, "x", "NCHW{16c!}")), HasSubstr("E_NOT_DIVISIBLE"));
  EXPECT_THAT(error_of(set_layout(*graph, "x", "NCHW", "NCH")), HasSubstr("E_RANK"));
  EXPECT_THAT(error_of(set_layout(*graph, "x", "NCHW;stride(H)=0")), HasSubstr("share"));
  EXPECT_THAT(error_of(set_layout(*graph, "x", "XYZW")), HasSubstr("name the dims"));
  EXPECT_THAT(error_of(set_layout(*graph, "x", [](Expr n, Expr c) {
                LayoutMap map;
                map.address = {c, n};
                return map;
              })),
              HasSubstr("E_RANK"));
  EXPECT_FALSE(graph->body().input(0)->layout());
  auto texts = parsed("graph @g(%s: str[2,3], %u: f32[2,N]) -> (%s, %u) {}");
  EXPECT_THAT(error_of(set_layout(*texts, "s", "CN")), HasSubstr("only tensors of numbers"));
  EXPECT_TRUE(set_layout(*texts, "u", "CN{4n}").ok());
  EXPECT_THAT(error_of(set_layout(*texts, "u", "NCH")), HasSubstr("name the dims"));
  EXPECT_THAT(error_of(set_layout(*texts, "u", "NN")), HasSubstr("E_"));
}

TEST(SetLayout, ByTheBuilder) {
  Graph graph("g");
  Value* x = graph.body().add_input("x", Type(kF32, Shape(Dims{2, 3, 4, 5})));
  Builder b(graph.body());
  const auto y = b.layout(x, "NHWC");
  ASSERT_TRUE(y.ok());
  EXPECT_EQ(*y, x);
  EXPECT_EQ(x->layout()->text, "NHWC");
  EXPECT_FALSE(b.layout(x, "NHW").ok());
}

TEST(ValueLayout, CopiesKeepItAndEqualitySeesIt) {
  auto graph = parsed(kTwo);
  ASSERT_TRUE(set_layout(*graph, "x", "NHWC").ok());
  ASSERT_TRUE(set_layout(*graph, "conv1_out", "NCHW{16c}").ok());
  const auto copy = graph->clone();
  EXPECT_TRUE(same_graph(*graph, *copy));
  EXPECT_EQ(copy->body().input(0)->layout(), graph->body().input(0)->layout());  // shared
  ASSERT_TRUE(set_layout(*copy, "conv1_out", "NCHW{8c}").ok());
  std::string difference;
  EXPECT_FALSE(same_graph(*graph, *copy, EqualOptions{}, &difference));
  EXPECT_THAT(difference, HasSubstr("other layouts"));
  copy->body().ops()[0]->result()->set_layout(nullptr);
  EXPECT_FALSE(same_graph(*graph, *copy));
}

TEST(ValueLayout, TextRoundTrips) {
  const std::string text = R"(graph @g(%x: f32[1,17,8,8] in "NHWC" pinned, %n: f32[2,N] in "CN") -> (%c, %b) {
  %a, %b = Split %x {axis = 3} : f32[1,17,8,4] in "NCHW{16c}" pad zero pinned, f32[1,17,8,4]
  %c = Relu %a : f32[1,17,8,4] in "WXYZ{4z}" dims WXYZ pad value 0x7f
  %d = Relu %n : f32[2,N] in "NK" dims NK pad none
}
)";
  const auto graph = parsed(text);
  ASSERT_TRUE(graph);
  EXPECT_EQ(print(*graph), text);
  const Op& split = *graph->body().first();
  EXPECT_EQ(*split.result(0)->layout(), (ValueLayout{"NCHW{16c}", "NCHW", PadState::zero, 0, true}));
  EXPECT_FALSE(split.result(1)->layout());
  EXPECT_EQ(*split.next()->result()->layout(), (ValueLayout{"WXYZ{4z}", "WXYZ", PadState::value, 0x7f, false}));
  EXPECT_TRUE(verify(*graph).ok()) << error_of(verify(*graph));
}

TEST(ValueLayout, LineEndsEndIt) {
  // An operator called "in", with a label.
  const auto graph = parsed("graph @g(%x: f32[2]) -> %y {\n  %y = Relu %x : f32[2]\n  in \"C\"\n}\n");
  ASSERT_TRUE(graph);
  EXPECT_FALSE(layout_of(*graph, 0));
  EXPECT_EQ(graph->body().ops()[1]->label(), "C");
  EXPECT_EQ(print(*parsed(print(*graph))), print(*graph));
}

TEST(ValueLayout, HostileTextIsRefusedWithItsPlace) {
  EXPECT_THAT(parse_error(input_text("f32[2,3] in NC")), AllOf(HasSubstr("text:1:26"), HasSubstr("expected a layout")));
  EXPECT_THAT(parse_error(input_text("f32[2,3] in \"QZ\"")), AllOf(HasSubstr("text:1:26"), HasSubstr("name the dims")));
  EXPECT_THAT(parse_error(input_text("f32[2,3] in \"NC\" pad some")), HasSubstr("none, zero, value or dirty"));
  EXPECT_THAT(parse_error(input_text("f32[2,3] in \"NC\" pad value")), HasSubstr("the bits of the padding"));
  EXPECT_THAT(parse_error(input_text("f32[2,3] in \"NC\" pad value 12")), HasSubstr("such as 0x7f"));
  EXPECT_THAT(parse_error(input_text("f32[2,3] in \"NC\" pad value 0x12345678123456781")), HasSubstr("such as 0x7f"));
  EXPECT_THAT(parse_error(input_text("f32[2,3] in \"NC\" dims")), HasSubstr("the names of the dims"));
  EXPECT_THAT(parse_error(input_text("f32[2,3] in \"NC\" pinned pinned")), HasSubstr("expected ','"));
  EXPECT_THAT(parse_error(input_text("f32[2,3] in \"NC\" map 0x1")), HasSubstr("has the map 0x"));
  EXPECT_THAT(parse_error(input_text("f32[2,3] in \"NC")), HasSubstr("string does not end"));
  EXPECT_THAT(parse_error(input_text(str("f32[2,3] in \"", std::string(1 << 15, 'N'), "\""))), HasSubstr("at most"));
}

TEST(ValueLayout, MutatedTextsNeverCrash) {
  const std::string text =
      input_text("f32[2,3,4,5] in \"[4h]NCHW<6c:256>;align(H)=32B\" dims NCHW pad value 0x7f pinned");
  const uint64_t seed = 20261122;
  std::mt19937_64 random(seed);
  for (int round = 0; round < 3000; ++round) {
    std::string hostile = text;
    for (uint64_t edits = 1 + random() % 4; edits > 0; --edits) {
      const size_t at = 11 + random() % (hostile.size() - 11);
      const char byte = " \"[]{}<>;:=()NCHWx0167\n~!@?/"[random() % 28];
      if (random() % 3 == 0) {
        hostile.erase(at, 1);
      } else {
        hostile[at] = byte;
      }
    }
    auto graph = parse_graph(hostile);
    if (!graph.ok()) continue;
    const std::string again = print(**graph);
    const auto back = parse_graph(again);
    ASSERT_TRUE(back.ok()) << "seed " << seed << "\n" << hostile << "\n" << again << error_of(back);
    EXPECT_TRUE(same_graph(**graph, **back)) << "seed " << seed << "\n" << hostile;
    (void)verify(**graph);
  }
}

TEST(ValueLayout, StoredGraphsCarryItsFingerprint) {
  auto graph = parsed(kTwo);
  ASSERT_TRUE(set_layout(*graph, "conv1_out", "NCHW{16c}").ok());
  const std::string stored = serialize(*graph);
  const auto aligned_copy = [](const std::string& bytes) {
    std::shared_ptr<void> owner(::operator new(bytes.size(), std::align_val_t(64)),
                                [](void* p) { ::operator delete(p, std::align_val_t(64)); });
    std::memcpy(owner.get(), bytes.data(), bytes.size());
    return owner;
  };
  const auto load = [&](const std::string& bytes) {
    auto owner = aligned_copy(bytes);
    return deserialize({static_cast<const std::byte*>(owner.get()), bytes.size()}, owner);
  };
  const auto back = load(stored);
  ASSERT_TRUE(back.ok()) << error_of(back);
  EXPECT_TRUE(same_graph(*graph, **back));

  // The same text with another map, as from a version that interprets the text differently.
  std::string other = stored;
  const size_t at = other.find(" map 0x");
  ASSERT_NE(at, std::string::npos);
  char& digit = other[at + 7];
  digit = digit == '1' ? '2' : '1';
  EXPECT_THAT(error_of(load(other)), AllOf(HasSubstr("NCHW{16c}"), HasSubstr("has the map")));
}

TEST(ValueLayout, DotShowsIt) {
  auto graph = parsed(kTwo);
  ASSERT_TRUE(set_layout(*graph, "conv1_out", "NCHW{16c}").ok());
  EXPECT_THAT(to_dot(*graph), HasSubstr("f32[1,17,8,8]\\nin NCHW{16c}"));
}

TEST(ValueLayout, VerifierChecksItAgainstTheType) {
  const auto verified = [](std::string_view behind_type) { return error_of(verify(*parsed(input_text(behind_type)))); };
  EXPECT_EQ(verified("f32[2,3] in \"CN\""), "no error");
  EXPECT_THAT(verified("f32[2,3] in \"N\""), HasSubstr("E_MISSING_DIM"));
  EXPECT_THAT(verified("f32[2,3] in \"NC{4c!}\""), HasSubstr("E_NOT_DIVISIBLE"));
  EXPECT_THAT(verified("f32[2,3] in \"NCHW\" dims NCHW"), HasSubstr("E_RANK"));
  EXPECT_THAT(verified("f32[2,D] in \"NCHW\" dims NCHW"), HasSubstr("2 are needed"));
  EXPECT_THAT(verified("seq(f32[2,3]) in \"NC\" dims NC"), HasSubstr("only tensors of numbers"));
  EXPECT_THAT(verified("str[2,3] in \"NC\""), HasSubstr("only tensors of numbers"));
  EXPECT_EQ(verified("f32[2,D] in \"CN{8c}\""), "no error");
  EXPECT_THAT(verified("f32[2,D] in \"CNN\""), HasSubstr("E_"));
}

TEST(ValueLayout, TheAttributeOfAKernelIsAllowedOnEveryOperator) {
  EXPECT_TRUE(
      verify(*parsed("graph @g(%x: f32[2]) -> %y { %y = Relu %x {layout.kernel = \"padded\"} : f32[2] }")).ok());
  EXPECT_FALSE(verify(*parsed("graph @g(%x: f32[2]) -> %y { %y = Relu %x {layout.kernel = 1} : f32[2] }")).ok());
  EXPECT_FALSE(
      verify(*parsed("graph @g(%x: f32[2]) -> %y { %y = Relu %x {layout.kernal = \"padded\"} : f32[2] }")).ok());
}

}  // namespace
}  // namespace tenon
