// Invalid or hostile models: each gives an error that names the fault; none crashes, hangs or fills the memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include <tenon/ir/builder.hpp>
#include <tenon/onnx/import.hpp>
#include <tenon/onnx/test_data.hpp>
#include <tenon/reference/interpreter.hpp>
#include "onnx/wire.hpp"

namespace tenon {
namespace {

using namespace tenon::wire;
using testing::HasSubstr;

void expect_refused(const Message& file, Code code, std::string_view words, const ImportOptions& options = {}) {
  const auto graph = import_model_bytes(file.span(), options);
  ASSERT_FALSE(graph.ok()) << "expected: " << words;
  EXPECT_EQ(graph.error().code(), code) << graph.error().to_string();
  EXPECT_THAT(graph.error().to_string(), HasSubstr(std::string(words)));
}

Message simple(const std::vector<Message>& nodes, const std::vector<Message>& initializers = {}) {
  return wire::graph({.nodes = nodes,
                      .inputs = {info("x", kFloatElement, {2})},
                      .outputs = {info("y", kFloatElement, {2})},
                      .initializers = initializers});
}

// ---- Files ----

TEST(BadFiles, Empty) { expect_refused(Message(), Code::parse, "no graph"); }

TEST(BadFiles, Garbage) {
  const std::string text = "this is not a model at all, but it is long enough to be read as something";
  const auto graph = import_model_bytes(std::as_bytes(std::span(text)), {}, "noise");
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().code(), Code::parse);
  EXPECT_THAT(graph.error().message(), HasSubstr("noise"));
}

TEST(BadFiles, TruncatedAnywhere) {
  const std::string whole = model(simple({node("Relu", {"x"}, {"y"})})).bytes();
  for (size_t size = 0; size + 1 < whole.size(); ++size) {
    const auto graph = import_model_bytes(std::as_bytes(std::span(whole).first(size)));
    EXPECT_FALSE(graph.ok()) << size;
  }
}

TEST(BadFiles, NotThereFolderAndFifo) {
  const auto folder = std::filesystem::temp_directory_path() / ("tenon_files_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string fifo = (folder / "fifo").string();
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {(folder / "missing.onnx").string(), folder.string(), fifo}) {
    const auto graph = import_model(path);
    ASSERT_FALSE(graph.ok()) << path;
    EXPECT_EQ(graph.error().code(), Code::io) << graph.error().to_string();
    EXPECT_THAT(graph.error().message(), HasSubstr(path));
  }
  std::filesystem::remove_all(folder);
}

TEST(BadFiles, Versions) {
  const Message good = simple({node("Relu", {"x"}, {"y"})});
  expect_refused(model(good, 13, {}, 2), Code::unsupported, "IR version 2");
  expect_refused(model(good, 13, {}, 14), Code::unsupported, "IR version 14");
  expect_refused(model(good, 29), Code::unsupported, "opset 29 of ai.onnx");
  expect_refused(model(good, 0), Code::invalid_argument, "opset 0");
  expect_refused(model(good, -1), Code::invalid_argument, "opset -1");
  expect_refused(Message().number(1, 8).add(7, good), Code::invalid_argument, "no operator set");
  expect_refused(model(simple({node("Relu", {"x"}, {"y"}, {}, "ai.onnx.ml")})), Code::unsupported, "Relu");
  EXPECT_TRUE(import_model_bytes(model(good, 28, {}, 13).span()).ok());
}

TEST(BadFiles, DomainThatIsNotImported) {
  const Message only_ml =
      Message().number(1, 8).add(7, simple({node("Relu", {"x"}, {"y"})})).add(8, opset("ai.onnx.ml", 3));
  expect_refused(only_ml, Code::invalid_argument, "'ai.onnx' is not among");
}

TEST(BadFiles, TextThatIsNotUtf8) {
  const std::string bad = "\xff\xfe";
  expect_refused(model(simple({node("Relu", {"x"}, {bad}), node("Relu", {"x"}, {"y"})})), Code::parse, "UTF-8");
  expect_refused(model(simple({node("Relu", {"x"}, {"y"}, {}, "", bad)})), Code::parse, "UTF-8");
  expect_refused(model(simple({node("Relu", {"x"}, {"y"}, {int_attribute(bad, 1)})})), Code::parse, "UTF-8");
}

// ---- Graphs ----

TEST(BadGraphs, Cycle) {
  expect_refused(model(simple({node("Add", {"x", "b"}, {"a"}, {}, "", "first"),
                               node("Relu", {"a"}, {"b"}, {}, "", "second"), node("Relu", {"b"}, {"y"})})),
                 Code::invalid_argument, "cycle");
  expect_refused(model(simple({node("Add", {"x", "y"}, {"y"})})), Code::invalid_argument, "cycle");
}

TEST(BadGraphs, Names) {
  expect_refused(model(simple({node("Relu", {"nothing"}, {"y"})})), Code::invalid_argument, "\"nothing\"");
  expect_refused(model(simple({node("Relu", {"x"}, {"y"}), node("Neg", {"x"}, {"y"})})), Code::invalid_argument,
                 "\"y\" is made twice");
  expect_refused(model(simple({node("Relu", {"x"}, {"z"})})), Code::invalid_argument, "output \"y\"");
  expect_refused(model(wire::graph({.nodes = {node("Relu", {"x"}, {"y"})},
                                    .inputs = {info("x", kFloatElement, {2}), info("x", kFloatElement, {2})},
                                    .outputs = {info("y")}})),
                 Code::invalid_argument, "\"x\" is made twice");
  expect_refused(model(wire::graph({.nodes = {node("Relu", {"x"}, {"y"})},
                                    .inputs = {info("x", kFloatElement, {2})},
                                    .outputs = {info("y"), info("y")}})),
                 Code::invalid_argument, "\"y\" of graph 'g' is there twice");
}

// The error states where both are, not a consequence: nodes that seem to wait for each other.
TEST(BadGraphs, TwoValuesOfOneName) {
  const auto expect_twice = [](const Message& graph, const std::string& both) {
    expect_refused(model(graph), Code::invalid_argument, "is made twice in one graph: it is " + both + "; ");
  };
  const Message w = tensor<float>("w", kFloatElement, {2}, {1, 2});
  expect_twice(simple({node("Add", {"x", "w"}, {"y"}), node("Relu", {"y"}, {"w"}, {}, "", "again")}, {w}),
               "initializer 0 and output 0 of node 1 Relu 'again'");
  expect_twice(simple({node("Relu", {"w"}, {"w"}), node("Add", {"x", "w"}, {"y"})}, {w}),
               "initializer 0 and output 0 of node 0 Relu");
  expect_twice(simple({node("Relu", {"x"}, {"x"}), node("Neg", {"x"}, {"y"})}), "input 0 and output 0 of node 0 Relu");
  expect_twice(simple({node("Relu", {"x"}, {"y"}), node("Neg", {"y"}, {"y"})}),
               "output 0 of node 0 Relu and output 0 of node 1 Neg");
  expect_twice(simple({node("TopK", {"x", "w"}, {"y", "y"})}), "output 0 of node 0 TopK and output 1 of node 0 TopK");
  expect_twice(simple({node("Add", {"x", "w"}, {"y"})}, {w, w}), "initializer 0 and initializer 1");
  expect_twice(simple({node("Add", {"x", "w"}, {"y"})}, {w}).add(15, Message().add(1, w)),
               "initializer 0 and sparse initializer 0");
  // The value of an input, and another of it.
  const Message x = tensor<float>("x", kFloatElement, {2}, {1, 2});
  EXPECT_TRUE(import_model_bytes(model(simple({node("Relu", {"x"}, {"y"})}, {x})).span()).ok());
  for (const bool kept : {false, true})
    expect_refused(model(simple({node("Relu", {"x"}, {"y"})}, {x, x})), Code::invalid_argument,
                   "it is initializer 0 and initializer 1", {.keep_overridable_inputs = kept});
  const Message f = function("F", {"v"}, {"w"}, {node("Relu", {"v"}, {"v"}), node("Relu", {"v"}, {"w"})});
  expect_refused(model(simple({node("F", {"x"}, {"y"}, {}, "local")}), 13, {f}), Code::invalid_argument,
                 "it is input 0 and output 0 of node 0 Relu");
}

TEST(BadGraphs, DeclaredTypesThatDisagree) {
  expect_refused(model(wire::graph({.nodes = {node("Relu", {"x"}, {"y"})},
                                    .inputs = {info("x", kFloatElement, {2})},
                                    .outputs = {info("y", kFloatElement, {3})}})),
                 Code::invalid_argument, "dim 0 is 2 and 3");
  expect_refused(model(wire::graph({.nodes = {node("Relu", {"x"}, {"y"})},
                                    .inputs = {info("x", kFloatElement, {2})},
                                    .outputs = {info("y", kInt64Element, {2})}})),
                 Code::invalid_argument, "i64");
  expect_refused(
      model(wire::graph(
          {.nodes = {node("Relu", {"x"}, {"y"})}, .inputs = {info("x", kFloatElement, {-2})}, .outputs = {info("y")}})),
      Code::invalid_argument, "is -2");
  expect_refused(model(wire::graph(
                     {.nodes = {node("Relu", {"x"}, {"y"})}, .inputs = {info("x", 99, {2})}, .outputs = {info("y")}})),
                 Code::invalid_argument, "number 99");
}

TEST(BadGraphs, ErrorsNameTheNode) {
  const auto graph = import_model_bytes(
      model(simple({node("Relu", {"x"}, {"a"}), node("Add", {"a"}, {"y"}, {}, "", "the/add")})).span());
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(graph.error().to_string(), HasSubstr("node 1 Add 'the/add'"));
}

// If inside If, `levels` deep.
Message nested_ifs(int levels) {
  Message inner = wire::graph({.nodes = {node("Relu", {"x"}, {"r"})}, .inputs = {}, .outputs = {info("r")}});
  for (int level = 1; level < levels; ++level) {
    inner =
        wire::graph({.nodes = {node("If", {"c"}, {"r"},
                                    {graph_attribute("then_branch", inner),
                                     graph_attribute("else_branch", wire::graph({.nodes = {node("Neg", {"x"}, {"r"})},
                                                                                 .inputs = {},
                                                                                 .outputs = {info("r")}}))})},
                     .inputs = {},
                     .outputs = {info("r")}});
  }
  return model(
      wire::graph({.nodes = {node("If", {"c"}, {"y"},
                                  {graph_attribute("then_branch", inner), graph_attribute("else_branch", inner)})},
                   .inputs = {info("c", kBoolElement, {}), info("x", kFloatElement, {2})},
                   .outputs = {info("y", kFloatElement, {2})}}));
}

TEST(BadGraphs, NestingUpToTheCap) {
  const ImportOptions options{.allow_unknown_ops = true};
  for (const int levels : {63, 64}) {
    const auto graph = import_model_bytes(nested_ifs(levels).span(), options);
    EXPECT_TRUE(graph.ok()) << levels << ": " << graph.error().to_string();
  }
  for (const int levels : {65, 200})
    expect_refused(nested_ifs(levels), Code::resource_exhausted, "more than 64 deep", options);
  // Beyond what the parser itself takes.
  expect_refused(nested_ifs(1000), Code::parse, "nested more than 1000 messages deep", options);
}

TEST(BadGraphs, MissingBranch) {
  expect_refused(model(wire::graph(
                     {.nodes = {node("If", {"c"}, {"y"},
                                     {graph_attribute("then_branch", wire::graph({.nodes = {node("Relu", {"x"}, {"r"})},
                                                                                  .inputs = {},
                                                                                  .outputs = {info("r")}}))})},
                      .inputs = {info("c", kBoolElement, {}), info("x", kFloatElement, {2})},
                      .outputs = {info("y", kFloatElement, {2})}})),
                 Code::invalid_argument, "no graph 'else_branch'", {.allow_unknown_ops = true});
}

// Although a run might not execute it.
TEST(BadGraphs, RegionsWithinBranchesThatDoNotFit) {
  const auto branch = [](const Message& made, const std::vector<Message>& inputs = {}) {
    return wire::graph({.nodes = {made}, .inputs = inputs, .outputs = {info("r")}});
  };
  const Message relu = node("Relu", {"x"}, {"r"}), takes_one = branch(node("Neg", {"b"}, {"r"}), {info("b")});
  const Message inner =
      node("If", {"c"}, {"r"},
           {graph_attribute("then_branch", branch(relu)), graph_attribute("else_branch", takes_one)}, "", "the/inner");
  const Message file = model(wire::graph(
      {.nodes = {node("If", {"c"}, {"y"},
                      {graph_attribute("then_branch", branch(inner)), graph_attribute("else_branch", branch(relu))}, "",
                      "the/outer")},
       .inputs = {info("c", kBoolElement, {}), info("x", kFloatElement, {2})},
       .outputs = {info("y", kFloatElement, {2})}}));
  expect_refused(file, Code::invalid_argument, "region 1 of If 'the/inner'");
  expect_refused(file, Code::invalid_argument, "node 0 If 'the/outer'");
}

// ---- Functions ----

Message calls(std::string_view name, const std::vector<Message>& functions) {
  return model(simple({node(name, {"x"}, {"y"}, {}, "local")}), 13, functions);
}

TEST(BadFunctions, Recursion) {
  expect_refused(calls("F", {function("F", {"v"}, {"w"}, {node("F", {"v"}, {"w"}, {}, "local")})}),
                 Code::invalid_argument, "'local.F' calls itself");
  expect_refused(calls("F", {function("F", {"v"}, {"w"}, {node("G", {"v"}, {"w"}, {}, "local")}),
                             function("G", {"v"}, {"w"}, {node("F", {"v"}, {"w"}, {}, "local")})}),
                 Code::invalid_argument, "calls itself");
  const Message branch =
      wire::graph({.nodes = {node("F", {"v"}, {"r"}, {}, "local")}, .inputs = {}, .outputs = {info("r")}});
  expect_refused(
      calls("F", {function("F", {"v"}, {"w"},
                           {node("If", {"v"}, {"w"},
                                 {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)})})}),
      Code::invalid_argument, "calls itself", {.allow_unknown_ops = true});
}

