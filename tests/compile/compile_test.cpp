#include <tenon/compile/compile.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <support_lib/spoilt.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/support/hash.hpp>
#include <tenon/target/load.hpp>
#include <tenon/tensor/compare.hpp>

namespace tenon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr std::string_view kText = R"(graph @net(%x: f32[N,4]) -> (%y, sum: %s) {
  %w = Constant {value = dense<f32[4,2]: 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0>}
  %b = Constant {value = splat<f32[100]: 0.5>}
  %m = MatMul %x, %w
  %y = Relu %m
  %s = Add %y, %y
})";

std::unique_ptr<Graph> net(std::string text = std::string(kText)) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().to_string());
  return *std::move(graph);
}

Datum input(int64_t rows) {
  std::vector<float> values(static_cast<size_t>(rows * 4));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 3;
  return Tensor::of<float>({rows, 4}, values);
}

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / str("tenon_compile_test_", getpid())) { fs::create_directories(path_); }
  ~Folder() { fs::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

template <class T>
std::string failure(const Result<T>& made) {
  return made.ok() ? "no error" : made.error().to_string();
}

TEST(Compile, RunsWriteOutputsWhereTheCallerWantsThem) {
  TargetRegistry registry;
  auto model = compile(net(), registry, {.targets = {"reference"}});
  ASSERT_TRUE(model.ok()) << failure(model);
  const std::vector<Datum> inputs{input(2)};
  const auto expected = (*model)->run(inputs);
  ASSERT_TRUE(expected.ok());
  const Tensor fits = *Tensor::zeros(kF32, {2, 2}), too_large = *Tensor::zeros(kF32, {3, 2});
  std::vector<Datum> outputs{Datum(fits), Datum(too_large)};
  ASSERT_TRUE((*model)->run_into(inputs, outputs).ok());
  EXPECT_EQ(outputs[0].tensor().data(), fits.data());
  EXPECT_NE(outputs[1].tensor().data(), too_large.data());
  for (size_t i = 0; i < outputs.size(); ++i) EXPECT_TRUE(compare(outputs[i], (*expected)[i], {0, 0}).equal) << i;
  EXPECT_EQ(too_large.double_at(0), 0);
  const auto refused = (*model)->run_into(inputs, std::span(outputs).first(1));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().to_string(), HasSubstr("model 'net' has 2 outputs, places for 1 are given"));
}

// Segments check what they read. Inputs that are passed to an output, or not read at all, are checked as well.
TEST(Compile, InputsThatNoSegmentReadsAreChecked) {
  TargetRegistry registry;
  const auto model = compile(net("graph @g(%x: f32[8], %unused: f32[N,2], %a: f32[N]) -> (%x, %y) {\n  %y = Neg %a\n}"),
                             registry, {.targets = {"reference"}});
  ASSERT_TRUE(model.ok()) << failure(model);
  const auto with = [](Dims x, ElementType element, Dims unused) {
    return std::vector<Datum>{*Tensor::zeros(element, std::move(x)), *Tensor::zeros(kF32, std::move(unused)),
                              *Tensor::zeros(kF32, {3})};
  };
  EXPECT_EQ(failure((*model)->run(with({8}, kF32, {3, 2}))), "no error");
  const auto refused = [&](const std::vector<Datum>& inputs, const char* why) {
    std::vector<Datum> outputs(2);
    EXPECT_THAT(failure((*model)->run(inputs)), HasSubstr(why));
    EXPECT_THAT(failure((*model)->run_into(inputs, outputs)), HasSubstr(why));
    EXPECT_THAT(failure((*model)->bind(inputs)), HasSubstr(why));
  };
  refused(with({8, 64}, kF32, {3, 2}), "input 'x' is declared f32[8] and given f32[8,64]: another rank");
  refused(with({9}, kF32, {3, 2}), "input 'x' is declared f32[8] and given f32[9]: dim 0 differs");
  refused(with({8}, kI32, {3, 2}), "input 'x' is declared f32[8] and given i32[8]");
  refused(with({8}, kF32, {3, 4}), "input 'unused' is declared f32[N,2] and given f32[3,4]: dim 1 differs");
}

