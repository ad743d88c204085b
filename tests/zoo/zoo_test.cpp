#include "zoo/zoo.hpp"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/onnx/import.hpp>
#include <tenon/onnx/test_data.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/runtime/thread_pool.hpp>
#include <tenon/tensor/compare.hpp>

#include "zoo/net.hpp"
#include "zoo/random.hpp"

namespace tenon::zoo {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr Options kTiny{.size = Size::tiny};

std::unique_ptr<Graph> built(std::string_view name, const Options& options = kTiny) {
  auto graph = build(name, options);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? *std::move(graph) : nullptr;
}

std::vector<Datum> inputs_of(const Graph& graph, uint64_t seed) {
  auto made = inputs(graph, seed);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return made.ok() ? *std::move(made) : std::vector<Datum>();
}

std::vector<Datum> run(const Graph& graph, std::span<const Datum> values) {
  auto interpreter = Interpreter::prepare(graph);
  EXPECT_TRUE(interpreter.ok()) << interpreter.error().to_string();
  if (!interpreter.ok()) return {};
  auto outputs = (*interpreter)->run(values, default_pool());
  EXPECT_TRUE(outputs.ok()) << outputs.error().to_string();
  return outputs.ok() ? *std::move(outputs) : std::vector<Datum>();
}

class Folder {
 public:
  Folder() : path_(fs::path(testing::TempDir()) / str("tenon_zoo_", getpid())) { fs::create_directories(path_); }
  ~Folder() { fs::remove_all(path_); }
  std::string path() const { return path_.string(); }
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

struct Spread {
  double mean = 0, deviation = 0;
  bool finite = true;
};
Spread spread(const Tensor& tensor) {
  Spread out;
  double squares = 0;
  for (const float v : tensor.as<float>()) {
    out.finite = out.finite && std::isfinite(v);
    out.mean += v;
    squares += static_cast<double>(v) * v;
  }
  out.mean /= static_cast<double>(tensor.size());
  out.deviation = std::sqrt(squares / static_cast<double>(tensor.size()) - out.mean * out.mean);
  return out;
}

// Written, read back and compared: as a graph, and by the results of both.
void expect_round_trip(const Graph& graph) {
  const Folder folder;
  const auto values = inputs_of(graph, 1);
  const auto written = write(graph, values, folder.path());
  ASSERT_TRUE(written.ok()) << written.error().to_string();
  auto read = import_model(folder / "model.onnx");
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  std::string difference;
  EXPECT_TRUE(same_graph(graph, **read, {.names = true}, &difference)) << difference;

  const auto direct = run(graph, values), imported = run(**read, values);
  ASSERT_EQ(direct.size(), imported.size());
  for (size_t i = 0; i < direct.size(); ++i) {
    EXPECT_TRUE(direct[i].tensor().identical(imported[i].tensor())) << "output " << i;
    auto stored = read_test_data(folder / str("test_data_set_0/output_", i, ".pb"), graph.body().output(i)->type());
    ASSERT_TRUE(stored.ok()) << stored.error().to_string();
    EXPECT_TRUE(stored->tensor().identical(direct[i].tensor())) << "output " << i;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    auto stored = read_test_data(folder / str("test_data_set_0/input_", i, ".pb"), graph.body().input(i)->type());
    ASSERT_TRUE(stored.ok()) << stored.error().to_string();
    EXPECT_TRUE(stored->tensor().identical(values[i].tensor())) << "input " << i;
  }
}

class ZooModel : public testing::TestWithParam<std::string> {};

TEST_P(ZooModel, BuiltAndImportedAreEqual) {
  const auto graph = built(GetParam());
  ASSERT_TRUE(graph);
  expect_round_trip(*graph);
}

TEST_P(ZooModel, SameSeedSameModelOtherSeedOther) {
  const auto a = built(GetParam()), b = built(GetParam());
  const auto c = built(GetParam(), {.size = Size::tiny, .seed = 2});
  ASSERT_TRUE(a && b && c);
  std::string difference;
  EXPECT_TRUE(same_graph(*a, *b, {.names = true}, &difference)) << difference;
  EXPECT_FALSE(same_graph(*a, *c));
}

TEST_P(ZooModel, OutputsAreFiniteAndDependOnInputs) {
  const auto graph = built(GetParam());
  ASSERT_TRUE(graph);
  const auto first = run(*graph, inputs_of(*graph, 1)), second = run(*graph, inputs_of(*graph, 2));
  ASSERT_FALSE(first.empty());
  for (size_t i = 0; i < first.size(); ++i) {
    const Spread s = spread(first[i].tensor());
    EXPECT_TRUE(s.finite) << "output " << i;
    EXPECT_GT(s.deviation, 0.05) << "output " << i;
    EXPECT_LT(s.deviation, 20) << "output " << i;
    const auto comparison = compare(first[i], second[i]);
    EXPECT_GT(comparison.max_abs, 0.05 * s.deviation) << "output " << i;
  }
}

// Rows of a batch are independent: each gives the same as alone.
TEST_P(ZooModel, BatchOfTwo) {
  const auto one = built(GetParam());
  const auto two = built(GetParam(), {.size = Size::tiny, .batch = 2});
  ASSERT_TRUE(one && two);
  ASSERT_EQ(one->body().input_count(), two->body().input_count());
  // Where the batch stands: the dim that differs.
  const auto batch_axis = [](const Value& a, const Value& b) {
    size_t axis = 0;
    while (a.type().shape()[axis] == b.type().shape()[axis]) ++axis;
    return static_cast<int64_t>(axis);
  };
  const auto values = inputs_of(*two, 3);
  std::vector<Datum> second_rows;
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t axis = batch_axis(*one->body().input(i), *two->body().input(i));
    auto row = evaluate("Gather", {values[i], Tensor::of<int64_t>({1}, {1})}, {{"axis", axis}});
    ASSERT_TRUE(row.ok()) << row.error().to_string();
    second_rows.push_back((*row)[0]);
  }
  const auto both = run(*two, values), alone = run(*one, second_rows);
  ASSERT_EQ(both.size(), alone.size());
  for (size_t i = 0; i < both.size(); ++i) {
    const int64_t axis = batch_axis(*one->body().output(i), *two->body().output(i));
    auto row = evaluate("Gather", {both[i], Tensor::of<int64_t>({1}, {1})}, {{"axis", axis}});
    ASSERT_TRUE(row.ok()) << row.error().to_string();
    // Quantised models have their scales from the samples, which differ with the batch.
    const double limit = GetParam().ends_with("_int8") ? 0.3 : 1e-5;
    const auto comparison = compare((*row)[0], alone[i]);
    EXPECT_LT(comparison.relative_max, limit) << comparison.difference;
  }
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const ModelInfo& model : models()) out.push_back(model.name);
  return out;
}
INSTANTIATE_TEST_SUITE_P(All, ZooModel, testing::ValuesIn(names()), [](const auto& info) { return info.param; });