// F_k calls F_(k-1) twice.
Message fan_out(int levels) {
  std::vector<Message> functions = {function("F0", {"v"}, {"w"}, {node("Relu", {"v"}, {"w"})})};
  for (int level = 1; level <= levels; ++level) {
    const std::string below = "F" + std::to_string(level - 1);
    functions.push_back(function("F" + std::to_string(level), {"v"}, {"w"},
                                 {node(below, {"v"}, {"t"}, {}, "local"), node(below, {"t"}, {"w"}, {}, "local")}));
  }
  return calls("F" + std::to_string(levels), functions);
}

TEST(BadFunctions, FanOut) {
  for (const int levels : {16, 40, 63}) {
    const auto start = std::chrono::steady_clock::now();
    expect_refused(fan_out(levels), Code::resource_exhausted, "inlining its functions makes");
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    EXPECT_LT(took.count(), 100) << levels;
  }
  const auto graph = import_model_bytes(fan_out(8).span());
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  EXPECT_EQ((*graph)->body().op_count(), 256u);
  expect_refused(fan_out(8), Code::resource_exhausted, "256 nodes", {.max_inlined_nodes = 255});
  EXPECT_TRUE(import_model_bytes(fan_out(8).span(), {.max_inlined_nodes = 256}).ok());
}

