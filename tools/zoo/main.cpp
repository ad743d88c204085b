// tenon-zoo: writes a model of the zoo as ONNX, with test data.
#include <chrono>
#include <cstdio>

#include <CLI/CLI.hpp>

#include <tenon/ops/constant.hpp>

#include "zoo.hpp"

namespace tenon::zoo {
namespace {

struct Command {
  std::string name, folder;
  Options options;
};

Result<void> run(const Command& command) {
  const auto begin = std::chrono::steady_clock::now();
  const auto say = [&](const std::string& sentence) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::fprintf(stderr, "[%5.1f s] %s: %s\n", seconds, command.name.c_str(), sentence.c_str());
  };
  say("building");
  TENON_TRY(graph, build(command.name, command.options));
  TENON_TRY(values, inputs(*graph, command.options.seed));
  TENON_OK(write(*graph, values, command.folder, say));
  size_t operators = 0, weights = 0;
  for (Op& op : graph->body()) {
    if (const auto constant = dyn_cast<Constant>(op))
      weights += constant.value().bytes();
    else
      ++operators;
  }
  say(str("done: ", operators, " operators, ", weights >> 20, " MiB of weights"));
  return {};
}

void list() {
  for (const ModelInfo& model : models()) std::printf("%-18s %s\n", model.name.c_str(), model.summary.c_str());
}

}  // namespace
}  // namespace tenon::zoo

int main(int argc, char** argv) {
  using namespace tenon::zoo;
  CLI::App app("Writes a model of the zoo, with seeded weights, as OUT_DIR/model.onnx with OUT_DIR/test_data_set_0.",
               "tenon-zoo");
  Command command;
  const auto sizes = CLI::CheckedTransformer(std::map<std::string, Size>{{"tiny", Size::tiny}, {"full", Size::full}});
  bool listing = false;
  app.add_flag("--list", listing, "Name the models");
  auto* name = app.add_option("NAME", command.name, "One of --list");
  auto* folder = app.add_option("OUT_DIR", command.folder, "Made when it is not there");
  app.add_option("--size", command.options.size, "full, or tiny: fewer channels, layers and pixels")->transform(sizes);
  app.add_option("--batch", command.options.batch, "Images or texts at once")->check(CLI::Range(1, 65536));
  app.add_option("--seed", command.options.seed, "Of weights and inputs");
  try {
    app.parse(argc, argv);
    if (!listing && (name->count() == 0 || folder->count() == 0)) {
      throw CLI::ValidationError("NAME and OUT_DIR are required, or --list");
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (listing) {
    list();
    return 0;
  }
  if (const auto done = run(command); !done.ok()) {
    std::fprintf(stderr, "tenon-zoo: error: %s\n", done.error().to_string().c_str());
    return 1;
  }
}