TEST(Zoo, FullResnet50BuiltAndImportedAreEqual) {
  const auto graph = built("resnet50", {});
  ASSERT_TRUE(graph);
  size_t weights = 0;
  for (Op& op : graph->body()) {
    if (const auto constant = dyn_cast<Constant>(op)) weights += static_cast<size_t>(constant.value().size());
  }
  EXPECT_EQ(weights,
            25610152u);  // torchvision's 25,557,032, and the running statistics of its 26,560 normalised channels
  expect_round_trip(*graph);
}

TEST(Zoo, QuantisedIsNearFloat) {
  for (const char* name : {"resnet50", "mobilenet_v2"}) {
    const auto real = built(name), narrow = built(str(name, "_int8"));
    ASSERT_TRUE(real && narrow);
    const auto values = inputs_of(*real, 5);
    const auto comparison = compare(run(*narrow, values)[0], run(*real, values)[0]);
    EXPECT_LT(comparison.relative_max, 0.25) << name;
    EXPECT_GT(comparison.relative_max, 1e-4) << name << ": is it quantised at all?";
  }
}

TEST(Zoo, QuantisedConvolutionsReadIntegers) {
  const auto graph = built("mobilenet_v2_int8");
  ASSERT_TRUE(graph);
  int convolutions = 0;
  for (Op& op : graph->body()) {
    EXPECT_FALSE(op.is("BatchNormalization"));
    if (!op.is("Conv")) continue;
    ++convolutions;
    for (size_t i = 0; i < 3; ++i) {
      const Op* wide = op.operand(i)->producer();
      ASSERT_TRUE(wide && wide->is("DequantizeLinear")) << op.describe() << ", operand " << i;
      const ElementType element = wide->operand(0)->type().element();
      EXPECT_EQ(element, i == 0 ? kU8 : i == 1 ? kI8 : kI32) << op.describe();
      // One scale per output channel for weights, one in all for activations.
      EXPECT_EQ(wide->operand(1)->type().shape().rank(), i == 0 ? 0 : 1) << op.describe();
    }
  }
  EXPECT_EQ(convolutions, 52);
}

