// Discovery and loading: the process survives every library, and a good plugin is loaded in spite of a bad one.
#include <atomic>
#include <thread>

#include <tenon/plugin/abi.h>

#include "plugin/plugin_test.hpp"

namespace tenon {
namespace {

using ::testing::AllOf;
using testing::Environment;
using ::testing::HasSubstr;

class LoaderTest : public testing::PluginTest {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    install("c_only");
  }
  // A fresh registry each time, so that a repaired plugin is loaded.
  static std::string failure_of(const std::string& target) {
    TargetRegistry registry;
    EXPECT_EQ(failure(registry, "c-only"), "");
    return failure(registry, target);
  }
  static std::string status_error(const std::string& path) {
    for (const PluginStatus& status : TargetRegistry().plugins()) {
      if (status.path == path) return status.error;
    }
    return "not found by discovery";
  }
};

TEST_F(LoaderTest, AGoodPluginIsListedWithItsTargets) {
  TargetRegistry registry;
  const auto plugins = registry.plugins();
  const auto mine = std::ranges::find(plugins, "c-only", &PluginStatus::name);
  ASSERT_NE(mine, plugins.end());
  EXPECT_EQ(mine->error, "");
  EXPECT_FALSE(mine->matched);
  const auto targets = registry.targets();
  const auto described = std::ranges::find(targets, "c-only", &TargetStatus::name);
  ASSERT_NE(described, targets.end());
  EXPECT_TRUE(described->available) << described->reason;
  const auto bare = std::ranges::find(targets, "c-only-b", &TargetStatus::name);
  ASSERT_NE(bare, targets.end());
  EXPECT_FALSE(bare->available);
  EXPECT_THAT(bare->reason, HasSubstr("c-only-b.yaml"));
}

TEST_F(LoaderTest, ExplicitPathsComeFirst) {
  const auto path = install("c_twin");
  std::filesystem::create_directory(folder_ / "first");
  std::filesystem::copy_file(path, folder_ / "first" / "twin.so");
  for (const std::string& named : {(folder_ / "first").string(), (folder_ / "first" / "twin.so").string()}) {
    TargetRegistry registry({{named}, false});
    const auto plugins = registry.plugins();
    ASSERT_FALSE(plugins.empty());
    EXPECT_EQ(plugins[0].path, (folder_ / "first" / "twin.so").string());
    EXPECT_EQ(plugins[0].error, "");
  }
  TargetRegistry registry({{"/nowhere/at-all.so"}, false});
  EXPECT_THAT(registry.plugins()[0].error, HasSubstr("/nowhere/at-all.so"));
}

TEST_F(LoaderTest, AFolderThatIsNotAbsoluteIsNotSearched) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  const Environment relative("TENON_PLUGIN_PATH", ".:");
  for (const PluginStatus& status : TargetRegistry().plugins()) EXPECT_NE(status.name, "c-only");
  std::filesystem::current_path(before);
}

TEST_F(LoaderTest, MissingAndUnresolvedSymbols) {
  std::filesystem::copy_file(fixture("no_symbol"), folder_ / "no_symbol.so");
  describe("bad", "bad");
  EXPECT_THAT(failure_of("bad"), HasSubstr("lacks the symbol 'tenon_plugin_v1'"));
  std::filesystem::remove(folder_ / "no_symbol.so");
  std::filesystem::copy_file(fixture("unresolved"), folder_ / "unresolved.so");
  EXPECT_THAT(failure_of("bad"), HasSubstr("nowhere_to_be_found"));
}

TEST_F(LoaderTest, ConstructorsThatEndOrHangTheProcess) {
  install("bad");
  const std::pair<const char*, const char*> cases[] = {
      {"abort", "Aborted"}, {"exit", "ended the process with status 0"}, {"crash", "Segmentation fault"}};
  for (const auto& [what, sentence] : cases) {
    const Environment asked("BAD_CONSTRUCTOR", what);
    EXPECT_THAT(failure_of("bad"), HasSubstr(sentence)) << what;
  }
  const Environment asked("BAD_CONSTRUCTOR", "loop");
  const Environment soon("TENON_PLUGIN_TIMEOUT", "1");
  EXPECT_THAT(failure_of("bad"), HasSubstr("did not finish loading within 1 s"));
}

TEST_F(LoaderTest, AFailingQueryTellsItsReason) {
  install("bad");
  {
    const Environment asked("BAD_QUERY", "fail");
    auto opened = TargetRegistry().open("bad");
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code(), Code::io);
    EXPECT_THAT(opened.error().message(), HasSubstr("the card is not in its slot"));
  }
  const Environment asked("BAD_QUERY", "silent");
  EXPECT_THAT(failure_of("bad"), AllOf(HasSubstr("4711"), HasSubstr("no reason")));
}