TEST(Compile, PutsLayoutsOnValuesByName) {
  // assign-layouts considers only layouts of known shapes.
  std::string fixed(kText);
  fixed.replace(fixed.find("[N,4]"), 5, "[2,4]");
  TargetRegistry registry;
  const std::vector<Datum> inputs{input(2)};
  const auto plain = compile(net(fixed), registry, {.targets = {"reference"}});
  const auto laid_out = compile(
      net(fixed), registry, {.targets = {"reference"}, .layouts = {{"x", "NC{8c}"}, {"sum", "CN"}, {"m", "[2n]NC"}}});
  ASSERT_TRUE(plain.ok() && laid_out.ok()) << failure(laid_out);
  const auto wanted = (*plain)->run(inputs), got = (*laid_out)->run(inputs);
  ASSERT_TRUE(wanted.ok() && got.ok());
  for (size_t i = 0; i < wanted->size(); ++i) EXPECT_TRUE((*wanted)[i].tensor().identical((*got)[i].tensor())) << i;
  EXPECT_THAT(failure(compile(net(), registry, {.targets = {"reference"}, .layouts = {{"sun", "CN"}}})),
              HasSubstr("did you mean 'sum'"));
  EXPECT_THAT(failure(compile(net(), registry, {.targets = {"reference"}, .layouts = {{"x", "NCHW"}}})),
              HasSubstr("the layout \"NCHW\" for 'x'"));
}

TEST(Compile, RunsOnTheReference) {
  TargetRegistry registry;
  const auto model = compile(net(), registry, {.targets = {"reference"}});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  EXPECT_EQ((*model)->inputs()[0].name, "x");
  EXPECT_EQ((*model)->outputs()[1].name, "sum");
  const std::vector<Datum> inputs{input(2)};
  const auto outputs = (*model)->run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  EXPECT_TRUE(compare((*outputs)[0], Datum(Tensor::of<float>({2, 2}, {0, 0, 4, 6}))).equal);
  EXPECT_TRUE(compare((*outputs)[1], Datum(Tensor::of<float>({2, 2}, {0, 0, 8, 12}))).equal);
}

TEST(Compile, OptimisedAndPlainAgree) {
  TargetRegistry registry;
  const auto fast = compile(net(), registry, {.targets = {"reference"}});
  const auto plain = compile(net(), registry, {.targets = {"reference"}, .optimize = false});
  ASSERT_TRUE(fast.ok() && plain.ok());
  const std::vector<Datum> inputs{input(5)};
  const auto a = (*fast)->run(inputs), b = (*plain)->run(inputs);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_TRUE((*a)[1].tensor().identical((*b)[1].tensor()));
}

TEST(Compile, ARefusingTargetFallsBackAndTheReportSaysWhy) {
  TargetRegistry registry;
  const auto model = compile(net(), registry, {.targets = {"template"}});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  EXPECT_EQ((*model)->placement().coverage("reference"), 1);
  const auto& entry = (*model)->placement().entries.at(0);
  ASSERT_EQ(entry.refusals.size(), 1u);
  EXPECT_EQ(entry.refusals[0].first, "template");
  EXPECT_FALSE(entry.refusals[0].second.empty());
  EXPECT_THAT((*model)->placement().to_string(), HasSubstr("refused by template"));
}

TEST(Compile, NoFallbackAndMinCoverageAreErrorsWithReasons) {
  TargetRegistry registry;
  EXPECT_THAT(failure(compile(net(), registry, {.targets = {"template"}, .no_fallback = true})),
              HasSubstr("no target takes MatMul"));
  EXPECT_THAT(failure(compile(net(), registry, {.targets = {"template"}, .min_coverage = 0.5})),
              HasSubstr("target 'template' runs 0% of the operators"));
  EXPECT_TRUE(compile(net(), registry, {.targets = {"reference"}, .no_fallback = true, .min_coverage = 1}).ok());
}

