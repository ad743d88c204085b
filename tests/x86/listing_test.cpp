#include "x86/assembly/listing.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "x86/code/crash.hpp"
#include "x86/code/jit_dump.hpp"
#include "x86/code/perf_map.hpp"
#include "x86/kernel_support.hpp"

namespace tenon::x86::testing {
namespace {

using codegen::Lanes;
using snippet::RegisterId;

// A kernel that copies a row.
KernelBuilder copier(const Machine& machine) {
  KernelBuilder b(machine.isa, machine.lanes);
  b.kernel.name = "copier";
  b.kernel.labels = {"Identity net/copy_1"};
  const RegisterId x = b.parameter(0), y = b.parameter(1), value = b.lanes(kI32);
  b.over_row(2, [&](Lanes touched, const std::vector<RegisterId>& tail, RegisterId index) {
    std::vector<RegisterId> stored{value};
    stored.insert(stored.end(), tail.begin(), tail.end());
    b.at(b.add("Load", tail, {value}), {kI8, x, index}, touched).label = 0;
    b.at(b.add("Store", stored, {}), {kI8, y, index}, touched).label = 0;
  });
  return b;
}

class Listing : public MachineTest {};

TEST_P(Listing, EveryByteIsAnInstructionOfTheIsa) {
  const auto code = copier(GetParam()).code();
  ASSERT_NE(code, nullptr);
  size_t at = 0;
  for (const ListedInstruction& line : disassemble(code->object())) {
    EXPECT_EQ(line.offset, at);
    EXPECT_NE(line.text, "(bad)") << "at " << at;
    const bool evex = code->object().bytes[at] == std::byte{0x62};  // in 64-bit mode no other encoding begins with it
    EXPECT_FALSE(evex && GetParam().isa == Isa::avx2) << line.text << " needs AVX-512";
    at += line.bytes;
  }
  EXPECT_EQ(at, code->object().code_bytes);
}

TEST_P(Listing, OperatorsStandBesideTheirCode) {
  const auto code = copier(GetParam()).code();
  ASSERT_NE(code, nullptr);
  const std::string text = listing(code->object());
  EXPECT_EQ(text.find("; kernel copier, "), 0u) << text;
  EXPECT_NE(text.find("ret"), std::string::npos) << text;
  std::istringstream lines(text);
  int loads = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.find("Identity net/copy_1: ") != std::string::npos && line.find("Load") != std::string::npos) ++loads;
  EXPECT_EQ(loads, 2) << text;
}

// How a child process ended, with its output on standard error.
struct Ending {
  int signal = 0, status = 0;
  std::string text;
};
template <class Body>
Ending in_child(Body body) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], STDERR_FILENO);
    body();
    _exit(0);
  }
  close(pipe_ends[1]);
  Ending ending;
  char buffer[256];
  for (ssize_t n; (n = read(pipe_ends[0], buffer, sizeof buffer)) > 0;)
    ending.text.append(buffer, static_cast<size_t>(n));
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
  if (WIFEXITED(status)) ending.status = WEXITSTATUS(status);
  return ending;
}

void read_from_null(const JitCode& code, int64_t width) {
  std::vector<int8_t> y(256);
  const int64_t params[] = {8, reinterpret_cast<int64_t>(y.data()), width - 16, width};
  code.function()(params);
}

TEST_P(Listing, ACrashNamesKernelAndOperator) {
  const auto code = copier(GetParam()).code();
  ASSERT_NE(code, nullptr);
  const Ending ending = in_child([&] {
    // Removes the handler of a sanitizer or test runner.
    signal(SIGSEGV, SIG_DFL);
    install_crash_handler();
    read_from_null(*code, 64);
  });
  EXPECT_EQ(ending.signal, SIGSEGV) << "the program ends as it would have";
  EXPECT_NE(ending.text.find("tenon: SIGSEGV at address 0x8 in kernel 'copier' + 0x"), std::string::npos)
      << ending.text;
  EXPECT_NE(ending.text.find("(Identity net/copy_1)"), std::string::npos) << ending.text;
}

TEST_P(Listing, ThePreviousHandlerGoesOn) {
  const auto code = copier(GetParam()).code();
  ASSERT_NE(code, nullptr);
  const Ending ending = in_child([&] {
    signal(SIGSEGV, [](int) { _exit(42); });
    install_crash_handler();
    read_from_null(*code, 64);
  });
  EXPECT_EQ(ending.status, 42);
  EXPECT_NE(ending.text.find("kernel 'copier'"), std::string::npos) << ending.text;
  const Ending elsewhere = in_child([] {
    signal(SIGILL, [](int) { _exit(43); });
    install_crash_handler();
    raise(SIGILL);
  });
  EXPECT_EQ(elsewhere.status, 43);
  EXPECT_EQ(elsewhere.text, "") << "no word about crashes outside of generated code";
}

TENON_ON_ALL_MACHINES(Listing);

TEST(CrashTable, KnowsLiveCodeOnly) {
  auto code = copier({Isa::avx2, 8}).code();
  char text[200];
  const auto* inside = static_cast<const char*>(code->address()) + code->object().marks.back().offset;
  describe_code_address(inside, text, sizeof text);
  EXPECT_NE(std::string(text).find("kernel 'copier' + 0x"), std::string::npos) << text;
  EXPECT_NE(std::string(text).find("leave (frame)"), std::string::npos) << text;
  char small[12];
  describe_code_address(inside, small, sizeof small);
  EXPECT_EQ(std::string(small), "kernel 'cop");
  code.reset();
  describe_code_address(inside, text, sizeof text);
  EXPECT_STREQ(text, "");
}

