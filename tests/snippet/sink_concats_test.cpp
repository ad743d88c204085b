// Elementwise operators that move in front of a Concat: the operators of the resulting graphs, and their results.
#include <tenon/snippet/tokenize/sink_concats.hpp>

#include <gtest/gtest.h>

#include <support_lib/on_reference.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>

namespace tenon::snippet {
namespace {

std::unique_ptr<Graph> graph_of(const std::string& text) {
  auto parsed = parse_graph(str("graph @g", text));
  TENON_CHECK(parsed.ok(), parsed.ok() ? "" : parsed.error().to_string() + "\n" + text);
  return *std::move(parsed);
}

// A graph after sink_concats(); expects that the reference computes the same results as before.
struct Sunk {
  explicit Sunk(
      const std::string& text, const std::function<bool(const Op&)>& accepts = [](const Op&) { return true; })
      : graph(graph_of(text)) {
    const auto before = graph_of(text);
    const auto made = sink_concats(*graph, accepts);
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    sunk = *made;
    const auto verified = verify(*graph);
    EXPECT_TRUE(verified.ok()) << verified.error().to_string();
    for (const Op& op : graph->body())
      if (!op.is("Constant")) operators += op.name().str() + " ";
    std::mt19937 random(3);
    std::vector<Datum> inputs;
    for (size_t i = 0; i < graph->body().input_count(); ++i) {
      const Type& type = graph->body().input(i)->type();
      inputs.emplace_back(testing_input(type, random));
    }
    const auto expected = testing::on_reference(*before, inputs), got = testing::on_reference(*graph, inputs);
    for (size_t o = 0; o < got.size(); ++o) {
      EXPECT_EQ(graph->body().output(o)->name(), before->body().output(o)->name());
      EXPECT_EQ(graph->body().output(o)->type(), before->body().output(o)->type());
      for (int64_t e = 0; e < got[o].size(); ++e) EXPECT_EQ(got[o].double_at(e), expected[o].double_at(e)) << text;
    }
  }
  static Tensor testing_input(const Type& type, std::mt19937& random) {
    Tensor made = *Tensor::zeros(type.element(), *type.shape().static_dims());
    for (int64_t i = 0; i < made.size(); ++i) made.set_double(i, static_cast<double>(random() % 201) / 8 - 12);
    return made;
  }

  std::unique_ptr<Graph> graph;
  size_t sunk = 0;
  std::string operators;
};

constexpr const char* kHalves =
    "%o = Constant {value = dense<i64[1]: 0>}\n%h = Constant {value = dense<i64[1]: 16>}\n"
    "%n = Constant {value = dense<i64[1]: 32>}\n%a = Constant {value = dense<i64[1]: -1>}\n"
    "%x1 = Slice %x, %o, %h, %a\n%x2 = Slice %x, %h, %n, %a\n%m = Neg %x2\n%r = Concat %m, %x1 {axis = 2}\n";

TEST(SinkConcats, RotatedHalves) {
  const Sunk both(str("(%x: f32[3,5,32], %c: f32[5,32], %s: f32[5,32]) -> %y {\n", kHalves,
                      "%e = Mul %x, %c\n%f = Mul %r, %s\n%y = Add %e, %f\n}"));
  EXPECT_EQ(both.sunk, 2u);
  // The two slices of x, which the graph already has, and two slices each of the cosines and the sines.
  EXPECT_EQ(both.operators, "Slice Slice Neg Slice Mul Slice Mul Slice Mul Add Slice Mul Add Concat ");
}

TEST(SinkConcats, BehindAllThatReadsIt) {
  const Sunk chain(
      "(%p: f32[4,16], %q: f32[4,32], %b: f32[48], %s: f32[4,1]) -> %y {\n%r = Concat %p, %q {axis = -1}\n"
      "%t = Add %r, %b\n%u = Mul %s, %t\n%v = Relu %u\n%y = Cast %v {to = type<f16[*]>}\n}");
  EXPECT_EQ(chain.sunk, 4u);
  EXPECT_TRUE(chain.operators.ends_with("Cast Concat ")) << chain.operators;
  // A tensor with other readers is not computed in parts, but read in parts.
  const Sunk shared(
      "(%p: f32[4,16], %q: f32[4,16], %z: f32[4,32]) -> (%y, %e) {\n%e = Exp %z\n%r = Concat %p, %q {axis = 1}\n"
      "%y = Sub %e, %r\n}");
  EXPECT_EQ(shared.operators, "Exp Slice Sub Slice Sub Concat ");
  // An existing slice that is after the reader is not used.
  const Sunk late(
      "(%p: f32[4,16], %q: f32[4,16], %z: f32[4,32]) -> (%y, %s) {\n%r = Concat %p, %q {axis = 1}\n%y = Mul %r, %z\n"
      "%b = Constant {value = dense<i64[1]: 0>}\n%e = Constant {value = dense<i64[1]: 16>}\n"
      "%a = Constant {value = dense<i64[1]: 1>}\n%s = Slice %z, %b, %e, %a\n}");
  EXPECT_EQ(late.operators, "Slice Mul Slice Mul Concat Slice ");
  // A value without other readers is computed in parts, and so are its own operands.
  const Sunk deeper(
      "(%p: f32[4,16], %q: f32[4,16], %z: f32[4,32], %b: f32[32]) -> %y {\n%r = Concat %p, %q {axis = 1}\n"
      "%e = Exp %z\n%f = Mul %e, %b\n%y = Sub %f, %r\n}");
  EXPECT_EQ(deeper.operators, "Slice Exp Slice Mul Sub Slice Exp Slice Mul Sub Concat ");
  const Sunk rows(
      "(%p: f32[2,16], %q: f32[3,16], %z: f32[5,16], %s: f32[5,1]) -> %y {\n%r = Concat %p, %q {axis = 0}\n"
      "%t = Mul %r, %s\n%y = Add %t, %z\n}");
  EXPECT_EQ(rows.sunk, 2u);
  // The axes of both operands are matched from the last one, as in broadcasting.
  const Sunk wider(
      "(%p: f32[2,16], %q: f32[3,16], %z: f32[2,5,16]) -> %y {\n%r = Concat %p, %q {axis = 0}\n%y = Add %r, %z\n}");
  EXPECT_EQ(wider.sunk, 1u);
}

TEST(SinkConcats, StayWhereTheyAre) {
  const auto stays = [](const std::string& text) { return Sunk(text).sunk == 0; };
  const std::string joined = "%r = Concat %p, %q {axis = -1}\n";
  EXPECT_TRUE(stays("(%p: f32[4,16], %q: f32[4,16]) -> (%y, %r) {\n" + joined + "%y = Relu %r\n}")) << "is an output";
  EXPECT_TRUE(stays("(%p: f32[4,16], %q: f32[4,16]) -> %y {\n" + joined + "%y = Mul %r, %r\n}")) << "read twice";
  EXPECT_TRUE(stays("(%p: f32[4,8], %q: f32[4,24]) -> %y {\n" + joined + "%y = Relu %r\n}")) << "less than a line";
  EXPECT_TRUE(stays("(%p: f32[4,16], %q: f32[4,16]) -> %y {\n" + joined + "%y = Softmax %r {axis = -1}\n}"));
  const Sunk refused("(%p: f32[4,16], %q: f32[4,16]) -> %y {\n" + joined + "%e = Erf %r\n%y = Relu %e\n}",
                     [](const Op& op) { return !op.is("Erf"); });
  EXPECT_EQ(refused.sunk, 0u);
}

}  // namespace
}  // namespace tenon::snippet
