#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>

#include <support_lib/random_graph.hpp>
#include <support_lib/test_ops.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class TextTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { testing::register_test_ops(); }
};

std::unique_ptr<Graph> parsed(std::string_view text) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().to_string()) << "\nin\n" << text.substr(0, 2000);
  return graph.ok() ? *std::move(graph) : nullptr;
}

std::string error_of(std::string_view text) {
  auto graph = parse_graph(text);
  if (graph.ok()) return "parsed: " + print(**graph);
  return graph.error().to_string();
}

// print and parse give the same graph, names included, and printing again gives the same text.
void expect_round_trip(const Graph& graph) {
  const std::string text = print(graph);
  const auto back = parsed(text);
  ASSERT_TRUE(back) << text;
  std::string difference;
  EXPECT_TRUE(same_graph(graph, *back, {.names = true, .types = true}, &difference)) << difference << "\n" << text;
  EXPECT_EQ(graph.name(), back->name());
  EXPECT_EQ(graph.properties(), back->properties());
  EXPECT_EQ(print(*back), text);
}

void expect_attribute_round_trip(const Attribute& attribute, std::string_view expected = "") {
  Graph graph;
  graph.body().create("test.Any", {}, {}, {{"a", attribute}});
  const std::string text = print(graph);
  if (!expected.empty()) {
    EXPECT_EQ(print(attribute), expected);
  }
  const auto back = parsed(text);
  ASSERT_TRUE(back);
  const Attribute* read = back->body().first()->attributes().find("a");
  ASSERT_TRUE(read) << text;
  EXPECT_EQ(read->kind(), attribute.kind()) << text;
  EXPECT_TRUE(*read == attribute) << text << "\nagainst\n" << print(*read);
}

TEST_F(TextTest, PrintsTheFormOfTheHeader) {
  const std::string text =
      "graph @block(%x: f32[1,64], %w: f32[64,64]) -> (%y, sum: %s) {\n"
      "  %c = test.Add %x, %w \"add/1\" {pads = [1, 1], scale = 0.5} : f32[64,64]\n"
      "  %y = test.Neg %c : f32[64,64]\n"
      "  %a, %b = test.Split %y \"split/halves\" {axis = 1} : f32[64,32], f32[64,32]\n"
      "  %s = test.If %cond'1 (() -> %t {\n"
      "    %t = test.Neg %a : f32[64,32]\n"
      "  }, () -> %a {}) : f32[64,32]\n"
      "  test.Log %s\n"
      "}\n";
  std::string with_condition = text;
  with_condition.replace(with_condition.find("%w: f32[64,64])"), 15, "%w: f32[64,64], %cond: bool[])");
  with_condition.replace(with_condition.find("%cond'1"), 7, "%cond");
  EXPECT_EQ(print(*parsed(with_condition)), with_condition);
  EXPECT_THAT(error_of(text), HasSubstr("text:5:16: value %cond'1 is used before it is defined"));
}

TEST_F(TextTest, IntegersAndRealsKeepTheirKindAndBits) {
  for (const int64_t value : {int64_t{0}, int64_t{-7}, INT64_MAX, INT64_MIN}) expect_attribute_round_trip(value);
  expect_attribute_round_trip(1.0f, "1.0");
  expect_attribute_round_trip(-0.0f, "-0.0");
  expect_attribute_round_trip(1e30f, "1e+30");
  expect_attribute_round_trip(std::numeric_limits<float>::denorm_min());
  expect_attribute_round_trip(std::numeric_limits<float>::max());
  expect_attribute_round_trip(std::numeric_limits<float>::infinity(), "inf");
  expect_attribute_round_trip(-std::numeric_limits<float>::infinity(), "-inf");
  expect_attribute_round_trip(std::numeric_limits<float>::quiet_NaN(), "nan");
  expect_attribute_round_trip(std::bit_cast<float>(0xffc00000u), "nan(0xffc00000)");
  expect_attribute_round_trip(std::bit_cast<float>(0x7f800001u), "nan(0x7f800001)");
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) expect_attribute_round_trip(std::bit_cast<float>(static_cast<uint32_t>(random())));
}

