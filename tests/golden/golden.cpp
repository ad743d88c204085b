#include <algorithm>
#include <filesystem>

#include <golden/golden.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>

namespace tenon::testing {
namespace {

constexpr std::string_view kSeparator = "\n----\n";
constexpr std::string_view kPasses = "# passes:";

std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> names;
  for (const std::string_view piece : split(list, ',')) {
    if (const auto name = trim(piece); !name.empty()) names.emplace_back(name);
  }
  return names;
}

Result<std::string> transform(const GoldenCase& golden, const RunPasses& run_passes) {
  TENON_TRY(graph, parse_graph(golden.program, "program"));
  // Texts may contain operators that only their reader knows.
  const VerifyOptions options{.allow_unknown_ops = true};
  TENON_OK(verify(*graph, options));
  TENON_OK(run_passes(*graph, golden.passes));
  TENON_OK(verify(*graph, options), "the verifier, after the passes");
  return print(*graph);
}

}  // namespace

Result<GoldenCase> read_golden(std::string_view text) {
  const size_t cut = text.find(kSeparator);
  if (cut == std::string_view::npos) return error(Code::parse, "a golden file needs a line '----' below its program");
  GoldenCase golden;
  golden.program = text.substr(0, cut + 1);
  golden.expected = text.substr(cut + kSeparator.size());
  for (const std::string_view line : split(golden.program, '\n')) {
    if (!line.starts_with(kPasses)) continue;
    golden.passes = names_in(line.substr(kPasses.size()));
    return golden;
  }
  return error(Code::parse, "a golden file begins with '", kPasses, " names'; no names for a round trip");
}

std::string golden_output(const GoldenCase& golden, const RunPasses& run_passes) {
  auto output = transform(golden, run_passes);
  return output.ok() ? *std::move(output) : str("error: ", output.error().to_string(), "\n");
}

std::string golden_text(const GoldenCase& golden, std::string_view output) {
  return str(golden.program, kSeparator.substr(1), output);
}

std::vector<std::string> golden_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".tir") files.push_back(entry.path().lexically_relative(folder).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace tenon::testing
