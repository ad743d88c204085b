#include <tenon/onnx/export.hpp>

#include <gtest/gtest.h>

#include <filesystem>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/onnx/import.hpp>
#include "conformance.hpp"

namespace tenon {
namespace {

std::unique_ptr<Graph> again(const Graph& graph) {
  const auto bytes = export_model_bytes(graph);
  EXPECT_TRUE(bytes.ok()) << bytes.error().to_string();
  if (!bytes.ok()) return nullptr;
  auto back = import_model_bytes(std::as_bytes(std::span(*bytes)));
  EXPECT_TRUE(back.ok()) << back.error().to_string() << "\n" << print(graph);
  return back.ok() ? *std::move(back) : nullptr;
}

// Import, export, import: the same graph. Values without a name get one when written, so names are compared from then
// on.
void expect_round_trip(const Graph& graph, const std::string& what) {
  const auto once = again(graph);
  const auto twice = once ? again(*once) : nullptr;
  if (!twice) {
    ADD_FAILURE() << what;
    return;
  }
  std::string difference;
  EXPECT_TRUE(same_graph(graph, *once, {}, &difference)) << what << ": " << difference << "\n"
                                                           << print(graph) << print(*once);
  EXPECT_TRUE(same_graph(*once, *twice, {.names = true}, &difference)) << what << ": " << difference << "\n"
                                                                         << print(*once) << print(*twice);
}

std::unique_ptr<Graph> parsed(std::string_view text) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? *std::move(graph) : nullptr;
}

// Every backend case that can be imported comes back equal, names included.
TEST(RoundTrip, AllBackendCases) {
  const auto folder = conformance::default_folder(TENON_BESIDE);
  ASSERT_TRUE(folder.ok()) << folder.error().to_string();
  const auto cases = conformance::find_cases(*folder);
  ASSERT_TRUE(cases.ok()) << cases.error().to_string();
  size_t compared = 0;
  for (const auto& one : *cases) {
    const auto graph = import_model(one.model);
    if (!graph.ok()) continue;  // the conformance test tells why
    expect_round_trip(**graph, one.name);
    ++compared;
  }
  EXPECT_GT(compared, 100u);
}

TEST(RoundTrip, Properties) {
  Graph graph("net");
  Value* x = graph.body().add_input("x", Type(kF32, Shape({Dim(Expr::symbol("batch")), 3})));
  graph.body().add_output(x, "x");
  graph.properties() = {{"producer_name", "someone"}, {"producer_version", "1.2"}, {"domain", "d"},
                        {"model_version", "7"},       {"doc_string", "text"},      {"graph.doc_string", "more"},
                        {"metadata.key", "value"}};
  const auto back = again(graph);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->name(), "net");
  for (const auto& [key, text] : graph.properties()) EXPECT_EQ(back->properties()[key], text) << key;
  EXPECT_EQ(back->properties()["opset.ai.onnx"], "28");
  EXPECT_EQ(back->properties()["ir_version"], "13");
  EXPECT_EQ(back->body().input(0)->type().to_string(), "f32[batch,3]");
}

TEST(Export, MakesNamesUnique) {
  const auto graph = parsed("graph @g(%x: f32[2]) -> (%y) { %a = Neg %x : f32[2]\n %y = Neg %a : f32[2] }");
  ASSERT_TRUE(graph);
  for (Op& op : graph->body()) op.result()->set_name("same");
  const auto back = again(*graph);
  ASSERT_TRUE(back);
  EXPECT_TRUE(same_graph(*graph, *back));
  EXPECT_EQ(back->body().output_name(0), "y");
  EXPECT_EQ(back->body().output(0)->name(), "y");
}

TEST(Export, PutsAnIdentityBeforeAnOutputWithoutAValueOfItsOwn) {
  const auto graph = parsed("graph @g(%x: f32[2]) -> (first: %x, second: %x) {}");
  ASSERT_TRUE(graph);
  const auto back = again(*graph);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->body().op_count(), 2u);
  EXPECT_EQ(back->body().output_name(0), "first");
  EXPECT_EQ(back->body().output_name(1), "second");
}

TEST(Export, RefusesTwoOutputsOfOneName) {
  Graph graph("g");
  Value* x = graph.body().add_input("x", Type(kF32, Shape({2})));
  graph.body().add_output(x, "y");
  graph.body().add_output(x, "y");
  const auto bytes = export_model_bytes(graph);
  ASSERT_FALSE(bytes.ok());
  EXPECT_NE(bytes.error().message().find("\"y\""), std::string::npos);
}

TEST(Export, RefusesElementTypesThatOnnxLacks) {
  Graph graph("g");
  Value* x = graph.body().add_input("x", Type(ElementType(ElementKind::sint, 3), Shape({2})));
  graph.body().add_output(x, "x");
  const auto bytes = export_model_bytes(graph);
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.error().code(), Code::unsupported);
  EXPECT_NE(bytes.error().message().find("i3"), std::string::npos);
}

TEST(Export, ExternalData) {
  const auto folder = std::filesystem::temp_directory_path() / ("tenon_export_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  Graph graph("g");
  Builder b(graph.body());
  std::vector<float> weights(5000);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i);
  Value* large = b.constant(Tensor::of<float>({5000}, weights), "large");
  Value* larger = b.constant(Tensor::of<float>({2, 5000},
                                               [&] {
                                                 auto w = weights;
                                                 w.insert(w.end(), weights.begin(), weights.end());
                                                 return w;
                                               }()),
                             "larger");
  Value* small = b.constant(Tensor::scalar<float>(1), "small");
  for (Value* value : {large, larger, small}) graph.body().add_output(value, value->name());
  const std::string path = (folder / "model.onnx").string();
  const auto written = export_model(graph, path, {.external_data_threshold = 1000});
  ASSERT_TRUE(written.ok()) << written.error().to_string();
  EXPECT_LT(std::filesystem::file_size(path), 1000u);
  EXPECT_EQ(std::filesystem::file_size(path + ".data"), 20480u + 40000u);
  const auto back = import_model(path);
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  std::string difference;
  EXPECT_TRUE(same_graph(graph, **back, {.names = true}, &difference)) << difference;
  EXPECT_FALSE(export_model(graph, path, {.external_data_threshold = 1000, .external_data_file = "../elsewhere"}).ok());
  std::filesystem::remove_all(folder);
}

TEST(Export, FileThatCannotBeWritten) {
  Graph graph("g");
  const auto written = export_model(graph, "/nowhere/at/all/model.onnx");
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code(), Code::io);
}

}  // namespace
}  // namespace tenon