TEST_F(TextTest, TextsOfAnyBytes) {
  std::string every;
  for (int c = 0; c < 256; ++c) every += static_cast<char>(c);
  expect_attribute_round_trip(every);
  expect_attribute_round_trip("");
  expect_attribute_round_trip("# no comment\n\"quoted\"", R"("# no comment\n\"quoted\"")");
}

TEST_F(TextTest, ListsOfEachKindEmptyOnesToo) {
  expect_attribute_round_trip(Attribute::Integers{}, "[]");
  expect_attribute_round_trip(Attribute::Integers{1, -2}, "[1, -2]");
  expect_attribute_round_trip(Attribute::Reals{}, "reals[]");
  expect_attribute_round_trip(Attribute::Reals{1.0f, -std::numeric_limits<float>::infinity()}, "[1.0, -inf]");
  expect_attribute_round_trip(Attribute::Texts{}, "texts[]");
  expect_attribute_round_trip(Attribute::Texts{"a", "]"}, R"(["a", "]"])");
  expect_attribute_round_trip(Attribute::Tensors{}, "tensors[]");
  expect_attribute_round_trip(Attribute::Tensors{Tensor::scalar<float>(1), Tensor::of<int64_t>({2}, {1, 2})},
                              "[dense<f32[]: 1.0>, dense<i64[2]: 1, 2>]");
}

TEST_F(TextTest, Types) {
  expect_attribute_round_trip(Type(kF32, Shape({Dim(int64_t{2}), Dim()})), "type<f32[2,?]>");
  expect_attribute_round_trip(Type(), "type<?>");
  expect_attribute_round_trip(Type(kI4, Shape()), "type<i4[*]>");
  expect_attribute_round_trip(Type(ElementType(), Shape({Dim(int64_t{2})})));
  expect_attribute_round_trip(Type::sequence(Type::optional(Type(kString, Shape(Dims{})))),
                              "type<seq(optional(str[]))>");
  const Expr n = Expr::symbol("N"), odd = Expr::symbol("a, b) [\"c\"]");
  expect_attribute_round_trip(Type(kF32, Shape({Dim(n * 2 + 1), Dim(floordiv(n, 3)), Dim(max(n, Expr(4)))})));
  expect_attribute_round_trip(Type(kF32, Shape({Dim(odd), Dim(odd + 1)})));
}

// Random bits in every element type: short ones as elements, long ones as hex, equal ones as a splat.
TEST_F(TextTest, TensorsOfEveryElementType) {
  std::vector<ElementType> elements = {kF64,    kF32,        kF16,    kBF16,   kF8E4M3FN, kF8E4M3FNUZ,
                                       kF8E5M2, kF8E5M2FNUZ, kF8E8M0, kF4E2M1, kC64,      kC128};
  for (uint8_t bits = 1; bits <= 64; ++bits) {
    elements.emplace_back(ElementKind::sint, bits);
    elements.emplace_back(ElementKind::uint, bits);
  }
  std::mt19937_64 random(2);
  for (const ElementType element : elements) {
    for (const Dims& dims : {Dims{}, Dims{0, 3}, Dims{5}, Dims{2, 3}, Dims{7, 11}}) {
      for (const bool same : {false, true}) {
        SCOPED_TRACE(str(element, dims, same ? " splat" : ""));
        auto tensor = Tensor::zeros(element, dims);
        ASSERT_TRUE(tensor.ok());
        const int part = element.is_complex() ? element.bits() / 2 : element.bits();
        const int64_t parts = tensor->size() * (element.is_complex() ? 2 : 1);
        uint64_t drawn[2] = {random(), random()};
        for (int64_t i = 0; i < parts; ++i) {
          const uint64_t bits = same ? drawn[element.is_complex() ? i % 2 : 0] : random();
          store_bits(tensor->mutable_data(), part, i, part == 64 ? bits : bits & ((uint64_t{1} << part) - 1));
        }
        expect_attribute_round_trip(*tensor);
        const std::string form = tensor->size() > 1 && same ? "splat<" : tensor->size() > 32 ? "hex<" : "dense<";
        if (part > 8 || same) {  // narrower ones may be equal by chance
          EXPECT_THAT(print(Attribute(*tensor)), StartsWith(form));
        }
      }
    }
  }
}