TEST(BadFunctions, ChainsThatAreTooLong) {
  std::vector<Message> functions = {function("F0", {"v"}, {"w"}, {node("Relu", {"v"}, {"w"})})};
  for (int level = 1; level <= 5000; ++level) {
    functions.push_back(function("F" + std::to_string(level), {"v"}, {"w"},
                                 {node("F" + std::to_string(level - 1), {"v"}, {"w"}, {}, "local")}));
  }
  expect_refused(calls("F5000", functions), Code::resource_exhausted, "more than 64 deep");
}

TEST(BadFunctions, Calls) {
  const Message f = function("F", {"v"}, {"w"}, {node("Relu", {"v"}, {"w"})});
  expect_refused(model(simple({node("F", {"x", "x"}, {"y"}, {}, "local")}), 13, {f}), Code::invalid_argument,
                 "the call has 2 inputs");
  expect_refused(model(simple({node("F", {"x"}, {"y", "z"}, {}, "local")}), 13, {f}), Code::invalid_argument,
                 "2 outputs");
  expect_refused(calls("F", {f, f}), Code::invalid_argument, "is there twice");
  expect_refused(calls("F", {function("F", {"v"}, {"missing"}, {node("Relu", {"v"}, {"w"})})}), Code::invalid_argument,
                 "\"missing\"");
  Message required = f;
  required.text(6, "alpha");
  expect_refused(calls("F", {required}), Code::invalid_argument, "lacks attribute 'alpha'");
}

