// Targets on the plain side: a C library on host memory, and one with memory of its own.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include <tenon/plugin/abi.h>

#include "plugin/plugin_test.hpp"

namespace tenon {
namespace {

using ::testing::AllOf;
using testing::Environment;
using ::testing::HasSubstr;

class PlainBackendTest : public testing::PluginTest {
 protected:
  std::unique_ptr<TargetBackend> open(const std::string& name) {
    TargetRegistry registry;
    auto backend = registry.open(name);
    EXPECT_TRUE(backend.ok()) << backend.error().to_string();
    return *std::move(backend);
  }
};

TEST_F(PlainBackendTest, ALibraryInCRunsAddAndRelu) {
  install("c_only");
  auto backend = open("c-only");
  EXPECT_TRUE(backend->device()->is_host());
  auto g = graph(R"(graph @g(%x: f32[2,2]) -> (%y, %s) {
    %k = Constant {value = dense<f32[2,2]: 1.0, -2.0, 3.0, -4.0>}
    %s = Add %x, %k
    %y = Relu %s
  })");
  for (const Op& op : g->body()) {
    if (!op.is("Constant")) {
      EXPECT_FALSE(backend->refuses(op)) << op.describe();
    }
  }
  auto executable = backend->build(std::move(g));
  ASSERT_TRUE(executable.ok()) << executable.error().to_string();
  backend.reset();  // executables outlive it
  auto made = run(**executable, {Tensor::of<float>({2, 2}, {1, 1, 1, 1})});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_TRUE((*made)[0].tensor().identical(Tensor::of<float>({2, 2}, {2, 0, 4, 0})));
  EXPECT_TRUE((*made)[1].tensor().identical(Tensor::of<float>({2, 2}, {2, -1, 4, -3})));
  auto stored = (*executable)->serialize();
  ASSERT_FALSE(stored.ok());
  EXPECT_EQ(stored.error().code(), Code::unsupported);
}

TEST_F(PlainBackendTest, RefusalsCarryThePluginsReason) {
  install("c_only");
  auto backend = open("c-only");
  const auto reason = [&](std::string_view text) {
    auto g = graph(text);
    const auto refusal = backend->refuses(*g->body().first());
    return refusal ? refusal->reason : std::string();
  };
  EXPECT_THAT(reason("graph @g(%x: f32[2]) -> (%y) { %y = Neg %x }"), HasSubstr("knows Add and Relu"));
  EXPECT_THAT(reason("graph @g(%x: f64[2]) -> (%y) { %y = Relu %x }"), HasSubstr("wants f32"));
  EXPECT_THAT(reason("graph @g(%x: f32[N]) -> (%y) { %y = Relu %x }"), HasSubstr("static shapes"));
  EXPECT_THAT(reason("graph @g(%x: f32[2,3], %b: f32[3]) -> (%y) { %y = Add %x, %b }"),
              HasSubstr("does not broadcast"));
  EXPECT_EQ(reason("graph @g(%x: f32[]) -> (%y) { %y = Relu %x }"), "");
}

TEST_F(PlainBackendTest, WrongInputsNeverReachThePlugin) {
  install("c_only");
  auto backend = open("c-only");
  auto executable = *backend->build(graph("graph @g(%x: f32[2]) -> (%y) { %y = Relu %x }"));
  EXPECT_FALSE(run(*executable, {}).ok());
  EXPECT_FALSE(run(*executable, {Tensor::of<float>({3}, {1, 2, 3})}).ok());
  EXPECT_FALSE(run(*executable, {Tensor::of<double>({2}, {1, 2})}).ok());
  EXPECT_TRUE(run(*executable, {Tensor::of<float>({2}, {1, 2})}).ok());
}

TEST_F(PlainBackendTest, EightThreadsRunOneExecutable) {
  install("c_only");
  auto backend = open("c-only");
  auto executable = *backend->build(graph("graph @g(%x: f32[4]) -> (%y) { %s = Add %x, %x %y = Relu %s }"));
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, v = static_cast<float>(t)] {
      for (int i = 0; i < 200; ++i) {
        auto made = run(*executable, {Tensor::of<float>({4}, {v, -v, 2 * v, 1})});
        if (!made.ok() ||
            !(*made)[0].tensor().identical(Tensor::of<float>({4}, {2 * v, v > 0 ? 0 : -0.0f + 0, 4 * v, 2})))
          ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(PlainBackendTest, ARunIsProfiledAsAWhole) {
  install("c_only");
  const auto executable =
      *open("c-only")->build(graph("graph @g(%x: f32[4]) -> (%y) { %s = Add %x, %x %y = Relu %s }"));
  const auto stream = *executable->device().create_stream(false);
  const std::vector<RunValue> inputs = {{Tensor::of<float>({4}, {1, 2, 3, 4}), {}}};
  std::vector<RunValue> outputs(1);
  std::vector<OpProfile> profile;
  RunOptions options;
  options.profile = &profile;
  const auto done = executable->enqueue(*stream, inputs, outputs, options);
  ASSERT_TRUE(done.ok() && (*done)->wait().ok());
  ASSERT_EQ(profile.size(), 1u);
  EXPECT_EQ(profile[0].op, "c-only");
  EXPECT_GT(profile[0].microseconds, 0);
}

// A core of an older minor version knows fewer slots: memory after them is not accessed.
TEST_F(PlainBackendTest, AShorterTableOfSlotsIsRespected) {
  const long page = sysconf(_SC_PAGESIZE);
  auto* memory =
      static_cast<char*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(memory), MAP_FAILED);
  ASSERT_EQ(mprotect(memory + page, page, PROT_NONE), 0);
  for (const std::string name : {"c_only", "device", "throwing"}) {
    void* library = dlopen(fixture(name).c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    const auto* plugin = static_cast<const tenon_plugin*>(dlsym(library, TENON_PLUGIN_SYMBOL));
    ASSERT_NE(plugin, nullptr);
    tenon_call call{sizeof(tenon_call), [](tenon_call*, int32_t code, tenon_text) { return code; }};
    const tenon_host host{sizeof(tenon_host), TENON_ABI_MAJOR, 0, nullptr, nullptr, nullptr};
    for (size_t size = sizeof(size_t); size <= sizeof(tenon_slots); size += sizeof(void*)) {
      auto* slots = reinterpret_cast<tenon_slots*>(memory + page - size);
      std::memset(static_cast<void*>(slots), 0, size);
      slots->struct_size = size;
      EXPECT_EQ(plugin->query(&call, &host, slots), TENON_OK);
      EXPECT_EQ(slots->struct_size, size);
    }
    // The library stays: others of this process may have it open.
  }
  munmap(memory, 2 * page);
}

// ---- Memory of its own ----

constexpr std::string_view kTwice = "graph @g(%x: f32[2]) -> (%y) { %a = Neg %x %b = Neg %a %y = Neg %b }";

TEST_F(PlainBackendTest, ADeviceWithMemoryOfItsOwn) {
  install("device");
  auto backend = open("device");
  Device& device = *backend->device();
  EXPECT_FALSE(device.is_host());
  EXPECT_EQ(device.name(), "device");
  auto executable = *backend->build(graph(kTwice));
  auto made = run(*executable, {Tensor::of<float>({2}, {1, -2})});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_TRUE((*made)[0].tensor().identical(Tensor::of<float>({2}, {-1, 2})));

  auto stream = *device.create_stream(true);
  auto small = *device.allocate(device.memories()[0], 8);
  std::vector<std::byte> bytes(16);
  EXPECT_FALSE(stream->copy_to_device(*small, 0, bytes).ok());
  EXPECT_FALSE(stream->copy_to_host(bytes, *small, 0).ok());
  EXPECT_FALSE(stream->copy(*small, 4, *small, 0, 8).ok());
  auto foreign = *host_device()->allocate("host", 64);
  EXPECT_FALSE(stream->copy_to_device(*foreign, 0, bytes).ok());
  EXPECT_FALSE(device.allocate("elsewhere", 8).ok());

  int called = 0;
  auto worked = stream->call([&] { return ++called, Result<void>(); });
  ASSERT_TRUE(worked.ok());
  EXPECT_TRUE((*worked)->wait().ok());
  EXPECT_EQ(called, 1);
  auto failed = stream->call([]() -> Result<void> { return error(Code::io, "no paper"); });
  ASSERT_TRUE(failed.ok());
  EXPECT_EQ((*failed)->wait().error().message(), "no paper");
}

TEST_F(PlainBackendTest, StoresAndLoads) {
  install("device");
  auto backend = open("device");
  auto executable = *backend->build(graph(kTwice));
  auto stored = executable->serialize();
  ASSERT_TRUE(stored.ok()) << stored.error().to_string();
  const auto load = [&](std::string bytes) {
    auto owner = std::make_shared<std::string>(std::move(bytes));
    return backend->load(std::as_bytes(std::span(*owner)), owner);
  };
  auto loaded = load(*stored);
  ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
  EXPECT_EQ((*loaded)->inputs(), executable->inputs());
  EXPECT_EQ((*loaded)->outputs(), executable->outputs());
  auto made = run(**loaded, {Tensor::of<float>({2}, {1, -2})});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_TRUE((*made)[0].tensor().identical(Tensor::of<float>({2}, {-1, 2})));
  for (size_t size = 0; size < stored->size(); ++size) EXPECT_FALSE(load(stored->substr(0, size)).ok()) << size;
}

// Each slot throws in turn, caught on the plugin's side or only here, a std::exception or an int.
class ThrowingSlots : public PlainBackendTest, public ::testing::WithParamInterface<std::tuple<std::string, bool>> {};

TEST_P(ThrowingSlots, BecomeErrors) {
  const auto& [library, integer] = GetParam();
  install(library);
  std::string target = library;
  std::ranges::replace(target, '_', '-');
  TargetRegistry registry;
  ASSERT_EQ(failure(registry, target), "");

  // Every use of a target; returns its first error.
  const auto use = [&]() -> Result<void> {
    TENON_TRY(backend, registry.open(target));
    const auto g = graph(kTwice);
    if (auto refusal = backend->refuses(*g->body().first())) return error(Code::unsupported, refusal->reason);
    TENON_TRY(built, backend->build(graph(kTwice)));
    TENON_TRY(made, run(*built, {Tensor::of<float>({2}, {1, -2})}));
    if (!made[0].tensor().identical(Tensor::of<float>({2}, {-1, 2}))) return error(Code::internal, "wrong result");
    TENON_TRY(stored, built->serialize());
    auto owner = std::make_shared<std::string>(std::move(stored));
    TENON_TRY(loaded, backend->load(std::as_bytes(std::span(*owner)), owner));
    TENON_TRY(stream, backend->device()->create_stream(false));
    TENON_TRY(a, backend->device()->allocate(backend->device()->memories()[0], 8));
    TENON_TRY(copied, stream->copy(*a, 0, *a, 4, 4));
    TENON_OK(copied->wait());
    (void)copied->done();
    TENON_TRY(called, stream->call([] { return Result<void>(); }));
    TENON_OK(called->wait());
    return stream->synchronize();
  };
  ASSERT_TRUE(use().ok()) << use().error().to_string();

  std::optional<Environment> kind;
  if (integer) kind.emplace("FIXTURE_THROW_INT", "1");
  const auto check = [&](const std::string& group, const std::string& slot) {
    if (group == "matched") return;
    const Environment asked("FIXTURE_THROW", slot);
    const auto used = use();
    // Nobody can be told when a handle is given back; it is logged.
    if (slot.starts_with("destroy") || slot.starts_with("free") || slot.starts_with("close") || slot == "event_done") {
      EXPECT_TRUE(used.ok()) << slot << ": " << used.error().to_string();
      return;
    }
    ASSERT_FALSE(used.ok()) << slot;
    EXPECT_THAT(used.error().to_string(), HasSubstr(integer ? "no std::exception" : "out of paper")) << slot;
    EXPECT_THAT(used.error().to_string(), HasSubstr(target)) << slot;
  };
#define CHECK(group, result, name, arguments) check(#group, #name);
  TENON_PLUGIN_SLOTS(CHECK)
#undef CHECK
  EXPECT_TRUE(use().ok());
}

INSTANTIATE_TEST_SUITE_P(All, ThrowingSlots,
                         ::testing::Combine(::testing::Values("device", "device_guarded"), ::testing::Bool()),
                         [](const auto& info) {
                           return std::get<0>(info.param) + (std::get<1>(info.param) ? "_int" : "_exception");
                         });

}  // namespace
}  // namespace tenon