// All values of the narrow formats, so every NaN, infinity, zero and denormal.
TEST_F(TextTest, EveryNarrowFloatAsElement) {
  for (const ElementType element : {kF16, kBF16, kF8E4M3FN, kF8E4M3FNUZ, kF8E5M2, kF8E5M2FNUZ, kF8E8M0, kF4E2M1}) {
    SCOPED_TRACE(element.to_string());
    const uint64_t values = uint64_t{1} << element.bits();
    Attribute::Tensors all;
    for (uint64_t first = 0; first < values; first += 16) {
      auto tensor = Tensor::zeros(element, {16});
      for (int64_t i = 0; i < 16; ++i) {
        store_bits(tensor->mutable_data(), element.bits(), i, first + static_cast<uint64_t>(i));
      }
      all.push_back(*tensor);
    }
    expect_attribute_round_trip(all);
  }
}

TEST_F(TextTest, StringAndBooleanTensors) {
  expect_attribute_round_trip(Tensor::of<std::string>({2}, {"a\0b", "\"\xff"}));
  expect_attribute_round_trip(Tensor::of<std::string>({0}, {}), "dense<str[0]: >");
  expect_attribute_round_trip(Tensor::of<std::string>({3}, {"x", "x", "x"}), R"(splat<str[3]: "x">)");
  std::vector<std::string> many(40, "x");
  many[7] = "y";
  expect_attribute_round_trip(Tensor::of<std::string>({40}, many));
  expect_attribute_round_trip(Tensor::of<bool>({3}, {true, false, true}), "dense<bool[3]: true, false, true>");
  auto odd = Tensor::zeros(kBool, {2});
  odd->mutable_data()[1] = std::byte{7};
  expect_attribute_round_trip(*odd, "hex<bool[2]: 0007>");
  expect_attribute_round_trip(Tensor(), "dense<>");
}

TEST_F(TextTest, LongTensorsElidedOnlyOnRequest) {
  std::vector<float> values(100);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Attribute attribute = Tensor::of<float>({100}, values);
  EXPECT_EQ(print(attribute, {.elide_beyond = 10}), "elided<f32[100]>");
  EXPECT_THAT(print(attribute, {.elide_beyond = 100}), StartsWith("hex<f32[100]: 000000000000803f"));
  EXPECT_THAT(error_of("graph() -> () { test.Any {a = elided<f32[100]>} }"), HasSubstr("elided"));
}

TEST_F(TextTest, NamesOfAllKindsSurvive) {
  Graph graph("odd \"graph\"");
  graph.properties() = {{"producer_name", "me"}, {"metadata.a b", "x\n"}, {"", ""}};
  const Type type(kF32, Shape(Dims{2}));
  std::vector<Value*> values;
  for (const char* name : {"x", "x", "", "", "0", "7", "a/b", "a/b", "_", "x'1", "\"", "%", "graph"}) {
    values.push_back(graph.body().add_input(name, type));
  }
  Op& op = graph.body().create("odd name", values, {type, type});
  op.result(0)->set_name("x");
  op.set_label("7");
  graph.body().create("_", {values.data(), 1}, {});
  Op& absent = graph.body().create("->", std::vector<Value*>{nullptr, values[0], nullptr}, {type});
  graph.body().set_outputs(
      std::vector<Value*>{values[0], values[1], op.result(0), op.result(1), absent.result(), values[3]},
      {"x", "_", "a b", "", "0", "x"});
  expect_round_trip(graph);
}

TEST_F(TextTest, RegionsSeeOuterValuesAndKeepTheirOwnNames) {
  const std::string text =
      "graph @g(%c: bool[], %x: f32[2]) -> %r {\n"
      "  %r = test.If %c (() -> (out: %x'1) {\n"
      "    %x'1 = test.Neg %x : f32[2]\n"
      "  }, () -> (out: %x'1) {\n"
      "    %x'1 = test.If %c (() -> %x {}, () -> %y {\n"
      "      %y = test.Add %x, %x : f32[2]\n"
      "    }) : f32[2]\n"
      "  }) : f32[2]\n"
      "}\n";
  const auto graph = parsed(text);
  ASSERT_TRUE(graph);
  expect_round_trip(*graph);
  EXPECT_EQ(graph->body().first()->region(0).first()->result()->name(), "x");
  EXPECT_TRUE(verify(*graph).ok());
}