// ---- Tensors ----

void expect_tensor_refused(const Message& tensor, Code code, std::string_view words) {
  expect_refused(model(simple({node("Add", {"x", "w"}, {"y"})}, {tensor})), code, words);
}

TEST(BadTensors, Sizes) {
  expect_tensor_refused(wire::tensor<float>("w", kFloatElement, {3}, {1, 2}), Code::invalid_argument,
                        "raw_data has 8 bytes, f32[3] takes 12");
  expect_tensor_refused(wire::tensor<float>("w", kFloatElement, {1}, {1, 2}), Code::invalid_argument,
                        "raw_data has 8 bytes");
  expect_tensor_refused(wire::tensor<float>("w", kFloatElement, {-2}, {1, 2}), Code::invalid_argument, "-2");
  expect_tensor_refused(wire::tensor<float>("w", kFloatElement, {int64_t{1} << 32, int64_t{1} << 32}, {}),
                        Code::resource_exhausted, "4294967296");
  expect_tensor_refused(wire::tensor<float>("w", kFloatElement, {int64_t{1} << 40}, {1}), Code::invalid_argument,
                        "raw_data has 4 bytes");
  expect_tensor_refused(wire::tensor<float>("w", 27, {1}, {1}), Code::invalid_argument, "number 27");
  expect_tensor_refused(wire::tensor<float>("w", 0, {1}, {1}), Code::invalid_argument, "number 0");
  expect_tensor_refused(wire::tensor<char>("w", 8, {1}, {'a'}), Code::invalid_argument, "strings in raw_data");
  // No raw data, and too few in the typed field.
  expect_tensor_refused(Message().number(1, 3).number(2, kFloatElement).text(8, "w").real(4, 1.0f),
                        Code::invalid_argument, "float_data has 1 entries, 3 are needed");
  expect_tensor_refused(Message().number(1, int64_t{1} << 40).number(2, kFloatElement).text(8, "w"),
                        Code::invalid_argument, "0 entries");
  expect_tensor_refused(
      wire::tensor<float>("w", kFloatElement, {2}, {1, 2}).add(3, Message().number(1, 0).number(2, 8)),
      Code::unsupported, "segment");
}