TEST(Compile, AnUnknownTargetHasAHint) {
  TargetRegistry registry;
  EXPECT_THAT(failure(compile(net(), registry, {.targets = {"referense"}})), HasSubstr("reference"));
  EXPECT_THAT(failure(compile(net(), registry, {.targets = {}})), HasSubstr("no target"));
}

TEST(Compile, ManyThreadsRunOneModel) {
  TargetRegistry registry;
  const auto model = compile(net(), registry, {.targets = {"reference"}});
  ASSERT_TRUE(model.ok());
  std::vector<std::future<Result<std::vector<Datum>>>> futures;
  for (int64_t rows = 1; rows < 9; ++rows) futures.push_back((*model)->run_async({input(rows)}));
  for (int64_t rows = 1; rows < 9; ++rows) {
    const auto outputs = futures[static_cast<size_t>(rows - 1)].get();
    ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
    EXPECT_EQ((*outputs)[0].tensor().dims(), (Dims{rows, 2}));
  }
}

TEST(Artefact, RoundTripGivesTheSameBytes) {
  const Folder folder;
  TargetRegistry registry;
  const auto model = compile(net(), registry, {.targets = {"template", "reference"}});
  ASSERT_TRUE(model.ok());
  const std::string path = folder.file("net.tenon");
  const auto saved = (*model)->save(path);
  ASSERT_TRUE(saved.ok()) << saved.error().to_string();
  EXPECT_TRUE(CompiledModel::is_artefact(path));
  const auto loaded = CompiledModel::load(path, registry);
  ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
  EXPECT_EQ((*loaded)->inputs(), (*model)->inputs());
  EXPECT_EQ((*loaded)->outputs(), (*model)->outputs());
  EXPECT_EQ((*loaded)->placement().entries.size(), (*model)->placement().entries.size());
  const std::vector<Datum> inputs{input(3)};
  const auto a = (*model)->run(inputs), b = (*loaded)->run(inputs);
  ASSERT_TRUE(a.ok() && b.ok());
  for (size_t i = 0; i < a->size(); ++i) EXPECT_TRUE((*a)[i].tensor().identical((*b)[i].tensor()));
}

TEST(Artefact, EveryDamagedByteAndEveryLengthIsRefused) {
  const Folder folder;
  TargetRegistry registry;
  const auto model = compile(net(), registry, {.targets = {"reference"}});
  ASSERT_TRUE(model.ok());
  const std::string path = folder.file("net.tenon"), damaged = folder.file("damaged.tenon");
  ASSERT_TRUE((*model)->save(path).ok());
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto refused = [&](const std::string& content) {
    std::ofstream(damaged, std::ios::binary | std::ios::trunc) << content;
    return !CompiledModel::load(damaged, registry).ok();
  };
  EXPECT_FALSE(refused(bytes));
  for (size_t i = 0; i < bytes.size(); i += 7) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x20);
    EXPECT_TRUE(refused(changed)) << "byte " << i;
    EXPECT_TRUE(refused(bytes.substr(0, i))) << "length " << i;
  }
}

TEST(Artefact, ErrorsNameTheFile) {
  TargetRegistry registry;
  EXPECT_THAT(failure(CompiledModel::load("/nowhere/net.tenon", registry)), HasSubstr("/nowhere/net.tenon"));
  EXPECT_THAT(failure(CompiledModel::load("/tmp", registry)), HasSubstr("not a regular file"));
}

std::string file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The error contains the system's message and a remedy; nothing is left behind, and existing files are unchanged.
TEST(Artefact, ErrorsSayWhyItCannotBeWritten) {
  const Folder folder;
  TargetRegistry registry;
  const auto model = compile(net(), registry, {.targets = {"reference"}});
  ASSERT_TRUE(model.ok());
  const auto says = [&](const std::string& path, const std::string& why) {
    const auto saved = (*model)->save(path);
    ASSERT_FALSE(saved.ok()) << path;
    EXPECT_EQ(saved.error().code(), Code::io);
    EXPECT_THAT(saved.error().message(), HasSubstr("cannot write the artefact '" + path + "': " + why));
  };
  says(folder.file("none/net.tenon"), "No such file or directory; make the folder '" + folder.file("none") + "' first");
  const std::string file = folder.file("file");
  std::ofstream(file) << "mine";
  says(file + "/net.tenon", "Not a directory; '" + file + "' is no folder; name one");
  says(folder.file(std::string(300, 'n')), "File name too long; see to the folder '");
  // Simulates a full disk.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little{100, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  says(file, "File too large; it takes ");
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(file_bytes(file), "mine");
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(file).parent_path()), {}), 1);
}