// A lookup must not read other code objects, whose memory may have been freed.
TEST(CrashTable, LooksIntoNoOtherCode) {
  const auto code = copier({Isa::avx2, 8}).code();
  // A copy of the object that becomes unreadable once it is in the table.
  void* const page = mmap(nullptr, sizeof(JitCode), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  std::memcpy(page, static_cast<const void*>(code.get()), sizeof(JitCode));
  const JitCode& gone = *static_cast<const JitCode*>(page);
  crash_table_add(gone);
  ASSERT_EQ(mprotect(page, sizeof(JitCode), PROT_NONE), 0);
  // No code has this address, so the whole table is searched.
  char text[200];
  describe_code_address(text, text, sizeof text);
  EXPECT_STREQ(text, "");
  crash_table_remove(gone);
  munmap(page, sizeof(JitCode));
}

TEST(CrashTable, OtherCodeMayGoMeanwhile) {
  JitMemory memory;
  const CodeObject small = copier({Isa::avx2, 8}).code()->object();
  const auto added = [&memory](const CodeObject& object) {
    auto code = memory.add(std::make_shared<const CodeObject>(object));
    EXPECT_TRUE(code.ok()) << (code.ok() ? "" : code.error().to_string());
    return code.ok() ? *code : nullptr;
  };
  // The code that is looked up is too large for the hole. The hole is first in the table; other code is added to it and
  // removed from it meanwhile.
  auto hole = added(small);
  const auto behind_it = added(small);
  hole.reset();
  CodeObject large = small;
  large.bytes.resize(2 * small.bytes.size() + 64);
  const auto code = added(large);
  ASSERT_NE(code, nullptr);
  std::atomic<bool> over{false};
  std::thread others([&] {
    while (!over) added(small);
  });
  const auto* inside = static_cast<const char*>(code->address()) + code->object().marks.back().offset;
  std::string wrong;
  for (int i = 0; i < 200000 && wrong.empty(); ++i) {
    char text[200];
    describe_code_address(inside, text, sizeof text);
    if (!std::string_view(text).starts_with("kernel 'copier' + 0x")) wrong = str("'", std::string_view(text), "'");
  }
  over = true;
  others.join();
  EXPECT_EQ(wrong, "");
}

TEST(PerfMap, HasALineForEachKernel) {
  const std::string path = str("/tmp/perf-", getpid(), ".map");
  const auto before = copier({Isa::avx2, 8}).code();
  turn_on_perf_map();
  const auto code = copier({Isa::avx2, 8}).code();
  std::ifstream file(path);
  uint64_t start = 0, size = 0;
  std::string name;
  file >> std::hex >> start >> size >> name;
  EXPECT_EQ(start, reinterpret_cast<uint64_t>(code->address()));
  EXPECT_EQ(size, code->object().code_bytes);
  EXPECT_EQ(name, "tenon::copier");
  unlink(path.c_str());
}

TEST(JitDump, HasCodeAndALineForEachInstruction) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / str("tenon_jit_dump_", getpid());
  std::filesystem::create_directory(folder);
  turn_on_jit_dump(folder.string());
  const auto code = copier({Isa::avx2, 8}).code();
  turn_on_jit_dump("");
  const auto contents = [&](const char* ending) {
    std::ifstream file(folder / str("jit-", getpid(), ending), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string dump = contents(".dump"), lines = contents(".txt");
  const auto number = [&](size_t at, auto value) {
    EXPECT_LE(at + sizeof value, dump.size());
    if (at + sizeof value <= dump.size()) std::memcpy(&value, dump.data() + at, sizeof value);
    return value;
  };
  const CodeObject& object = code->object();
  EXPECT_EQ(number(0, uint32_t()), 0x4A695444u);
  EXPECT_EQ(number(20, uint32_t()), static_cast<uint32_t>(getpid()));
  // The record of lines precedes that of their code.
  const size_t info = number(8, uint32_t()), load = info + number(info + 4, uint32_t());
  EXPECT_EQ(number(info, uint32_t()), 2u);
  EXPECT_EQ(number(info + 24, uint64_t()), object.marks.size());
  EXPECT_EQ(static_cast<size_t>(std::ranges::count(lines, '\n')), object.marks.size());
  EXPECT_EQ(number(load, uint32_t()), 0u);
  EXPECT_EQ(number(load + 24, uint64_t()), reinterpret_cast<uint64_t>(code->address()));
  EXPECT_EQ(number(load + 40, uint64_t()), object.code_bytes);
  EXPECT_EQ(dump.size(), load + number(load + 4, uint32_t()));
  EXPECT_STREQ(dump.c_str() + load + 56, "tenon::copier");
  EXPECT_EQ(std::memcmp(dump.data() + dump.size() - object.code_bytes, object.bytes.data(), object.code_bytes), 0);
  std::filesystem::remove_all(folder);
}

TEST(JitDump, AFolderThatIsNotThereIsNoError) {
  turn_on_jit_dump("/nonexistent/folder");
  EXPECT_NE(copier({Isa::avx2, 8}).code(), nullptr);
}

}  // namespace
}  // namespace tenon::x86::testing
