#include <tenon/compile/partition.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include <support_lib/assembled.hpp>
#include <support_lib/fake_backend.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/tensor/compare.hpp>

namespace tenon {
namespace {

using testing::assembled;
using ::testing::ElementsAre;
using testing::FakeBackend;
using testing::FarDevice;
using ::testing::HasSubstr;

std::unique_ptr<Graph> parsed(std::string_view text) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().to_string());
  return graph.ok() ? *std::move(graph) : std::make_unique<Graph>();
}

Datum row(std::vector<float> values) {
  const auto count = static_cast<int64_t>(values.size());
  return Tensor::of<float>({count}, values);
}

std::vector<std::string> targets_of(const CompiledModel& model) {
  std::vector<std::string> out;
  for (const auto& segment : model.segments()) out.push_back(segment.target);
  return out;
}

TEST(Partition, OneTargetIsOnePart) {
  const auto graph = parsed("graph @g(%x: f32[2]) -> %z { %y = Neg %x %z = Add %y, %x }");
  FakeBackend all("all", {"Neg", "Add"});
  const auto cut = partition(*graph, {&all});
  ASSERT_TRUE(cut.ok()) << cut.error().to_string();
  ASSERT_EQ(cut->parts.size(), 1u);
  EXPECT_THAT(cut->parts[0].inputs, ElementsAre(0));
  EXPECT_EQ(cut->placement.coverage("all"), 1);
}

TEST(Partition, NamesTheOperatorThatNobodyTakesAndEveryReason) {
  const auto graph = parsed("graph @g(%x: f32[2]) -> %z { %z = Abs %x \"block/abs\" }");
  FakeBackend a("a", {"Neg"}), b("b", {"Add"});
  const auto cut = partition(*graph, {&a, &b});
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().code(), Code::unsupported);
  EXPECT_THAT(cut.error().message(), HasSubstr("no target takes Abs 'block/abs'"));
  EXPECT_THAT(cut.error().message(), HasSubstr("a: a has no Abs"));
  EXPECT_THAT(cut.error().message(), HasSubstr("b: b has no Abs"));
}

TEST(Partition, ADiamondAcrossTargetsStaysAcyclic) {
  // a0 -> b -> a1 and a0 -> a1: a0 and a1 must not become one part around b.
  const auto graph = parsed(R"(graph @g(%x: f32[2]) -> %r {
    %p = Neg %x
    %q = Abs %p
    %r = Add %p, %q
  })");
  FakeBackend a("a", {"Neg", "Add"}), b("b", {"Abs"});
  const auto model = assembled(*graph, {&a, &b});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  EXPECT_THAT(targets_of(**model), ElementsAre("a", "b", "a"));
  const std::vector<Datum> inputs{row({1, -2})};
  const auto outputs = (*model)->run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  EXPECT_TRUE(compare((*outputs)[0], row({0, 4})).equal);
}

TEST(Partition, BranchesOfOneTargetShareAPart) {
  const auto graph = parsed(R"(graph @g(%x: f32[2], %y: f32[2]) -> (%a, %b) {
    %p = Abs %x
    %q = Abs %y
    %a = Neg %p
    %b = Neg %q
  })");
  FakeBackend a("a", {"Abs"}), b("b", {"Neg"});
  const auto model = assembled(*graph, {&a, &b});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  EXPECT_THAT(targets_of(**model), ElementsAre("a", "b"));
}

TEST(Partition, ConstantsGoWhereTheyAreUsedAndMayBeOutputs) {
  const auto graph = parsed(R"(graph @g(%x: f32[2]) -> (%z, %k, %x) {
    %k = Constant {value = dense<f32[2]: 1.0, 2.0>}
    %y = Add %x, %k
    %n = Neg %y
    %z = Add %n, %k
  })");
  FakeBackend a("a", {"Add"}), b("b", {"Neg"});
  const auto model = assembled(*graph, {&a, &b});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const std::vector<Datum> inputs{row({10, 20})};
  const auto outputs = (*model)->run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  EXPECT_TRUE(compare((*outputs)[0], row({-10, -20})).equal);
  EXPECT_TRUE(compare((*outputs)[1], row({1, 2})).equal);
  EXPECT_TRUE(compare((*outputs)[2], row({10, 20})).equal);
}

