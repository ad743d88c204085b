#include "x86/code/jit_memory.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <thread>

#include "x86/assembly/context.hpp"
#include "x86/code/gdb_jit.hpp"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

namespace tenon::x86 {
namespace {

// A kernel that sets *params to `value`.
CodeObject writer_of(int64_t value, size_t padding = 0) {
  codegen::ConstantPool pool;
  X86Context c(Isa::avx2, pool);
  c.gen().mov(c.scratch(), static_cast<uint64_t>(value));
  c.gen().mov(c.param(0), c.scratch());
  c.gen().ret();
  for (size_t i = 0; i < padding; ++i) c.gen().nop();
  return c.finish(str("writer", value));
}

std::shared_ptr<const JitCode> added(JitMemory& memory, CodeObject object) {
  auto code = memory.add(std::make_shared<CodeObject>(std::move(object)));
  EXPECT_TRUE(code.ok()) << (code.ok() ? "" : code.error().to_string());
  return code.ok() ? *code : nullptr;
}

int64_t run(const JitCode& code) {
  int64_t word = -1;
  code.function()(&word);
  return word;
}

// The lines of /proc/self/maps for memory that is writable and executable, or that has code and is writable.
std::string bad_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::string line, bad;
  while (std::getline(maps, line)) {
    const std::string access = line.substr(line.find(' ') + 1, 4);
    const bool code = line.find("tenon-jit") != std::string::npos;
    if (access[1] == 'w' && (access[2] == 'x' || code)) bad += line + "\n";
  }
  return bad;
}

TEST(JitMemory, CodeIsNeverWritable) {
  JitMemory memory;
  std::vector<std::shared_ptr<const JitCode>> kept;
  for (int64_t i = 0; i < 20; ++i) {
    kept.push_back(added(memory, writer_of(i, i == 7 ? 3u << 20 : 100)));
    EXPECT_EQ(bad_mappings(), "") << "after " << i + 1 << " kernels";
  }
  for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(run(*kept[static_cast<size_t>(i)]), i);
}

TEST(JitMemory, SmallKernelsSharePages) {
  JitMemory memory;
  std::vector<std::shared_ptr<const JitCode>> kept;
  for (int64_t i = 0; i < 1000; ++i) kept.push_back(added(memory, writer_of(i)));
  EXPECT_EQ(memory.usage().kernels, 1000u);
  EXPECT_EQ(memory.usage().mapped_bytes, size_t{1} << 20);
  EXPECT_EQ(memory.usage().used_bytes, 64000u);
  for (const auto& code : kept) EXPECT_EQ(reinterpret_cast<uintptr_t>(code->address()) % 64, 0u);
}

TEST(JitMemory, FreedCodeIsUsedAgain) {
  JitMemory memory;
  std::vector<std::shared_ptr<const JitCode>> kept;
  for (int64_t i = 0; i < 10; ++i) kept.push_back(added(memory, writer_of(i, 40)));
  const auto* hole = static_cast<const unsigned char*>(kept[4]->address());
  // Adjacent kernels become one hole, in whatever order they are freed.
  kept[5].reset();
  kept[3].reset();
  kept[4].reset();
  EXPECT_EQ(hole[0], 0xcc) << "freed code is a trap";
  EXPECT_EQ(memory.usage().kernels, 7u);
  const auto large = added(memory, writer_of(77, 3 * 64 - 16));
  EXPECT_LT(static_cast<const unsigned char*>(large->address()), hole) << "it fits where the three were";
  EXPECT_EQ(run(*large), 77);
  for (const int64_t i : {0, 1, 2, 6, 7, 8, 9}) EXPECT_EQ(run(*kept[static_cast<size_t>(i)]), i);
}

TEST(JitMemory, CodeOutlivesItsMemory) {
  auto memory = std::make_unique<JitMemory>();
  const auto code = added(*memory, writer_of(5));
  memory.reset();
  EXPECT_EQ(run(*code), 5);
}

TEST(JitMemory, ThreadsAddRunAndFree) {
  JitMemory memory;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::shared_ptr<const JitCode>> kept(16);
      for (int64_t i = 0; i < 300; ++i) {
        auto& slot = kept[static_cast<size_t>(i * 7 % 16)];
        if (slot && run(*slot) % 1000 != t) ++wrong;
        slot = added(memory, writer_of(i * 1000 + t, static_cast<size_t>(i % 5) * 70));
        if (run(*slot) != i * 1000 + t) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(memory.usage().kernels, 0u);
}

// Runs `body` in a child process; returns its exit status.
template <class Body>
int in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(JitMemory, WorksWhereNoMappingMayBecomeExecutable) {
  constexpr int kUnknown = 2;
  const int status = in_child([] {
    if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) != 0) return kUnknown;
    JitMemory memory;
    auto code = memory.add(std::make_shared<CodeObject>(writer_of(9)));
    return code.ok() && run(**code) == 9 ? 0 : 1;
  });
  if (status == kUnknown) GTEST_SKIP() << "this kernel does not know PR_SET_MDWE (Linux 6.3)";
  EXPECT_EQ(status, 0);
}

TEST(JitMemory, AChildProcessLeavesItsParentsCodeAlone) {
  JitMemory memory;
  auto mine = added(memory, writer_of(1));
  auto shared = added(memory, writer_of(3));
  const int status = in_child([&] {
    shared.reset();  // the parent still has it
    auto code = memory.add(std::make_shared<CodeObject>(writer_of(2)));
    return code.ok() && run(**code) == 2 && run(*mine) == 1 ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  const auto later = added(memory, writer_of(4));
  EXPECT_EQ(run(*mine), 1);
  EXPECT_EQ(run(*shared), 3);
  EXPECT_EQ(run(*later), 4);
}

TEST(GdbJit, AKernelIsAnElfObjectWithItsName) {
  JitMemory memory;
  const auto code = added(memory, writer_of(12));
  const std::vector<std::byte> object = gdb_object(*code);
  ASSERT_GT(object.size(), 64u);
  EXPECT_EQ(std::memcmp(object.data(),
                        "\x7f"
                        "ELF\x02\x01\x01",
                        7),
            0);
  const std::string_view text(reinterpret_cast<const char*>(object.data()), object.size());
  EXPECT_NE(text.find("tenon::writer12"), std::string_view::npos);
  const auto address = reinterpret_cast<uint64_t>(code->address());
  EXPECT_NE(text.find(std::string_view(reinterpret_cast<const char*>(&address), 8)), std::string_view::npos);
}

}  // namespace
}  // namespace tenon::x86