TEST_F(TextTest, ResultTypesAreInferred) {
  const auto graph = parsed(
      "graph(%a: f32[N,1], %b: f32[1,4], %c: bool[]) -> %s {\n"
      "  %s = test.Add %a, %b\n"
      "  %p, %q = test.Split %s {axis = 1}\n"
      "  %r = test.If %c (() -> %p {}, () -> %t { %t = test.Neg %q })\n"
      "}");
  ASSERT_TRUE(graph);
  const auto ops = graph->body().ops();
  EXPECT_EQ(ops[0]->result()->type().to_string(), "f32[N,4]");
  EXPECT_EQ(ops[1]->result(1)->type().to_string(), "f32[N,2]");
  EXPECT_EQ(ops[2]->result()->type().to_string(), "f32[N,2]");
  // A spelled unknown type stays unknown, and without types the text says as much as the rules do.
  EXPECT_FALSE(parsed("graph(%a: f32[2]) -> %s { %s = test.Neg %a : ? }")->body().first()->result()->type().known());
  EXPECT_EQ(print(*parsed(print(*graph, {.types = false}))), print(*graph));
}

TEST_F(TextTest, CommentsAndLinesAreFree) {
  const auto graph = parsed(
      "# head\ngraph(%a: f32[2]# in\n) -> # out\n %b {\n test.Sink # no operand on this line\n %b = test.Neg\t%a "
      "# an operand\n : f32[2] %d = test.Neg %b }# end");
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->body().op_count(), 3u);
  EXPECT_EQ(graph->body().first()->operand_count(), 0u);
}