// Weights that are converted in every run: one at a time is live, in the part before the one that reads it.
TEST(Partition, WhatIsMadeOfConstantsGoesBeforeItsUser) {
  const auto graph = parsed(R"(graph @g(%x: f32[2]) -> (%z, %m) {
    %k = Constant {value = dense<f32[2]: 1.0, 2.0>}
    %w0 = Neg %k
    %w1 = Neg %k
    %v1 = Neg %w1
    %m = Neg %k
    %a = Neg %x
    %y = Add %a, %w0
    %b = Neg %y
    %z = Add %b, %v1
  })");
  FakeBackend a("a", {"Neg"}), b("b", {"Add"});
  const auto cut = partition(*graph, {&a, &b});
  ASSERT_TRUE(cut.ok()) << cut.error().to_string();
  std::vector<std::vector<std::string>> made;
  for (const GraphPart& part : cut->parts) {
    made.emplace_back();
    for (const Op& op : part.graph->body()) {
      if (op.name() != "Constant") made.back().push_back(op.result()->name());
    }
  }
  EXPECT_THAT(
      made, ElementsAre(ElementsAre("w0", "m", "a"), ElementsAre("y"), ElementsAre("w1", "v1", "b"), ElementsAre("z")));
}

// A value that is several outputs is as many outputs of the part if its target stores it again; else runs copy it.
TEST(Partition, TargetsStoreOutputsAgain) {
  struct Repeating : FakeBackend {
    using FakeBackend::FakeBackend;
    bool stores_again(const Op& op) const override { return op.is("Neg"); }
  };
  const auto graph = parsed(R"(graph @g(%x: f32[2]) -> (y: %y, b: %y, c: %z, w: %w, y_again: %y, e: %w) {
    %y = Neg %x
    %z = Neg %y
    %y_again = Neg %z
    %w = Abs %y_again
  })");
  Repeating a("a", {"Neg"});
  FakeBackend b("b", {"Abs"});
  const auto cut = partition(*graph, {&a, &b});
  ASSERT_TRUE(cut.ok()) << cut.error().to_string();
  const Region& body = cut->parts.at(0).graph->body();
  std::vector<std::string> names;
  for (size_t i = 0; i < body.output_count(); ++i) names.push_back(body.output_name(i));
  EXPECT_THAT(names, ElementsAre("y", "z", "y_again", "b", "y_again_again"));
  EXPECT_EQ(body.output(3), body.output(0));
  EXPECT_EQ(body.output(4), body.output(0));
  EXPECT_EQ(cut->parts.at(1).graph->body().output_count(), 1u);
  EXPECT_EQ(cut->output_slots[3], cut->output_slots[5]);
  for (const size_t i : {1, 4}) EXPECT_EQ(std::ranges::count(cut->output_slots, cut->output_slots[i]), 1);
  for (const auto& device : {std::shared_ptr<FarDevice>(), std::make_shared<FarDevice>("far")}) {
    Repeating on("a", {"Neg"}, device);
    const auto model = assembled(*graph, {&on, &b});
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    const std::vector<Datum> inputs{row({1, -2})};
    const auto outputs = (*model)->run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
    const std::vector<Datum> expected = {row({-1, 2}), row({-1, 2}), row({1, -2}),
                                         row({1, 2}),  row({-1, 2}), row({1, 2})};
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(compare((*outputs)[i], expected[i]).equal) << i;
      for (size_t j = 0; j < i; ++j) EXPECT_NE((*outputs)[i].tensor().data(), (*outputs)[j].tensor().data());
    }
  }
}

