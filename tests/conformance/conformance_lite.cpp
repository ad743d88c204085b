// tenon-conformance-lite [DIR] [--filter RE] [-v]: runs the ONNX backend cases with the reference evaluators; prints
// each case that does not pass with its reason (-v: also those that pass), then a summary by operator. Exit code 1 if a
// case failed.
#include <cstdio>
#include <map>
#include <regex>
#include <string>

#include "conformance.hpp"

namespace {

using namespace tenon;
using namespace tenon::conformance;

struct Arguments {
  std::string folder, filter;
  bool verbose = false;
};

std::optional<Arguments> read_arguments(int count, char** words) {
  Arguments out;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "-v") {
      out.verbose = true;
    } else if (word == "--filter" && i + 1 < count) {
      out.filter = words[++i];
    } else if (word.empty() || word[0] == '-' || !out.folder.empty()) {
      return std::nullopt;
    } else {
      out.folder = word;
    }
  }
  return out;
}

using Counts = std::map<Status, int>;

std::string counts_text(Counts& counts) {
  return str(counts[Status::passed], " passed, ", counts[Status::failed], " failed, ", counts[Status::unsupported],
             " unsupported");
}

Result<bool> run(const Arguments& arguments) {
  std::string folder = arguments.folder;
  if (folder.empty()) {
    TENON_TRY(found, default_folder(TENON_BESIDE));
    folder = found;
  }
  TENON_TRY(cases, find_cases(folder));
  const std::regex filter(arguments.filter);
  std::map<std::string, Counts> by_op;
  Counts total;
  for (const Case& one : cases) {
    if (!std::regex_search(one.name, filter)) continue;
    const Outcome outcome = run_case(one, interpreter());
    ++by_op[one.primary_op.empty() ? one.suite : one.primary_op][outcome.status];
    ++total[outcome.status];
    if (outcome.status == Status::passed && !arguments.verbose) continue;
    std::printf("%s %s/%s %s\n", std::string(status_name(outcome.status)).c_str(), one.suite.c_str(), one.name.c_str(),
                outcome.reason.c_str());
    std::fflush(stdout);
  }
  std::printf("\n");
  for (auto& [op, counts] : by_op) std::printf("%-40s %s\n", op.c_str(), counts_text(counts).c_str());
  std::printf("all: %s\n", counts_text(total).c_str());
  return total[Status::failed] == 0;
}

}  // namespace

int main(int count, char** words) {
  const auto arguments = read_arguments(count, words);
  if (!arguments) {
    std::fprintf(stderr, "usage: tenon-conformance-lite [DIR] [--filter RE] [-v]\n");
    return 2;
  }
  try {
    const auto passed = run(*arguments);
    if (passed.ok()) return *passed ? 0 : 1;
    std::fprintf(stderr, "%s\n", passed.error().to_string().c_str());
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
  }
  return 1;
}