TEST_F(TextTest, ErrorsNamePlaceAndReason) {
  const auto in_body = [](std::string_view body) {
    return error_of(str("graph(%x: f32[2]) -> () {\n  ", body, "\n}"));
  };
  EXPECT_EQ(error_of(""), "text:1:1: expected 'graph', found the end of the text");
  EXPECT_EQ(in_body("%y = test.Neg %z"), "text:2:17: value %z is used before it is defined");
  EXPECT_EQ(in_body("%y = foo.Bar %x"),
            "text:2:8: no operator 'foo.Bar' is defined, so the types of its results cannot be inferred: write them "
            "behind ':', or load the plugin that defines it");
  EXPECT_THAT(in_body("%x = test.Neg %x"), HasSubstr("text:2:3: value %x is defined twice, first at text:1:7"));
  EXPECT_THAT(in_body("%y = test.Add %x, %y"), HasSubstr("%y is used before it is defined"));
  EXPECT_THAT(in_body("%y = test.Add _, %x"), StartsWith("text:2:8: test.Add (%y): operand 0 ('a') is absent"));
  EXPECT_THAT(in_body("%y = test.Neg %x : f32[2], f32[2]"), HasSubstr("1 results and 2 types"));
  EXPECT_THAT(in_body("%y = test.Neg %x : f33[2]"), HasSubstr("text:2:22: \"f33\" is no element type"));
  EXPECT_THAT(in_body("%y = test.Neg %x : f32[(2]"), HasSubstr("2:22"));
  EXPECT_THAT(in_body("test.Any {a = 1, a = 2}"), HasSubstr("text:2:20: attribute \"a\" stands twice"));
  EXPECT_THAT(in_body("test.Any {a = [1, 2.0]}"), HasSubstr("text:2:21: a list holds one kind"));
  EXPECT_THAT(in_body("test.Any {a = [[1]]}"), HasSubstr("expected a number"));
  EXPECT_THAT(in_body("test.Any {a = [type<?>]}"), HasSubstr("no lists of"));
  EXPECT_THAT(in_body("test.Any {a = 99999999999999999999}"), HasSubstr("does not fit 64 bits"));
  EXPECT_THAT(in_body("test.Any {a = 1e99}"), HasSubstr("expected a number that f32 holds"));
  EXPECT_THAT(in_body("test.Any {a = \"open}"), HasSubstr("text:2:17: this string does not end"));
  EXPECT_THAT(in_body("test.Any {a = dense<f32[3]: 1.0, 2.0>}"), HasSubstr("has 3 elements, found 2"));
  EXPECT_THAT(in_body("test.Any {a = dense<f32[1]: 1.0, 2.0>}"), HasSubstr("expected '>'"));
  EXPECT_THAT(in_body("test.Any {a = dense<f32[N]: 1.0>}"), HasSubstr("numbers for dims"));
  EXPECT_THAT(in_body("test.Any {a = dense<f32[9000000000]: 1.0>}"), HasSubstr("the text ends before the 9000000000"));
  EXPECT_THAT(in_body("test.Any {a = hex<f32[9000000000]: 00>}"), HasSubstr("the text ends before"));
  EXPECT_THAT(in_body("test.Any {a = splat<f32[4611686018427387904,4]: 1.0>}"), HasSubstr("text:2:23"));
  EXPECT_THAT(in_body("test.Any {a = hex<f32[1]: 0000803g>}"), HasSubstr("text:2:35: expected 8 hex digits"));
  EXPECT_THAT(in_body("test.Any {a = hex<u4[1]: f1>}"), HasSubstr("must be zero"));
  EXPECT_THAT(in_body("test.Any {a = dense<u4[1]: 16>}"), HasSubstr("an integer that u4 holds"));
  EXPECT_THAT(in_body("test.Any {a = dense<i4[1]: -9>}"), HasSubstr("an integer that i4 holds"));
  EXPECT_THAT(in_body("test.Any {a = dense<f16[1]: 1e9>}"), HasSubstr("a number that f16 holds"));
  EXPECT_THAT(in_body("test.Any {a = dense<f16[1]: nan(0x3c00)>}"), HasSubstr("no NaN"));
  EXPECT_THAT(in_body("test.Any {a = splat<f32[0]: 1.0>}"), HasSubstr("splat of no elements"));
  EXPECT_THAT(error_of("graph() -> %x {}"), HasSubstr("text:1:12: value %x is used before"));
  EXPECT_THAT(error_of("graph() -> () {"), HasSubstr("expected an operator or '}', found the end"));
  EXPECT_THAT(error_of("graph() -> () {} x"), HasSubstr("expected the end of the text, found 'x'"));
  EXPECT_THAT(error_of("graph() -> () {} properties {a = \"1\" a = \"2\"}"), HasSubstr("stands twice"));
}

TEST_F(TextTest, ValuesOfARegionEndWithIt) {
  EXPECT_THAT(error_of("graph(%c: bool[], %x: f32[2]) -> %t {\n"
                       "  %r = test.If %c (() -> %t { %t = test.Neg %x }, () -> %x {})\n}"),
              HasSubstr("text:1:34: value %t is used before it is defined"));
}

TEST_F(TextTest, DeepNestingIsRefused) {
  std::string regions = "graph() -> () {";
  for (int i = 0; i < 100000; ++i) regions += "A(()->(){";
  EXPECT_THAT(error_of(regions), HasSubstr("regions nest deeper than"));
  std::string types = "graph(%x: ";
  for (int i = 0; i < 100000; ++i) types += "seq(";
  EXPECT_THAT(error_of(types), HasSubstr("text:1:11"));
  EXPECT_THAT(error_of(types + std::string(100000, ')') + ") -> () {}"), HasSubstr("deeper"));
  EXPECT_THAT(error_of("graph(%x: f32[" + std::string(100000, '(') + "1" + std::string(100000, ')') + "]) -> () {}"),
              HasSubstr("text:1:11"));
}

TEST_F(TextTest, PrintsOneOperator) {
  const auto graph =
      parsed("graph(%c: bool[], %x: f32[2]) -> () { %r = test.If %c (() -> %t { %t = test.Neg %x }, () -> %x {}) }");
  EXPECT_EQ(print(*graph->body().first()),
            "%r = test.If %c (() -> %t {\n  %t = test.Neg %x : f32[2]\n}, () -> %x {}) : f32[2]");
}