TEST(Partition, ValuesAreCopiedOnlyWhereTheyCrossDevices) {
  const auto graph = parsed(R"(graph @g(%x: f32[2]) -> %e {
    %a = Neg %x
    %b = Neg %a
    %c = Abs %b
    %d = Neg %c
    %e = Neg %d
  })");
  const auto far = std::make_shared<FarDevice>("far");
  FakeBackend remote("remote", {"Neg"}, far), host("host", {"Abs"});
  const auto model = assembled(*graph, {&remote, &host});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const std::vector<Datum> inputs{row({1, -2})};
  const auto outputs = (*model)->run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  EXPECT_TRUE(compare((*outputs)[0], row({1, 2})).equal);
  // To the device: x, c, and the values that the two parts store; back: b, e, and the values that they fetch.
  EXPECT_EQ(far->copies_in, 4);
  EXPECT_EQ(far->copies_out, 4);
}

TEST(Partition, TwoFarDevicesExchangeThroughTheHost) {
  const auto graph = parsed("graph @g(%x: f32[3]) -> %z { %y = Neg %x %z = Abs %y }");
  const auto one = std::make_shared<FarDevice>("one"), two = std::make_shared<FarDevice>("two");
  FakeBackend a("a", {"Neg"}, one), b("b", {"Abs"}, two);
  const auto model = assembled(*graph, {&a, &b});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const std::vector<Datum> inputs{row({1, -2, 3})};
  const auto outputs = (*model)->run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  EXPECT_TRUE(compare((*outputs)[0], row({1, 2, 3})).equal);
}

TEST(Partition, AFailingPartNamesItsTargetAndTheModelRunsAgain) {
  const auto graph = parsed("graph @g(%x: f32[N], %y: f32[M]) -> %z { %n = Neg %x %z = Add %n, %y }");
  FakeBackend a("a", {"Neg"}), b("b", {"Add"});
  const auto model = assembled(*graph, {&a, &b});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const std::vector<Datum> bad{row({1, 2}), row({1, 2, 3})}, good{row({1, 2}), row({3, 4})};
  const auto failed = (*model)->run(bad);
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().to_string(), HasSubstr("target 'b'"));
  EXPECT_TRUE((*model)->run(good).ok());
}

// Random graphs of inputs and constants with each operator on one of three targets: the same results as on one target.
TEST(Partition, RandomPlacementsGiveWhatOneTargetGives) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const std::vector<std::string> ops = {"Add", "Mul", "Neg", "Abs", "Sub"};
    std::string text = "graph @g(%v0: f32[4], %v1: f32[4]) -> (";
    std::string body;
    for (const std::string_view name : {"v2", "v3"})
      body += str("  %", name, " = Constant {value = dense<f32[4]: 0.5, -1.0, 2.0, ", random() % 5, ".0>}\n");
    const int count = 7 + static_cast<int>(random() % 30);
    for (int i = 4; i < count; ++i) {
      const auto& op = ops[random() % ops.size()];
      body += str("  %v", i, " = ", op, " %v", random() % i);
      if (op != "Neg" && op != "Abs") body += str(", %v", random() % i);
      body += "\n";
    }
    text += str("%v", count - 1, ", %v", count / 2, ") {\n", body, "}\n");
    if (count - 1 == count / 2) continue;
    const auto graph = parsed(text);
    std::set<std::string> first, second;
    for (const auto& op : ops) {
      if (random() % 2) first.insert(op);
      if (random() % 2) second.insert(op);
    }
    FakeBackend a("a", first, std::make_shared<FarDevice>("far")), b("b", second),
        rest("rest", {ops.begin(), ops.end()}), whole("whole", {ops.begin(), ops.end()});
    const auto cut = assembled(*graph, {&a, &b, &rest});
    const auto plain = assembled(*graph, {&whole});
    ASSERT_TRUE(cut.ok() && plain.ok()) << text;
    const std::vector<Datum> inputs{row({1, 2, 3, 4}), row({-0.5f, 0.25f, 1, 0})};
    const auto got = (*cut)->run(inputs), expected = (*plain)->run(inputs);
    ASSERT_TRUE(got.ok() && expected.ok()) << text;
    for (size_t i = 0; i < got->size(); ++i) {
      EXPECT_TRUE((*got)[i].tensor().identical((*expected)[i].tensor())) << text;
    }
  }
}

}  // namespace
}  // namespace tenon