TEST(Zoo, UnknownNameGivesAHint) {
  const auto graph = build("resnet5O", kTiny);
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().code(), Code::not_found);
  EXPECT_THAT(graph.error().message(), HasSubstr("did you mean 'resnet50'?"));
}

TEST(Zoo, BatchOutsideItsRangeIsRefused) {
  for (const int64_t batch : {int64_t{0}, int64_t{-1}, int64_t{65537}, INT64_MAX}) {
    const auto graph = build("resnet18", {.size = Size::tiny, .batch = batch});
    ASSERT_FALSE(graph.ok()) << batch;
    EXPECT_EQ(graph.error().code(), Code::invalid_argument);
  }
}

TEST(Zoo, InputsOfUnknownShapeAreRefused) {
  auto graph = parse_graph("graph @g(%x: f32[N,3]) -> %y { %y = Relu %x }");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const auto made = inputs(**graph, 1);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().to_string(), HasSubstr("input 'x'"));
}

TEST(Zoo, WritingBeneathAFileIsAnError) {
  const Folder folder;
  std::ofstream(folder / "taken") << "text";
  const auto graph = built("squeezenet");
  ASSERT_TRUE(graph);
  const auto written = write(*graph, inputs_of(*graph, 1), folder / "taken");
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code(), Code::io);
  EXPECT_THAT(written.error().message(), HasSubstr("taken"));
}

TEST(Net, ErrorsStickAndNameTheLayer) {
  Net net("wrong", 1);
  Net::Scope scope(net, "outer");
  Value* x = net.input("x", {1, 8});
  Value* y = net.add("sum", x, net.weight("w", {3}, 1));  // 8 against 3
  EXPECT_EQ(y, nullptr);
  EXPECT_EQ(net.relu("after", y), nullptr);
  net.output(y, "y");
  const auto graph = net.finish();
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(graph.error().to_string(), HasSubstr("outer.sum"));
}

TEST(Net, FoldedNormalisationIsTheSameFunction) {
  const auto block = [](bool fold) {
    Net net("block", 3, {.fold_batch_norm = fold});
    net.output(net.conv_norm("conv", net.input("image", {1, 3, 9, 9}), 5, {.kernel = 3}), "y");
    return *net.finish();
  };
  const auto plain = block(false), folded = block(true);
  const auto values = inputs_of(*plain, 1);
  const auto comparison = compare(run(*folded, values)[0], run(*plain, values)[0], {.rtol = 1e-4, .atol = 1e-5});
  EXPECT_TRUE(comparison.equal) << comparison.difference;
}

// The numbers of this seed are part of every zoo model: other machines and compilers must give the same.
TEST(Random, IsTheSameEverywhere) {
  const Random random(1, "resnet50");
  EXPECT_EQ(random.bits(0), 0x881713c0be4b2f03u);
  EXPECT_EQ(random.bits(1), 0x380057b90da9fabdu);
  EXPECT_NE(Random(2, "resnet50").bits(0), random.bits(0));
  EXPECT_NE(Random(1, "resnet51").bits(0), random.bits(0));
}

TEST(Random, IsUniform) {
  const Random random(7, "uniform");
  double sum = 0, squares = 0;
  std::array<int, 10> counts{};
  constexpr int kDraws = 100000;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const double v = random.uniform(i);
    ASSERT_GE(v, -1);
    ASSERT_LT(v, 1);
    sum += v;
    squares += v * v;
    ++counts[static_cast<size_t>(random.below(i, 10))];
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.01);
  EXPECT_NEAR(std::sqrt(squares / kDraws), kUniformDeviation, 0.01);
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 10, 500);
}

}  // namespace
}  // namespace tenon::zoo