TEST_F(LoaderTest, EachSlotThatIsNeededIsNamedWhenEmpty) {
  install("bad");
  int needed = 0;
  const auto check = [&](const std::string& group, const std::string& slot) {
    if (group != "plain" && group != "memory") return;
    ++needed;
    const Environment asked("BAD_NULL_SLOT", slot);
    EXPECT_THAT(failure_of("bad"), AllOf(HasSubstr("slot '" + slot + "'"), HasSubstr("'" + group + "'")));
  };
#define CHECK(group, result, name, arguments) check(#group, #name);
  TENON_PLUGIN_SLOTS(CHECK)
#undef CHECK
  EXPECT_GE(needed, 18);
}

TEST_F(LoaderTest, NoteAndSymbolMustAgree) {
  std::string bytes = read(fixture("bad"));
  const size_t note = bytes.find(TENON_MAGIC);
  ASSERT_NE(note, bytes.npos);
  bytes[note + offsetof(tenon_plugin_info, version)] = '9';
  write("bad.so", bytes);
  describe("bad", "bad");
  EXPECT_THAT(failure_of("bad"), HasSubstr("other facts in its note"));
}

TEST_F(LoaderTest, DuplicatesAreRefusedAndNeverRun) {
  // The same file by another name, a copy, another plugin with the same target.
  std::filesystem::create_symlink(folder_ / "c_only.so", folder_ / "d_link.so");
  std::filesystem::copy_file(folder_ / "c_only.so", folder_ / "d_copy.so");
  install("c_rival", "d_rival");
  EXPECT_THAT(status_error((folder_ / "d_link.so").string()), HasSubstr("the same file"));
  EXPECT_THAT(status_error((folder_ / "d_copy.so").string()), HasSubstr("calls itself 'c-only'"));
  EXPECT_THAT(status_error((folder_ / "d_rival.so").string()),
              AllOf(HasSubstr("drives target 'c-only-b'"), HasSubstr("c_only.so")));
  EXPECT_THAT(failure_of("c-rival"), HasSubstr("drives target 'c-only-b'"));
}

TEST_F(LoaderTest, TheNameOfTheReferenceIsTaken) {
  std::string bytes = read(fixture("c_only"));
  for (size_t at = 0; (at = bytes.find(TENON_MAGIC, at)) != bytes.npos; at += 8) {
    std::string name = "reference";
    name.resize(sizeof(tenon_plugin_info::name));
    bytes.replace(at + offsetof(tenon_plugin_info, name), name.size(), name);
  }
  const auto path = write("usurper.so", bytes);
  EXPECT_THAT(status_error(path), HasSubstr("built in"));
}

TEST_F(LoaderTest, PluginsWithTheSamePrivateNamesEachReachTheirOwn) {
  install("c_twin");
  TargetRegistry registry;
  const auto sum = [&](const std::string& target) {
    auto backend = registry.open(target);
    EXPECT_TRUE(backend.ok()) << backend.error().to_string();
    auto built = (*backend)->build(graph("graph @g(%x: f32[2]) -> (%y) { %y = Add %x, %x }"));
    EXPECT_TRUE(built.ok()) << built.error().to_string();
    auto made = run(**built, {Tensor::of<float>({2}, {1, 2})});
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    return (*made)[0].tensor().as<float>()[0];
  };
  EXPECT_EQ(sum("c-only"), 2);
  EXPECT_EQ(sum("c-twin"), 3);
  EXPECT_EQ(sum("c-only"), 2);
}

TEST_F(LoaderTest, ManyThreadsDiscoverAndOpen) {
  install("c_twin");
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  TargetRegistry shared;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 3; ++i) {
        TargetRegistry own;
        TargetRegistry& registry = t % 2 ? own : shared;
        const auto targets = registry.targets();
        if (std::ranges::find(targets, "c-twin", &TargetStatus::name) == targets.end()) ++wrong;
        if (!registry.open("c-only").ok() || !registry.open("c-twin").ok()) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(LoaderTest, NothingIsRunUntilATargetIsWanted) {
  install("bad");
  const Environment asked("BAD_CONSTRUCTOR", "abort");
  TargetRegistry registry;
  EXPECT_GE(registry.plugins().size(), 2u);
  EXPECT_EQ(status_error((folder_ / "bad.so").string()), "");
}

TEST_F(LoaderTest, AMissingPluginNamesANearOne) {
  describe("near", "c-onyl");
  EXPECT_THAT(failure_of("near"), HasSubstr("did you mean 'c-only'"));
}

}  // namespace
}  // namespace tenon