TEST(BadTensors, BitsBehindTheEndAndOddBooleans) {
  const std::vector<uint8_t> packed = {0x21, 0xf3};  // three elements of u4: 1, 2, 3
  const auto four_bit =
      import_model_bytes(model(wire::graph({.nodes = {},
                                            .inputs = {},
                                            .outputs = {info("w")},
                                            .initializers = {wire::tensor<uint8_t>("w", 21, {3}, packed)}}),
                               21)
                             .span());
  ASSERT_TRUE(four_bit.ok()) << four_bit.error().to_string();
  EXPECT_EQ(constant_of((*four_bit)->body().output(0))->data()[1], std::byte{0x03});
  const auto booleans = import_model_bytes(
      model(wire::graph({.nodes = {},
                         .inputs = {},
                         .outputs = {info("w")},
                         .initializers = {wire::tensor<uint8_t>("w", kBoolElement, {3}, {0, 1, 200})}}))
          .span());
  ASSERT_TRUE(booleans.ok());
  EXPECT_EQ(constant_of((*booleans)->body().output(0))->data()[2], std::byte{1});
}

// A hundred bytes that request four terabytes: refused when prepared or run, before any memory is requested.
TEST(BadTensors, ConstantOfShapeBeyondTheBudget) {
  const Message file =
      model(wire::graph({.nodes = {node("ConstantOfShape", {"s"}, {"y"})},
                         .inputs = {},
                         .outputs = {info("y")},
                         .initializers = {wire::tensor<int64_t>("s", kInt64Element, {1}, {int64_t{1} << 40})}}));
  const auto graph = import_model_bytes(file.span());
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const auto runs = Interpreter::prepare(**graph);
  const auto outputs = runs.ok() ? (*runs)->run({}) : Result<std::vector<Datum>>(runs.error());
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().code(), Code::resource_exhausted) << outputs.error().to_string();
}

