// The C++ side: the reference through a loaded library, exceptions from every function, contract violations, other
// ABIs.
#include <tenon/plugin/reference_backend.hpp>
#include <tenon/support/memory.hpp>

#include "plugin/plugin_test.hpp"

namespace tenon {

class PassManager {};  // only passed on here

namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::Environment;
using ::testing::HasSubstr;

class GuardTest : public testing::PluginTest {
 protected:
  static constexpr std::string_view kGraph = "graph @g(%x: f32[N]) -> (%y) { %a = Neg %x %y = Add %a, %a }";

  // Every use of a target; returns its first error.
  static Result<void> use(TargetRegistry& registry, const std::string& target) {
    TENON_TRY(backend, registry.open(target));
    const auto g = graph(kGraph);
    if (auto refusal = backend->refuses(*g->body().first())) return error(Code::unsupported, refusal->reason);
    PassManager passes;
    TENON_OK(backend->add_prepare(passes));
    TENON_OK(backend->add_tensor_sel(passes));
    TENON_OK(backend->add_tensor_sched(passes));
    TENON_OK(backend->add_mem_alloc(passes));
    TENON_OK(backend->add_code_emit(passes));
    TENON_TRY(built, backend->build(graph(kGraph)));
    TENON_TRY(made, run(*built, {Tensor::of<float>({2}, {1, -2})}));
    if (!made[0].tensor().identical(Tensor::of<float>({2}, {-2, 4}))) return error(Code::internal, "wrong result");
    TENON_TRY(stored, built->serialize());
    TENON_TRY(memory, allocate_aligned(stored.size()));
    auto owner = std::make_shared<AlignedBytes>(std::move(memory));
    std::ranges::copy(std::as_bytes(std::span(stored)), owner->get());
    TENON_TRY(loaded, backend->load({owner->get(), stored.size()}, owner));
    TENON_TRY(again, run(*loaded, {Tensor::of<float>({2}, {1, -2})}));
    return again[0].tensor().identical(made[0].tensor()) ? Result<void>()
                                                         : error(Code::internal, "wrong result of the loaded");
  }
};

TEST_F(GuardTest, TheReferenceRunsThroughTheSeam) {
  describe("reference-plugin", "reference-plugin");
  TargetRegistry registry({{TENON_PLUGINS}, false});
  const auto used = use(registry, "reference-plugin");
  EXPECT_TRUE(used.ok()) << used.error().to_string();
  for (const PluginStatus& status : registry.plugins()) {
    if (status.name == "reference-plugin") {
      EXPECT_TRUE(status.matched) << status.path;
    }
  }
  // What the seam adds to one call, not to the work: same device, so no copies.
  EXPECT_EQ((*registry.open("reference-plugin"))->device(), host_device());
}

TEST_F(GuardTest, TheTemplateRunsOneOperatorAndRefusesOthersPolitely) {
  describe("template", "template");
  TargetRegistry registry({{TENON_PLUGINS}, false});
  auto backend = registry.open("template");
  ASSERT_TRUE(backend.ok()) << backend.error().to_string();
  const auto g = graph(kGraph);
  for (const Op& op : g->body()) {
    const auto refusal = (*backend)->refuses(op);
    ASSERT_TRUE(refusal);
    EXPECT_THAT(refusal->reason, AllOf(HasSubstr("template"), HasSubstr(op.name().str())));
  }
  const auto of_type = [](std::string_view type) {
    return graph(str("graph @g(%x: ", type, "[N]) -> (%y) { %y = Abs %x }"));
  };
  const auto refusal = (*backend)->refuses(*of_type("i32")->body().first());
  ASSERT_TRUE(refusal);
  EXPECT_THAT(refusal->reason, HasSubstr("f32 only, not in i32"));

  EXPECT_FALSE((*backend)->refuses(*of_type("f32")->body().first()));
  auto built = (*backend)->build(of_type("f32"));
  ASSERT_TRUE(built.ok()) << built.error().to_string();
  const auto made = run(**built, {Tensor::of<float>({3}, {1, -2, -0.0f})});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_TRUE((*made)[0].tensor().identical(Tensor::of<float>({3}, {1, 2, 0})));
}

TEST_F(GuardTest, WhateverThrowsBecomesAnError) {
  install("throwing");
  for (const bool integer : {false, true}) {
    std::optional<Environment> kind;
    if (integer) kind.emplace("FIXTURE_THROW_INT", "1");
    // The first two while it is loaded: nothing is kept of the attempt.
    for (const std::string place : {"create", "register_extensions"}) {
      const Environment asked("FIXTURE_THROW", place);
      TargetRegistry registry;
      const auto used = use(registry, "throwing");
      ASSERT_FALSE(used.ok()) << place;
      EXPECT_THAT(used.error().to_string(), HasSubstr(integer ? "no std::exception" : "out of paper")) << place;
    }
  }
  TargetRegistry registry;
  const auto used = use(registry, "throwing");
  ASSERT_TRUE(used.ok()) << used.error().to_string();
  for (const bool integer : {false, true}) {
    std::optional<Environment> kind;
    if (integer) kind.emplace("FIXTURE_THROW_INT", "1");
    for (const std::string place : {"unavailable", "create_backend", "device", "description", "refuses", "add_prepare",
                                    "add_tensor_sel", "add_tensor_sched", "add_mem_alloc", "add_code_emit", "build",
                                    "inputs", "enqueue", "wait", "serialize", "load"}) {
      const Environment asked("FIXTURE_THROW", place);
      const auto broken = use(registry, "throwing");
      ASSERT_FALSE(broken.ok()) << place;
      EXPECT_THAT(broken.error().to_string(), HasSubstr(integer ? "no std::exception" : "out of paper")) << place;
      EXPECT_THAT(broken.error().to_string(), HasSubstr("throwing")) << place;
    }
  }
  EXPECT_TRUE(use(registry, "throwing").ok());
}

TEST_F(GuardTest, WhatIsStoredAgainComesThroughOrIsCopied) {
  install("throwing");
  TargetRegistry registry;
  auto backend = registry.open("throwing");
  ASSERT_TRUE(backend.ok()) << backend.error().to_string();
  const auto g = graph(kGraph);
  EXPECT_TRUE((*backend)->stores_again(*g->body().first()));
  const Environment asked("FIXTURE_THROW", "stores_again");
  EXPECT_FALSE((*backend)->stores_again(*g->body().first()));
}

TEST_F(GuardTest, LayoutsOfAPluginComeThroughOrItIsRowMajor) {
  install("throwing");
  TargetRegistry registry;
  auto backend = registry.open("throwing");
  ASSERT_TRUE(backend.ok()) << backend.error().to_string();
  const auto g = graph(kGraph);
  const Op& neg = *g->body().first();
  ASSERT_EQ((*backend)->layout_kernels(neg).size(), 1u);
  EXPECT_EQ((*backend)->layout_kernels(neg)[0].name, "fixture");
  EXPECT_EQ((*backend)->layout_costs().setup_seconds, 7);
  {
    const Environment asked("FIXTURE_THROW", "layout_kernels");
    EXPECT_TRUE((*backend)->layout_kernels(neg).empty());
  }
  const Environment asked("FIXTURE_THROW", "layout_costs");
  EXPECT_EQ((*backend)->layout_costs().setup_seconds, 0);
}

TEST_F(GuardTest, BrokenPromisesAreNamed) {
  install("throwing");
  {
    const Environment asked("FIXTURE_BREAK", "register");
    TargetRegistry registry;
    const auto text = failure(registry, "throwing");
    if (!text.empty()) {
      EXPECT_THAT(text, HasSubstr("Add"));
    }
  }
  TargetRegistry registry;
  ASSERT_EQ(failure(registry, "throwing"), "");
  const std::pair<const char*, const char*> cases[] = {{"create_backend", "gave nothing in create_backend()"},
                                                       {"device", "gave nothing in device()"},
                                                       {"build", "gave nothing in build()"},
                                                       {"outputs", "2 outputs from a graph of 1"},
                                                       {"event", "gave nothing in enqueue()"}};
  for (const auto& [what, sentence] : cases) {
    const Environment asked("FIXTURE_BREAK", what);
    const auto used = use(registry, "throwing");
    ASSERT_FALSE(used.ok()) << what;
    EXPECT_EQ(used.error().code(), Code::plugin) << what;
    EXPECT_THAT(used.error().message(), HasSubstr(sentence));
  }
}

// Before the plugin is called, which would throw.
TEST_F(GuardTest, InputsThatAreNotAsDeclaredDoNotReachThePlugin) {
  install("throwing");
  TargetRegistry registry;
  const auto backend = registry.open("throwing");
  ASSERT_TRUE(backend.ok()) << backend.error().to_string();
  const auto built =
      (*backend)->build(graph("graph @g(%x: f32[N,3], %z: f32[N]) -> (%y) { %a = Neg %x %y = Add %a, %a }"));
  ASSERT_TRUE(built.ok()) << built.error().to_string();
  const auto given = [&](const Tensor& x, const Tensor& z) {
    const auto made = run(**built, {x, z});
    return made.ok() ? "no error" : made.error().to_string();
  };
  const auto zeros = [](ElementType element, Dims dims) { return *Tensor::zeros(element, std::move(dims)); };
  EXPECT_EQ(given(zeros(kF32, {2, 3}), zeros(kF32, {2})), "no error");
  const Environment asked("FIXTURE_THROW", "enqueue");
  EXPECT_THAT(given(zeros(kF32, {2, 3}), zeros(kF32, {2})), HasSubstr("out of paper"));
  EXPECT_EQ(given(zeros(kI16, {2, 3}), zeros(kF32, {2})), "input 'x' is declared f32[N,3] and given i16[2,3]");
  EXPECT_EQ(given(zeros(kF32, {2, 3, 1}), zeros(kF32, {2})),
            "input 'x' is declared f32[N,3] and given f32[2,3,1]: another rank");
  EXPECT_EQ(given(zeros(kF32, {2, 4}), zeros(kF32, {2})),
            "input 'x' is declared f32[N,3] and given f32[2,4]: dim 1 differs");
  EXPECT_EQ(given(zeros(kF32, {2, 3}), zeros(kF32, {5})),
            "input 'z' is declared f32[N] and given f32[5]: N is 2 elsewhere and 5 here");
}

TEST_F(GuardTest, MemoryThatIsPlannedByTheFirstRunIsToldAfterIt) {
  install("throwing");
  TargetRegistry registry;
  const auto backend = registry.open("throwing");
  ASSERT_TRUE(backend.ok()) << backend.error().to_string();
  const auto built = (*backend)->build(graph(kGraph));
  ASSERT_TRUE(built.ok()) << built.error().to_string();
  EXPECT_EQ((*built)->arena_bytes(), 0u);
  ASSERT_TRUE(run(**built, {Tensor::of<float>({2}, {1, -2})}).ok());
  EXPECT_EQ((*built)->arena_bytes(), 128u);
  EXPECT_EQ((*built)->arena_lower_bound_bytes(), 64u);
  const Environment asked("FIXTURE_THROW", "arena_bytes");
  EXPECT_EQ((*built)->arena_bytes(), 0u);
}

TEST_F(GuardTest, AnotherLayoutIsRefusedWithItsFirstDifference) {
  install("no_rtti");
  TargetRegistry registry;
  for (const PluginStatus& status : registry.plugins()) {
    if (status.name == "no-rtti") {
      EXPECT_FALSE(status.matched);
    }
  }
  EXPECT_THAT(failure(registry, "no-rtti"), HasSubstr("rtti is 0 there, 1 here"));
}

TEST_F(GuardTest, ThePlainSideServesACoreOfAnotherLayout) {
  install("no_rtti_plain");
  auto backend = TargetRegistry().open("no-rtti-plain");
  ASSERT_TRUE(backend.ok()) << backend.error().to_string();
  const auto g = graph(kGraph);
  const auto refusal = (*backend)->refuses(*g->body().first());
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, "plain");
}

TEST_F(GuardTest, TheOtherCompilersPluginsMatch) {
  for (const std::string level : {"o0", "o3"}) {
    if (!std::filesystem::exists(fixture("clang_" + level)))
      GTEST_SKIP() << "no plugin was built with clang++ (not installed, or a sanitizer build)";
    std::filesystem::copy_file(fixture("clang_" + level), folder_ / ("clang_" + level + ".so"));
    const std::string target = "clang-" + level;
    const auto yaml = describe("clang", target);
    TargetRegistry registry;
    for (const PluginStatus& status : registry.plugins()) {
      if (status.name == target) {
        EXPECT_TRUE(status.matched) << status.path;
      }
    }
    const auto used = use(registry, yaml);
    EXPECT_TRUE(used.ok()) << used.error().to_string();
    const Environment asked("FIXTURE_THROW", "build");
    const auto broken = use(registry, yaml);
    ASSERT_FALSE(broken.ok());
    EXPECT_THAT(broken.error().to_string(), HasSubstr("out of paper"));
  }
}

}  // namespace
}  // namespace tenon