// With a valid hash, as an attacker would write it.
void write_with_hash(const std::string& path, std::string bytes) {
  constexpr size_t kHashAt = 24, kHeaderBytes = 32;
  if (bytes.size() >= kHeaderBytes) {
    const uint64_t hash = hash_bytes(std::as_bytes(std::span(bytes)).subspan(kHeaderBytes));
    std::memcpy(bytes.data() + kHashAt, &hash, sizeof hash);
  }
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Errors give the path of the faulty value in the manifest.
TEST(Artefact, ErrorsNameThePlaceInTheManifest) {
  const Folder folder;
  TargetRegistry registry;
  const auto model = compile(net(), registry, {.targets = {"reference"}});
  const std::string path = folder.file("net.tenon");
  ASSERT_TRUE(model.ok() && (*model)->save(path).ok());
  const std::string good = file_bytes(path);
  const auto with = [&](const std::string& from, const std::string& to) {
    constexpr size_t kManifestBytesAt = 16;
    std::string bytes = good;
    const size_t at = bytes.find(from);
    if (at == std::string::npos) return str("no such change: ", from);
    uint64_t manifest_bytes = 0;
    std::memcpy(&manifest_bytes, bytes.data() + kManifestBytesAt, sizeof manifest_bytes);
    manifest_bytes += to.size() - from.size();
    std::memcpy(bytes.data() + kManifestBytesAt, &manifest_bytes, sizeof manifest_bytes);
    write_with_hash(path, bytes.replace(at, from.size(), to));
    return failure(CompiledModel::load(path, registry));
  };
  const auto says = [&](const char* what) {
    return AllOf(HasSubstr(path), HasSubstr("its manifest, bytes 32 to "), HasSubstr(what),
                 HasSubstr("; compile the model again"));
  };
  EXPECT_THAT(with("\"slots\"", "\"slotz\""), says("'slots' is missing"));
  EXPECT_THAT(with("\"target\":\"reference\"", "\"target\":[         ]"), says("'segments[0].target' is [], no text"));
  EXPECT_THAT(with("\"blob\":[0,", "\"blob\":[-,"), says("no JSON at byte "));
  EXPECT_THAT(with("{\"constants\"", "{\"constants|"), says("no JSON at byte "));
  EXPECT_THAT(with("\"name\":\"x\"", "\"name\":  7"), says("'inputs[0].name' is 7, no text"));
  EXPECT_THAT(with("\"output_slots\":[", "\"output_slots\":{"), says("no JSON at byte "));
  EXPECT_THAT(with("\"cost\":0.0", "\"cost\":1e999"), says("a number is too large: "));
  EXPECT_THAT(with("\"name\":\"x\"", "\"name\":[7]"), says("'inputs[0].name' is [...], no text"));
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_THAT(with("\"name\":\"x\"", "\"name\":" + deep), says("'inputs[0].name' is [...], no text"));
}

// A target that is known where the model was compiled, given only by a path.
TEST(Artefact, TargetsNeedNotBeInstalledWhereItRuns) {
  const Folder folder;
  TargetRegistry registry;
  const auto describe = [&](const std::string& name, const std::string& more) {
    const std::string path = folder.file(name + ".yaml");
    std::ofstream(path) << "tenon_target: 1\nname: " << name << "\nplugin: reference\n" << more;
    return path;
  };
  const std::string yaml = describe("mine", "operators: {Exp: none}\n"), path = folder.file("net.tenon");
  const auto model = compile(net(), registry, {.targets = {yaml}});
  ASSERT_TRUE(model.ok()) << failure(model);
  ASSERT_TRUE((*model)->save(path).ok());
  std::filesystem::remove(yaml);
  const std::vector<Datum> inputs{input(2)};
  const auto loaded = CompiledModel::load(path, registry);
  ASSERT_TRUE(loaded.ok()) << failure(loaded);
  EXPECT_EQ((*loaded)->segments()[0].target, "mine");
  ASSERT_EQ((*loaded)->parts().targets.size(), 1u);
  EXPECT_EQ((*loaded)->parts().targets[0], (*model)->parts().targets[0]);
  EXPECT_TRUE((*(*loaded)->run(inputs))[0].tensor().identical((*(*model)->run(inputs))[0].tensor()));

  // With a newer description of the target; a description of another target has no effect.
  const auto again = load_target(describe("mine", "operators: {Relu: none}\n"));
  const auto other = load_target(describe("other", ""));
  ASSERT_TRUE(again.ok() && other.ok());
  const auto anew = CompiledModel::load(path, registry, {&*again, 1});
  ASSERT_TRUE(anew.ok()) << failure(anew);
  EXPECT_EQ((*anew)->parts().targets[0], *again);
  EXPECT_THAT(failure(CompiledModel::load(path, registry, {&*other, 1})),
              HasSubstr("nothing of it is compiled for target 'other', only for [mine]"));
}

TEST(Artefact, WhichLibraryIsLoadedIsNotForAnArtefactToSay) {
  const Folder folder;
  TargetRegistry registry;
  const std::string path = folder.file("net.tenon"), yaml = folder.file("mine.yaml");
  std::ofstream(yaml) << "tenon_target: 1\nname: mine\nplugin: reference\ndriver: ./drivers/mine.so\n";
  const auto model = compile(net(), registry, {.targets = {yaml}});
  ASSERT_TRUE(model.ok()) << failure(model);
  ASSERT_TRUE((*model)->save(path).ok());
  EXPECT_THAT(failure(CompiledModel::load(path, registry)),
              AllOf(HasSubstr("driver './drivers/mine.so'"), HasSubstr("--target FILE.yaml")));
  const auto given = load_target(yaml);
  ASSERT_TRUE(given.ok());
  EXPECT_TRUE(CompiledModel::load(path, registry, {&*given, 1}).ok());
}

// Older artefacts contain no descriptions.
TEST(Artefact, ATargetThatNobodyDescribesSaysHowToGiveIt) {
  const Folder folder;
  TargetRegistry registry;
  const std::string path = folder.file("net.tenon"), yaml = folder.file("mine.yaml");
  std::ofstream(yaml) << "tenon_target: 1\nname: mine\nplugin: reference\n";
  const auto model = compile(net(), registry, {.targets = {yaml}});
  ASSERT_TRUE(model.ok()) << failure(model);
  CompiledModel::Parts parts = (*model)->parts();
  parts.targets.clear();
  const auto old = CompiledModel::assemble(std::move(parts));
  ASSERT_TRUE(old.ok() && (*old)->save(path).ok());
  EXPECT_THAT(failure(CompiledModel::load(path, registry)),
              AllOf(HasSubstr("no target 'mine'"), HasSubstr("--target FILE.yaml")));
  const auto given = load_target(yaml);
  EXPECT_TRUE(CompiledModel::load(path, registry, {&*given, 1}).ok());
}

// With a valid hash. Whatever is accepted may be run, on inputs of the stated types.
TEST(Artefact, SpoiltOnesAreReadOrRefused) {
  const Folder folder;
  const std::string file = folder.file("net.tenon");
  TargetRegistry registry;
  testing::Spoilt files;
  for (const char* text : {kText.data(),
                           "graph @w(%x: str[2]) -> (%x, w: %w) {\n  %w = Constant {value = "
                           "splat<f32[128]: 1.0>}\n}"}) {
    const auto model = compile(net(text), registry, {.targets = {"reference"}});
    ASSERT_TRUE(model.ok() && (*model)->save(file).ok());
    files.good.push_back(file_bytes(file));
  }
  for (const char* piece : {"\"slot\":1", "[0,1]", "\"str[2]\"", "block = 0", "-1", "1e99", "null", "{", "[", "\""})
    files.pieces.push_back(piece);
  testing::read_spoilt(files, 3000, [&](const std::string& bytes) {
    write_with_hash(file, bytes);
    const auto model = CompiledModel::load(file, registry);
    if (!model.ok()) return false;
    std::vector<Datum> inputs;
    for (const ValueInfo& info : (*model)->inputs()) {
      const auto dims = info.type.is_tensor() ? info.type.shape().static_dims() : std::nullopt;
      auto tensor = Tensor::zeros(info.type.is_tensor() ? info.type.element() : kF32, dims.value_or(Dims{3, 4}));
      if (!tensor.ok() || tensor->size() > 1000) return true;
      inputs.emplace_back(*std::move(tensor));
    }
    (void)(*model)->run(inputs);
    return true;
  });
}

// Bytes of a file must not be taken for strings, whose pointers would come from the file.
TEST(Artefact, ConstantsAreNoStrings) {
  const Folder folder;
  TargetRegistry registry;
  const auto model =
      compile(net("graph @w(%x: f32[2]) -> (%x, w: %w) {\n  %w = Constant {value = dense<f32[16]: 0.0, 0.0, "
                  "0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0>}\n}"),
              registry, {.targets = {"reference"}});
  ASSERT_TRUE(model.ok() && (*model)->save(folder.file("net.tenon")).ok());
  std::string bytes = file_bytes(folder.file("net.tenon"));
  const std::string from = "\"type\":\"f32[16]\"", to = "\"type\": \"str[2]\"";
  size_t replaced = 0;
  for (size_t at; (at = bytes.find(from)) != std::string::npos; ++replaced) bytes.replace(at, from.size(), to);
  ASSERT_GE(replaced, 1u);
  write_with_hash(folder.file("net.tenon"), bytes);
  EXPECT_THAT(failure(CompiledModel::load(folder.file("net.tenon"), registry)),
              HasSubstr("no numbers of a static shape"));
}

// Saving replaces a file by renaming, which must not be done to a device.
TEST(Artefact, ReplacesNothingButFiles) {
  const Folder folder;
  TargetRegistry registry;
  const auto model = compile(net(), registry, {.targets = {"reference"}});
  ASSERT_TRUE(model.ok());
  const std::string pipe = folder.file("pipe"), file = folder.file("file");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(failure((*model)->save(pipe)), HasSubstr("it is not a regular file, and would be replaced"));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_THAT(failure((*model)->save(folder.file("."))), HasSubstr("it is a folder; name a file"));
  std::ofstream(file) << "another one";
  ASSERT_TRUE((*model)->save(file).ok());
  EXPECT_TRUE(CompiledModel::load(file, registry).ok());
}

TEST(Compile, TextModelsAreFiles) {
  const Folder folder;
  std::ofstream(folder.file("net.tir")) << kText;
  TargetRegistry registry;
  EXPECT_TRUE(compile_file(folder.file("net.tir"), registry, {.targets = {"reference"}}).ok());
  for (const char* none : {"none.tir", "none.onnx"})
    EXPECT_EQ(failure(compile_file(folder.file(none), registry)), str("there is no file '", folder.file(none), "'"));
  EXPECT_THAT(failure(load_graph(folder.file("."))), HasSubstr("is a folder; name the file of a model"));
  EXPECT_THAT(failure(load_graph("/dev/zero")), HasSubstr("not a regular file"));
  const auto model = compile(net(), registry, {.targets = {"reference"}});
  ASSERT_TRUE(model.ok() && (*model)->save(folder.file("net.tenon")).ok());
  EXPECT_THAT(failure(load_graph(folder.file("net.tenon"))), HasSubstr("is a compiled artefact; name the model"));
}

}  // namespace
}  // namespace tenon
