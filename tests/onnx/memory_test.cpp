// Importing does not hold the weights twice: the peak memory of the process grows by little more than their size.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <tenon/ir/builder.hpp>
#include <tenon/onnx/export.hpp>
#include <tenon/onnx/import.hpp>
#include <tenon/support/sanitizer.h>

namespace tenon {
namespace {

constexpr bool kSanitized = TENON_SANITIZER == TENON_SANITIZER_ADDRESS;

// A line of /proc/self/status, in bytes.
size_t status(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key + ":")) return std::stoul(line.substr(key.size() + 1)) * 1024;
  }
  return 0;
}

// Resets the peak (VmHWM) to the current resident size.
bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return static_cast<bool>(file);
}

class Weights : public testing::Test {
 protected:
  // One tensor of 96 MiB, which protobuf reads piece by piece, and eight of 16 MiB.
  static constexpr size_t kBytes = size_t{96 + 8 * 16} << 20;

  void write(const ExportOptions& options) {
    folder_ = std::filesystem::temp_directory_path() / ("tenon_weights_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    Graph graph("weights");
    Builder b(graph.body());
    const auto add = [&](int64_t mebibytes) {
      auto tensor = Tensor::zeros(kF32, {mebibytes << 18});
      ASSERT_TRUE(tensor.ok());
      tensor->mutable_as<float>()[12345] = 7;
      const std::string name = "w" + std::to_string(graph.body().output_count());
      graph.body().add_output(b.constant(*std::move(tensor), name), name);
    };
    add(96);
    for (int i = 0; i < 8; ++i) add(16);
    const auto written = export_model(graph, path(), options);
    ASSERT_TRUE(written.ok()) << written.error().to_string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return (folder_ / "model.onnx").string(); }

  // How far a line of the status rises during an import above its value `before`, while the graph is alive.
  size_t growth(const char* before, const char* after) {
    const size_t was = status(before);
    EXPECT_GT(was, 0u) << before;
    const auto graph = import_model(path());
    EXPECT_TRUE(graph.ok()) << graph.error().to_string();
    const size_t is = status(after);
    if (graph.ok()) {
      EXPECT_EQ(constant_of((*graph)->body().output(8))->as<float>()[12345], 7.0f);
    }
    return is > was ? is - was : 0;
  }

  std::filesystem::path folder_;
};

TEST_F(Weights, InTheModelFileAreHeldOnce) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer's own memory is counted, too";
  write({});
  if (!reset_peak()) GTEST_SKIP() << "/proc/self/clear_refs cannot be written here";
  const size_t grown = growth("VmRSS", "VmHWM");
  EXPECT_GT(grown, kBytes * 9 / 10);  // else nothing was measured
  EXPECT_LT(grown, kBytes * 5 / 4);
}

TEST_F(Weights, InExternalDataAreMapped) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer's own memory is counted, too";
  write({.external_data_threshold = 1024});
  // Memory of its own: of a file the system maps as much beside the pages that are looked at as it holds in one piece,
  // 2 MB each where these are large.
  EXPECT_LT(growth("RssAnon", "RssAnon"), kBytes / 4);
}

}  // namespace
}  // namespace tenon