TEST(BadTensors, SparseIndices) {
  const auto sparse = [](const std::vector<int64_t>& indices) {
    const Message tensor = Message()
                               .add(1, wire::tensor<float>("w", kFloatElement, {2}, {1, 2}))
                               .add(2, wire::tensor<int64_t>("", kInt64Element, {2}, indices))
                               .number(3, 4);
    return model(Message().add(15, tensor).text(2, "g").add(12, info("w")));
  };
  const auto good = import_model_bytes(sparse({1, 3}).span());
  ASSERT_TRUE(good.ok()) << good.error().to_string();
  const auto dense = constant_of((*good)->body().output(0))->as<float>();
  EXPECT_EQ(std::vector<float>(dense.begin(), dense.end()), (std::vector<float>{0, 1, 0, 2}));
  expect_refused(sparse({1, 4}), Code::invalid_argument, "outside [4]");
  expect_refused(sparse({-1, 0}), Code::invalid_argument, "outside [4]");
}

// ---- External data ----

class ExternalFiles : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() / ("tenon_external_" + std::to_string(getpid()));
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(folder() / "sub");
    write(root_ / "secret.bin");
    write(folder() / "data.bin");
    write(folder() / "sub" / "data.bin");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::filesystem::path folder() const { return root_ / "model"; }
  static void write(const std::filesystem::path& path) {
    const float values[] = {1, 2, 3, 4};
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(values), sizeof values);
  }

  // A model whose w, f32[2], is stored at `location`.
  Result<std::unique_ptr<Graph>> load(std::string_view location, std::string_view offset = "",
                                      std::string_view length = "") const {
    Message tensor = Message().number(1, 2).number(2, kFloatElement).text(8, "w").number(14, 1);
    const auto entry = [&](std::string_view key, std::string_view value) {
      if (!value.empty() || key == "location") tensor.add(13, Message().text(1, key).text(2, value));
    };
    entry("location", location);
    entry("offset", offset);
    entry("length", length);
    const std::string path = (folder() / "model.onnx").string();
    const Message file = model(simple({node("Add", {"x", "w"}, {"y"})}, {tensor}));
    std::ofstream(path, std::ios::binary) << file.bytes();
    return import_model(path);
  }
  void expect_loads(std::string_view location, std::string_view offset, float first) const {
    const auto graph = load(location, offset);
    ASSERT_TRUE(graph.ok()) << graph.error().to_string();
    EXPECT_EQ(constant_of((*graph)->body().last()->operand(1))->as<float>()[0], first);
  }
  void expect_refused(std::string_view location, std::string_view words, std::string_view offset = "",
                      std::string_view length = "") const {
    const auto graph = load(location, offset, length);
    ASSERT_FALSE(graph.ok()) << location;
    EXPECT_THAT(graph.error().to_string(), HasSubstr(std::string(words)));
  }

  std::filesystem::path root_;
};

