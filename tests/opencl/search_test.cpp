// The measured search: results are correct for every choice, and the choice is reused from a file.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <support_lib/random_tensor.hpp>

#include "graph_support.hpp"

namespace tenon::opencl::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kText =
    "graph @g(%a: f32[37,29], %b: f32[29,70]) -> %y {\n %m = MatMul %a, %b\n %y = Relu %m\n}";

// Each test has its own cache folder, and a device object without earlier choices.
class OpenclSearch : public OpenclTest {
 protected:
  void SetUp() override {
    std::string name = (fs::path(::testing::TempDir()) / "tenon_search_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    if (const char* before = std::getenv("TENON_CACHE_DIR")) before_ = before;
    setenv("TENON_CACHE_DIR", name.c_str(), 1);
    OpenclTest::SetUp();
  }
  void TearDown() override {
    before_ ? setenv("TENON_CACHE_DIR", before_->c_str(), 1) : unsetenv("TENON_CACHE_DIR");
    fs::remove_all(folder_);
  }
  // Opens the device again, as a new process does.
  void open_again() {
    stream.reset();
    device.reset();
    OpenclTest::SetUp();
  }

  FormChoices::Counts run() {
    TargetDescription searching = cpu_target();
    searching.options.add("search", Setting::word("measured"));
    auto backend = create_backend(searching);
    EXPECT_TRUE(backend.ok()) << backend.error().to_string();
    auto graph = *parse_graph(kText);
    std::mt19937 random(3);
    const std::vector<Datum> inputs{Datum(tenon::testing::random_tensor(random, kF32, {37, 29})),
                                    Datum(tenon::testing::random_tensor(random, kF32, {29, 70}))};
    expect_reference(*stream, **backend, *graph, inputs, {.rtol = 2e-5, .atol = 2e-5});
    return (*device->form_choices())->counts();
  }

  fs::path file() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder_))
      if (entry.path().extension() == ".form") found.push_back(entry.path());
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? fs::path() : found[0];
  }
  FormChoice choice() const {
    FormChoice read{};
    std::ifstream(file(), std::ios::binary).read(reinterpret_cast<char*>(&read), sizeof read);
    return read;
  }
  void write(const FormChoice& planted) {
    std::ofstream(file(), std::ios::binary).write(reinterpret_cast<const char*>(&planted), sizeof planted);
  }

  fs::path folder_;
  std::optional<std::string> before_;
};

TEST_F(OpenclSearch, WhatWasFoundIsChosenAgain) {
  EXPECT_EQ(run().measured, 1u);
  EXPECT_EQ(run().measured, 1u) << "the process knows";
  open_again();
  const auto counts = run();
  EXPECT_EQ(counts.measured, 0u);
  EXPECT_EQ(counts.from_files, 1u);
}

TEST_F(OpenclSearch, APlantedChoiceIsTaken) {
  EXPECT_EQ(run().measured, 1u);
  const FormChoice found = choice();
  ASSERT_GT(found.forms, 2u);
  for (const uint64_t chosen : {uint64_t{0}, found.forms - 1}) {
    write(FormChoice::of({found.key_high, found.key_low}, found.forms, chosen));
    open_again();
    const auto counts = run();
    EXPECT_EQ(counts.measured, 0u);
    EXPECT_EQ(counts.from_files, 1u);
    EXPECT_EQ(choice().chosen, chosen);
  }
}

TEST_F(OpenclSearch, ADamagedFileIsMeasuredAnew) {
  EXPECT_EQ(run().measured, 1u);
  FormChoice wrong = choice();
  const FormChoice right = wrong;
  wrong.chosen = wrong.forms;
  for (const FormChoice& planted : {wrong, FormChoice::of({right.key_high, right.key_low + 1}, right.forms, 0),
                                    FormChoice::of({right.key_high, right.key_low}, right.forms + 1, right.forms)}) {
    write(planted);
    open_again();
    const auto counts = run();
    EXPECT_EQ(counts.measured, 1u);
    EXPECT_EQ(counts.from_files, 0u);
    EXPECT_LT(choice().chosen, right.forms);
  }
}

TEST_F(OpenclSearch, AnotherWordIsRefused) {
  TargetDescription other = cpu_target();
  other.options.add("search", Setting::word("guessed"));
  const auto backend = create_backend(other);
  ASSERT_FALSE(backend.ok());
  EXPECT_THAT(backend.error().to_string(), ::testing::HasSubstr("option search is 'guessed'; it is none or measured"));
}

}  // namespace
}  // namespace tenon::opencl::testing
