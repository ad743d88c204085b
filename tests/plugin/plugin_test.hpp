// A separate folder for the plugins and target files of a test, which a registry searches.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/ir/text.hpp>
#include <tenon/plugin/target_registry.hpp>

namespace tenon::testing {

// Sets an environment variable for its lifetime.
class Environment {
 public:
  Environment(std::string name, const std::string& value) : name_(std::move(name)) {
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Environment() { unsetenv(name_.c_str()); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::string name_;
};

class PluginTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "tenon_plugins_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = std::filesystem::canonical(pattern);
    setenv("TENON_TARGET_PATH", folder_.c_str(), 1);
    setenv("TENON_PLUGIN_PATH", folder_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("TENON_TARGET_PATH");
    unsetenv("TENON_PLUGIN_PATH");
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
    std::filesystem::remove_all(folder_);
  }

  std::string write(const std::string& name, const std::string& text) {
    const auto path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  static std::string read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  // Writes a target file for plugin `plugin`.
  std::string describe(const std::string& target, const std::string& plugin, const std::string& more = "") {
    return write(target + ".yaml", "tenon_target: 1\nname: " + target + "\nplugin: " + plugin + "\n" + more);
  }

#ifdef TENON_FIXTURES
  static std::string fixture(const std::string& name) { return std::string(TENON_FIXTURES "/") + name + ".so"; }
  // Installs a fixture where the registry finds it, with a target file.
  std::string install(const std::string& name, const std::string& as = "") {
    const auto path = folder_ / ((as.empty() ? name : as) + ".so");
    std::filesystem::copy_file(fixture(name), path);
    std::string plugin = name;
    std::ranges::replace(plugin, '_', '-');
    describe(plugin, plugin);
    return path.string();
  }
  // The error of opening `target`; empty if it opens.
  static std::string failure(TargetRegistry& registry, const std::string& target) {
    auto backend = registry.open(target);
    return backend.ok() ? std::string() : backend.error().to_string();
  }
#endif

  static std::unique_ptr<Graph> graph(std::string_view text) {
    auto parsed = parse_graph(text);
    EXPECT_TRUE(parsed.ok()) << parsed.error().to_string();
    return *std::move(parsed);
  }

  // Copies host tensors to an executable, runs it, and copies the results back.
  static Result<std::vector<Datum>> run(const Executable& executable, const std::vector<Tensor>& inputs,
                                        const RunOptions& options = {}) {
    TENON_TRY(stream, executable.device().create_stream(false));
    std::vector<RunValue> values, outputs(executable.outputs().size());
    for (const Tensor& input : inputs) {
      TENON_TRY(value, to_device(*stream, input));
      values.push_back(std::move(value));
    }
    TENON_TRY(event, executable.enqueue(*stream, values, outputs, options));
    TENON_OK(event->wait());
    std::vector<Datum> out;
    for (const RunValue& output : outputs) {
      TENON_TRY(datum, to_host(*stream, output));
      out.push_back(std::move(datum));
    }
    return out;
  }

  std::filesystem::path folder_;
};

}  // namespace tenon::testing
