// Layouts from a target file to the results of a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include <tenon/compile/compile.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/value_layout.hpp>
#include <tenon/runtime/thread_pool.hpp>
#include <tenon/support/hash.hpp>

#include <support_lib/layout_check.hpp>

#include "zoo/zoo.hpp"

namespace tenon::testing {
namespace {

using ::testing::HasSubstr;
using Kind = LayoutStep::Kind;

std::string fixture(const std::string& name) { return TENON_SOURCE_DIR "/tests/fixtures/layout/" + name + ".yaml"; }

std::unique_ptr<Graph> tiny(const std::string& model) {
  auto graph = zoo::build(model, {.size = zoo::Size::tiny});
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return *std::move(graph);
}

std::unique_ptr<CompiledModel> compiled(std::unique_ptr<Graph> graph, const std::string& target) {
  TargetRegistry registry;
  auto model = compile(std::move(graph), registry, {.targets = {target}});
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  return model.ok() ? *std::move(model) : nullptr;
}

// The largest difference between the two models' outputs, with NaN in padding.
double compare(const CompiledModel& plain, const CompiledModel& laid, std::span<const Datum> inputs) {
  const auto wanted = plain.run(inputs), got = laid.run(inputs);
  EXPECT_TRUE(wanted.ok()) << wanted.error().to_string();
  EXPECT_TRUE(got.ok()) << got.error().to_string();
  if (!wanted.ok() || !got.ok()) return INFINITY;
  double most = 0;
  for (size_t i = 0; i < wanted->size(); ++i) {
    most = std::max(most, difference((*wanted)[i].tensor(), (*got)[i].tensor()));
  }
  return most;
}

class Layouts : public ::testing::Test {
 protected:
  void SetUp() override { setenv("TENON_POISON_PADDING", "nan", 1); }
  void TearDown() override { unsetenv("TENON_POISON_PADDING"); }
};

TEST_F(Layouts, ResNetHasReordersAtItsEdgesOnly) {
  const auto inputs = zoo::inputs(*tiny("resnet18"), 1);
  ASSERT_TRUE(inputs.ok());
  const auto plain = compiled(tiny("resnet18"), "reference");
  EXPECT_TRUE(plain->layouts().empty());

  const auto nchw = compiled(tiny("resnet18"), fixture("nchw"));
  EXPECT_EQ(nchw->layouts().to_string(), "");
  EXPECT_EQ(compare(*plain, *nchw, *inputs), 0);

  const auto nhwc = compiled(tiny("resnet18"), fixture("nhwc"));
  // One reorder of the image at the beginning; at the end there is one pixel, for which NHWC equals NCHW.
  EXPECT_EQ(nhwc->layouts().count(Kind::reorder), 1u) << nhwc->layouts().to_string();
  EXPECT_EQ(nhwc->layouts().count(Kind::scrub), 0u);
  EXPECT_GT(nhwc->layouts().count(Kind::constant), 10u);
  EXPECT_TRUE(nhwc->layouts().proven);
  EXPECT_GT(nhwc->layouts().kernel_cost, 0);
  EXPECT_EQ(nhwc->layouts().steps[0].tensor, nhwc->inputs()[0].name);
  // The reference computes a kernel that reads no padding on the elements, in the same order as for the plain graph.
  EXPECT_EQ(compare(*plain, *nhwc, *inputs), 0);

  const auto blocked = compiled(tiny("resnet18"), fixture("nchw16c"));
  EXPECT_LE(blocked->layouts().count(Kind::reorder), 2u) << blocked->layouts().to_string();
  EXPECT_EQ(blocked->layouts().count(Kind::scrub), 0u);
  // Sums include padded channels, so their terms are grouped differently.
  EXPECT_LE(compare(*plain, *blocked, *inputs), 1e-5);
}

TEST_F(Layouts, EveryModelOfTheZooMeansTheSame) {
  int laid_out = 0;
  for (const zoo::ModelInfo& info : zoo::models()) {
    SCOPED_TRACE(info.name);
    const auto inputs = zoo::inputs(*tiny(info.name), 1);
    if (!inputs.ok()) continue;  // no static shape
    const auto plain = compiled(tiny(info.name), "reference");
    for (const char* target : {"nhwc", "nchw16c"}) {
      SCOPED_TRACE(target);
      const auto laid = compiled(tiny(info.name), fixture(target));
      ASSERT_NE(laid, nullptr);
      laid_out += !laid->layouts().empty();
      EXPECT_LE(compare(*plain, *laid, *inputs), 1e-4);
    }
  }
  EXPECT_GE(laid_out, 8);
}

TEST_F(Layouts, NetworksHaveReordersAtTheirEdgesOnly) {
  for (const char* name : {"resnet18", "resnet50", "mobilenet_v2"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(compiled(tiny(name), fixture("nchw"))->layouts().count(Kind::reorder), 0u);
    const auto nhwc = compiled(tiny(name), fixture("nhwc"));
    EXPECT_LE(nhwc->layouts().count(Kind::reorder), 2u) << nhwc->layouts().to_string();
    EXPECT_GE(nhwc->layouts().count(Kind::reorder), 1u);
    EXPECT_EQ(nhwc->layouts().count(Kind::scrub), 0u);
    EXPECT_TRUE(nhwc->layouts().proven);
    std::printf("%s: NCHW only 0 reorders, NHWC only %zu of %lld bytes\n", name, nhwc->layouts().count(Kind::reorder),
                static_cast<long long>(nhwc->layouts().bytes()));
  }
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_F(Layouts, ArtefactsCarryThemAndAreRefusedWhereTheyDiffer) {
  auto graph = tiny("resnet18");
  ASSERT_TRUE(set_layout(*graph, graph->body().input(0)->name(), "NHWC").ok());
  const auto inputs = zoo::inputs(*graph, 1);
  const auto model = compiled(std::move(graph), "reference");
  ASSERT_EQ(model->layouts().count(Kind::reorder), 1u);
  const std::string path = ::testing::TempDir() + "tenon_layouts_" + std::to_string(::getpid());
  const auto saved = model->save(path);
  ASSERT_TRUE(saved.ok()) << saved.error().to_string();
  TargetRegistry registry;
  const auto loaded = CompiledModel::load(path, registry);
  ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
  EXPECT_EQ((*loaded)->layouts().steps, model->layouts().steps);
  EXPECT_EQ((*loaded)->layouts().to_string(), model->layouts().to_string());
  EXPECT_EQ(compare(*model, **loaded, *inputs), 0);

  // As from a Tenon version with a different NHWC: the text is the same, its map is not. The file's hash is valid.
  std::string other = contents(path);
  const size_t at = other.find(" map 0x");
  ASSERT_NE(at, std::string::npos);
  char& digit = other[at + 7];
  digit = digit == '1' ? '2' : '1';
  constexpr size_t kHeader = 32, kHash = 24;
  const uint64_t hash = hash_bytes(std::as_bytes(std::span(other).subspan(kHeader)));
  std::memcpy(other.data() + kHash, &hash, sizeof hash);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << other;
  const auto refused = CompiledModel::load(path, registry);
  std::remove(path.c_str());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().to_string(), HasSubstr("has the map 0x"));
  EXPECT_THAT(refused.error().to_string(), HasSubstr("write it again with this version"));
  EXPECT_THAT(refused.error().to_string(), HasSubstr(path));
}

// Layouts that are already in the graph, on values that optimisation replaces.
TEST_F(Layouts, FoldedValuesKeepTheirPins) {
  auto graph = parse_graph(R"(graph @g(%x: f32[2,6]) -> (%y) {
    %a = Constant {value = splat<f32[2,6]: 2>}
    %w = Add %a, %a : f32[2,6] in "CN{4n}" dims NC pinned
    %y = Mul %x, %w
  })");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const auto model = compiled(*std::move(graph), "reference");
  const std::string path = ::testing::TempDir() + "tenon_pins_" + std::to_string(::getpid());
  ASSERT_TRUE(model->save(path).ok());
  EXPECT_THAT(contents(path), HasSubstr("in \"CN{4n}\""));
  EXPECT_THAT(contents(path), HasSubstr("pinned"));
  std::remove(path.c_str());
}

TEST_F(Layouts, PinnedValuesAreServedOnAnyTarget) {
  auto graph = tiny("resnet18");
  const std::string name = graph->body().input(0)->name();
  ASSERT_TRUE(set_layout(*graph, name, "NHWC").ok());
  const auto inputs = zoo::inputs(*graph, 1);
  const auto plain = compiled(tiny("resnet18"), "reference");
  const auto pinned = compiled(graph->clone(), "reference");
  ASSERT_EQ(pinned->layouts().count(Kind::reorder), 1u);
  EXPECT_EQ(pinned->layouts().steps[0].from, "NHWC");
  EXPECT_EQ(compare(*plain, *pinned, *inputs), 0);
  const auto fitting = compiled(std::move(graph), fixture("nhwc"));
  EXPECT_EQ(fitting->layouts().count(Kind::reorder), 0u) << fitting->layouts().to_string();
  EXPECT_EQ(compare(*plain, *fitting, *inputs), 0);
}

}  // namespace
}  // namespace tenon::testing