testing::RandomGraphOptions random_options(uint64_t seed, size_t ops) {
  return {.seed = seed,
          .ops = ops,
          .use = {"test.Neg", "test.Add", "test.Less", "test.Clip", "test.Sum", "test.Log", "test.Split"},
          .branch = "test.If"};
}

TEST_F(TextTest, RandomGraphsRoundTrip) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    const auto graph = testing::random_graph(random_options(seed, 30));
    auto verified = verify(*graph);
    ASSERT_TRUE(verified.ok()) << verified.error().to_string() << "\n" << print(*graph);
    expect_round_trip(*graph);
    if (HasFailure()) return;
  }
}

// However a text is changed, it is parsed or refused with a place.
TEST_F(TextTest, MutatedTextsNeverCrash) {
  static constexpr std::string_view kPieces[] = {
      "%",      "_",    "(",    ")", "{", "}", "->", ":",  "\"",   ",",    "'", "=",   "#",    "\n",         "dense<",
      "splat<", "hex<", "f32[", "[", "]", ">", "0",  "-1", "nan(", "seq(", "@", "\\x", "\xff", "99999999999"};
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    std::mt19937_64 random(seed);
    std::string text = print(*testing::random_graph(random_options(seed % 50, 8)));
    for (uint64_t change = 1 + random() % 4; change-- > 0 && !text.empty();) {
      const size_t at = random() % text.size(), length = 1 + random() % 12;
      switch (random() % 5) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, length); break;
        case 2: text.insert(at, kPieces[random() % std::size(kPieces)]); break;
        case 3: text.insert(random() % text.size(), text.substr(at, length)); break;
        default: text.resize(at); break;
      }
    }
    auto graph = parse_graph(text, "mutant");
    if (!graph.ok()) {
      EXPECT_THAT(graph.error().message(), StartsWith("mutant:"));
      continue;
    }
    (void)verify(**graph, {.allow_unknown_ops = true, .require_types = false});
    expect_round_trip(**graph);
    if (HasFailure()) return;
  }
}

// Ten times the operators must not take thirty times as long; the limit allows for sanitizers and busy machines.
TEST_F(TextTest, LinearInTheSizeOfTheGraph) {
  const auto seconds_for = [](int ops) {
    Graph graph("long");
    const Type type(kF32, Shape({Dim(Expr::symbol("N")), Dim(int64_t{64}), Dim(int64_t{56}), Dim(int64_t{56})}));
    std::vector<Value*> last = {graph.body().add_input("x", type), graph.body().add_input("y", type)};
    for (int i = 0; i < ops; ++i) {
      Op& op = graph.body().create("test.Add", last, {type}, {{"axis", i}});
      op.result()->set_name(i % 2 ? str("layer/", i) : std::string());
      last = {op.result(), last[0]};
    }
    graph.body().add_output(last[0], "out");
    const auto start = std::chrono::steady_clock::now();
    const auto back = parsed(print(graph));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_TRUE(back && same_graph(graph, *back, {.names = true}));
    return seconds;
  };
  seconds_for(1000);
  const double small = seconds_for(10000), large = seconds_for(100000);
  RecordProperty("seconds_100000", str(large));
  EXPECT_LT(large, 10.0);
  EXPECT_LT(large, 30 * small + 0.5);
}

TEST_F(TextTest, LongTensorsAreQuick) {
  auto tensor = Tensor::allocate(kF32, {16 << 20});
  for (size_t i = 0; i < tensor->bytes(); i += 4) tensor->mutable_data()[i] = static_cast<std::byte>(i >> 3);
  Graph graph;
  graph.body().create("test.Any", {}, {}, {{"value", *tensor}});
  const auto start = std::chrono::steady_clock::now();
  const auto back = parsed(print(graph));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ASSERT_TRUE(back);
  EXPECT_TRUE(same_graph(graph, *back));
  RecordProperty("seconds_64MiB", str(seconds));
  EXPECT_LT(seconds, 20.0);
}

}  // namespace
}  // namespace tenon
