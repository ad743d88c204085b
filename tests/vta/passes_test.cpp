// Each pass of the four phases: text in, text out (tests/golden). The machine has small buffers, so that small
// operators have several tiles. The result of one pass is the beginning of the next one's file.
#include "vta/passes/passes.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include <golden/golden.hpp>
#include <tenon/passes/pass_manager.hpp>

#include "streams.hpp"
#include "vta/backend.hpp"

namespace tenon::vta {
namespace {

using namespace testing;
using tenon::testing::golden_files;
using tenon::testing::golden_output;
using tenon::testing::golden_text;
using tenon::testing::read_golden;

TargetDescription small_machine() { return sized(1, 16, 1 << 10, 8 << 10, 8 << 10, 1 << 10); }

Result<void> run_passes(Graph& graph, std::span<const std::string> names) {
  TENON_TRY(backend, create_backend(small_machine()));
  PassManager all;
  TENON_OK(backend->add_tensor_sel(all));
  TENON_OK(backend->add_tensor_sched(all));
  TENON_OK(backend->add_mem_alloc(all));
  TENON_OK(backend->add_code_emit(all));
  PassManager wanted;
  for (const std::string& name : names) {
    const auto pass =
        std::find_if(all.passes().begin(), all.passes().end(), [&](const Pass& p) { return p.name == name; });
    if (pass == all.passes().end()) return error(Code::not_found, "target 'vta' has no pass '", name, "'");
    TENON_OK(wanted.add(*pass));
  }
  TENON_OK(wanted.run(graph, {.verify_each = true}));
  return {};
}

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Passes : public ::testing::TestWithParam<std::string> {};

TEST_P(Passes, LeaveWhatIsWritten) {
  ASSERT_TRUE(pass_context(small_machine()).ok());  // defines the operators of the texts
  const std::string path = str(TENON_GOLDEN_DIR, "/", GetParam());
  auto golden = read_golden(slurp(path));
  ASSERT_TRUE(golden.ok()) << path << ": " << golden.error().to_string();
  const std::string output = golden_output(*golden, run_passes);
  if (output == golden->expected) return;
  const char* update = std::getenv("TENON_UPDATE_GOLDEN");
  if (!update || std::string_view(update) != "1") {
    FAIL() << path << " gives\n"
           << output << "instead of\n"
           << golden->expected << "(TENON_UPDATE_GOLDEN=1 rewrites the file)";
  }
  std::ofstream(path, std::ios::binary) << golden_text(*golden, output);
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Files, Passes, ::testing::ValuesIn(golden_files(TENON_GOLDEN_DIR)), test_name);

}  // namespace
}  // namespace tenon::vta
