#include <tenon/plugin/probe.hpp>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include <gmock/gmock.h>

#include "plugin/plugin_test.hpp"

namespace tenon::plugin_room {
namespace {

using namespace std::chrono_literals;
using tenon::testing::Environment;
using ::testing::HasSubstr;

TEST(Probe, WhatStopsItselfIsGivenUp) {
  const Environment soon("TENON_PLUGIN_TIMEOUT", "1");
  const auto done = probe("a stop", [] { return raise(SIGSTOP), Result<void>(); });
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error().message(), HasSubstr("a stop did not finish loading within 1 s"));
}

// A process and its probing child, both stopped for longer than the limit; the child continues last.
TEST(Probe, TimeInWhichAllIsStoppedDoesNotCount) {
  const Environment soon("TENON_PLUGIN_TIMEOUT", "1");
  void* shared = mmap(nullptr, sizeof(std::atomic<pid_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& tried = *new (shared) std::atomic<pid_t>(0);
  const pid_t process = fork();
  ASSERT_GE(process, 0);
  if (process == 0) {
    const auto done = probe("a nap", [&] {
      tried = getpid();
      std::this_thread::sleep_for(200ms);
      return Result<void>();
    });
    _exit(done.ok() ? 0 : 1);
  }
  while (tried == 0) std::this_thread::yield();
  kill(process, SIGSTOP), kill(tried, SIGSTOP);
  std::this_thread::sleep_for(1500ms);
  kill(process, SIGCONT);
  std::this_thread::sleep_for(100ms);
  kill(tried, SIGCONT);
  int status = 0;
  ASSERT_EQ(waitpid(process, &status, 0), process);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "it was given up";
  munmap(shared, sizeof(std::atomic<pid_t>));
}

}  // namespace
}  // namespace tenon::plugin_room