TEST_F(ExternalFiles, InTheFolderAndBelow) {
  expect_loads("data.bin", "", 1);
  expect_loads("data.bin", "8", 3);
  expect_loads("data.bin", "4", 2);  // at an address that floats may lie at, but not in the middle of 8 bytes
  expect_loads("sub/data.bin", "", 1);
  expect_loads("./sub//data.bin", "", 1);
}

TEST_F(ExternalFiles, OutsideTheFolder) {
  expect_refused("../secret.bin", "'..'");
  expect_refused("sub/../../secret.bin", "'..'");
  expect_refused("sub/../data.bin", "'..'");
  expect_refused((root_ / "secret.bin").string(), "absolute");
  expect_refused(std::string_view("data.bin\0.txt", 13), "NUL");
  expect_refused("", "empty");
  expect_refused("missing.bin", "No such file");
  expect_refused("sub", "not a regular file");
}

TEST_F(ExternalFiles, Links) {
  std::filesystem::create_symlink(root_ / "secret.bin", folder() / "leaf.bin");
  std::filesystem::create_symlink("data.bin", folder() / "inside.bin");
  std::filesystem::create_directory_symlink(root_, folder() / "parent");
  std::filesystem::create_hard_link(root_ / "secret.bin", folder() / "hard.bin");
  expect_refused("leaf.bin", "symbolic link");
  expect_refused("inside.bin", "symbolic link");
  expect_refused("parent/secret.bin", "symbolic link");
  expect_refused("hard.bin", "2 names");
}

// Makes openat2 fail as on kernels before 5.6 and in some sandboxes, for this process only.
bool forbid_openat2() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_F(ExternalFiles, WithoutOpenat2) {
  std::filesystem::create_symlink(root_ / "secret.bin", folder() / "leaf.bin");
  std::filesystem::create_directory_symlink(root_, folder() / "parent");
  std::filesystem::create_hard_link(root_ / "secret.bin", folder() / "hard.bin");
  constexpr int kNoFilter = 100;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!forbid_openat2()) _exit(kNoFilter);
    int wrong = 0;
    for (const char* good : {"data.bin", "sub/data.bin", "./sub//data.bin"}) wrong += !load(good).ok();
    for (const char* bad :
         {"leaf.bin", "parent/secret.bin", "hard.bin", "../secret.bin", "sub", "missing.bin", "data.bin/x"})
      wrong += load(bad).ok();
    _exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoFilter) GTEST_SKIP() << "this machine allows no seccomp filter";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "so many locations were judged wrongly";
}

TEST_F(ExternalFiles, OffsetsAndLengths) {
  expect_refused("data.bin", "the 8 bytes from offset 12 of 'data.bin', which has 16", "12");
  expect_refused("data.bin", "from offset 17", "17");
  expect_refused("data.bin", "no number", "-1");
  expect_refused("data.bin", "no number", "99999999999999999999999");
  expect_refused("data.bin", "from offset 18446744073709551615", "18446744073709551615");
  expect_refused("data.bin", "has length 4", "0", "4");
  expect_refused("data.bin", "no number", "0", "8x");
}

TEST_F(ExternalFiles, FromMemoryOnlyWithAFolder) {
  const Message tensor = Message()
                             .number(1, 2)
                             .number(2, kFloatElement)
                             .text(8, "w")
                             .number(14, 1)
                             .add(13, Message().text(1, "location").text(2, "data.bin"));
  const Message file = model(simple({node("Add", {"x", "w"}, {"y"})}, {tensor}));
  const auto without = import_model_bytes(file.span());
  ASSERT_FALSE(without.ok());
  EXPECT_THAT(without.error().to_string(), HasSubstr("no folder of external data"));
  const auto with = import_model_bytes(file.span(), {.external_data_folder = folder().string()});
  EXPECT_TRUE(with.ok()) << with.error().to_string();
}

