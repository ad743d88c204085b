// Golden files: a program, `----`, and the result of passes.
//
//   # passes: fold-transpose, remove-dead      every line of the head is `# key: value` or a comment
//   graph @g(%x: f32[2]) -> %y { ... }
//   ----
//   graph @g (%x: f32[2]) -> %y { ... }         or   error: the whole error
//
// The program is parsed, verified, passed through the passes, verified again and printed. The lower half is compared
// character by character; TENON_UPDATE_GOLDEN=1 rewrites it for review in the diff.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>

namespace tenon::testing {

struct GoldenCase {
  std::vector<std::string> passes;  // in order
  std::string program;              // with its head
  std::string expected;
};

// Runs the named passes in order on the graph.
using RunPasses = std::function<Result<void>(Graph&, std::span<const std::string>)>;

// Errors: no line `----`, or none of the form `# passes:`.
Result<GoldenCase> read_golden(std::string_view text);
// The lower half as it is at present.
std::string golden_output(const GoldenCase& golden, const RunPasses& run_passes);
// The whole file with `output` as its lower half.
std::string golden_text(const GoldenCase& golden, std::string_view output);

// Paths under `folder` that end in ".tir", sorted, relative to it.
std::vector<std::string> golden_files(const std::string& folder);

}  // namespace tenon::testing