// ---- Test data ----

// What is written as test data can be read back: nested sequences, optionals with a value or empty.
TEST_F(ExternalFiles, TestDataOfEveryKind) {
  const std::string path = (root_ / "value.pb").string();
  const Type tensors(kF32, Shape()), list = Type::sequence(tensors);
  const Datum two(Tensor::of<float>({2}, {1, 2})), one(Tensor::of<float>({1}, {3}));
  const Datum both = Datum::sequence({two, one}, tensors), none = Datum::sequence({}, tensors);
  const auto again = [&](const Datum& value, const Type& type) {
    const auto written = write_test_data(path, value, type, "v");
    EXPECT_TRUE(written.ok()) << written.error().to_string();
    auto read = read_test_data(path, type);
    EXPECT_TRUE(read.ok()) << read.error().to_string();
    return read.ok() ? *std::move(read) : Datum();
  };
  const auto expect_both = [&](const Datum& read) {
    ASSERT_TRUE(read.is_sequence());
    ASSERT_EQ(read.elements().size(), 2u);
    EXPECT_TRUE(read.elements()[0].tensor().identical(two.tensor()));
    EXPECT_TRUE(read.elements()[1].tensor().identical(one.tensor()));
  };
  EXPECT_TRUE(again(two, tensors).tensor().identical(two.tensor()));
  expect_both(again(both, list));
  EXPECT_TRUE(again(none, list).elements().empty());
  const Datum nested = again(Datum::sequence({none, both}, list), Type::sequence(list));
  ASSERT_EQ(nested.elements().size(), 2u);
  EXPECT_TRUE(nested.elements()[0].elements().empty());
  expect_both(nested.elements()[1]);
  EXPECT_TRUE(again(two, Type::optional(tensors)).tensor().identical(two.tensor()));
  EXPECT_TRUE(again(Datum(), Type::optional(tensors)).absent());
  expect_both(again(both, Type::optional(list)));
  const Datum optionals = again(Datum::sequence({two, one}, tensors), Type::sequence(Type::optional(tensors)));
  expect_both(optionals);
  EXPECT_FALSE(write_test_data(path, Datum(), tensors).ok());
}

TEST_F(ExternalFiles, TestData) {
  const std::string path = (root_ / "tensor.pb").string();
  const Tensor tensor = Tensor::of<int64_t>({2, 2}, {1, -2, 3, 4});
  ASSERT_TRUE(write_test_data(path, tensor, "t").ok());
  const auto back = read_test_data(path, Type(kI64, Shape()));
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_TRUE(back->tensor().identical(tensor));
  EXPECT_FALSE(read_test_data((root_ / "none.pb").string(), Type()).ok());

  const Message sequence = Message()
                               .number(2, 1)
                               .add(3, wire::tensor<float>("", kFloatElement, {1}, {5}))
                               .add(3, wire::tensor<float>("", kFloatElement, {2}, {6, 7}));
  std::ofstream(path, std::ios::binary) << sequence.bytes();
  const auto list = read_test_data(path, Type::sequence(Type(kF32, Shape())));
  ASSERT_TRUE(list.ok()) << list.error().to_string();
  ASSERT_EQ(list->elements().size(), 2u);
  EXPECT_EQ(list->elements()[1].tensor().as<float>()[1], 7.0f);

  std::ofstream(path, std::ios::binary) << Message().number(2, 0).bytes();
  const auto nothing = read_test_data(path, Type::optional(Type(kF32, Shape())));
  ASSERT_TRUE(nothing.ok()) << nothing.error().to_string();
  EXPECT_TRUE(nothing->absent());
}

}  // namespace
}  // namespace tenon
