#include "x86/code/jit_dump.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <tenon/support/log.hpp>

namespace tenon::x86 {
namespace {

constexpr uint32_t kDumpMagic = 0x4A695444, kVersion = 1;
constexpr uint32_t kCodeLoad = 0, kDebugInfo = 2;
constexpr size_t kHeaderBytes = 40, kRecordBytes = 16;

uint64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// Serialises numbers and texts back to back, as the format requires.
class Bytes {
 public:
  template <class T>
  Bytes& put(T value) {
    return put(&value, sizeof value);
  }
  Bytes& put(const void* data, size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
    return *this;
  }
  Bytes& text(const std::string& text) { return put(text.c_str(), text.size() + 1); }
  const std::string& str() const { return bytes_; }

 private:
  std::string bytes_;
};

std::string record(uint32_t id, const Bytes& body) {
  Bytes made;
  made.put(id).put(static_cast<uint32_t>(kRecordBytes + body.str().size())).put(now());
  return made.str() + body.str();
}

class File {
 public:
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { close(); }

  bool open(const std::string& path) {
    close();
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd_ >= 0;
  }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  bool write(const std::string& bytes) {
    return ::write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

struct JitDump {
  std::mutex mutex;
  std::string folder;  // empty: off
  pid_t owner = -1;
  File dump, lines;
  std::string lines_path;
  uint32_t next_line = 1;
  uint64_t next_index = 0;

  JitDump() {
    if (const char* wish = secure_getenv("TENON_JITDUMP")) folder = wish;
  }

  void give_up() {
    log(LogLevel::warning, "the jit dump in ", folder, " is not written: ", std::strerror(errno));
    folder.clear();
  }

  bool open_for(pid_t self) {
    owner = self;
    next_line = 1;
    next_index = 0;
    lines_path = str(folder, "/jit-", self, ".txt");
    if (!dump.open(str(folder, "/jit-", self, ".dump")) || !lines.open(lines_path)) return false;
    Bytes header;
    header.put(kDumpMagic).put(kVersion).put(static_cast<uint32_t>(kHeaderBytes)).put(uint32_t{EM_X86_64});
    header.put(uint32_t{0}).put(static_cast<uint32_t>(self)).put(now()).put(uint64_t{0});
    if (!dump.write(header.str())) return false;
    // perf finds the file by this mapping, which is not used otherwise; it stays until the process ends.
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return mmap(nullptr, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump.fd(), 0) != MAP_FAILED;
  }

  // Writes a line of the text file for each mark, and records its position.
  bool write_lines(const JitCode& code) {
    const auto address = reinterpret_cast<uint64_t>(code.address());
    const CodeMarks& marks = code.object().marks;
    Bytes table;
    table.put(address).put(static_cast<uint64_t>(marks.size()));
    std::string text;
    for (size_t i = 0; i < marks.size(); ++i) {
      const CodeMark mark = marks[i];
      table.put(address + mark.offset).put(next_line++).put(uint32_t{0}).text(lines_path);
      text += str(one_line(mark.label), mark.label.empty() ? "" : ": ", one_line(mark.instruction), "\n");
    }
    return lines.write(text) && dump.write(record(kDebugInfo, table));
  }

  bool write_code(const JitCode& code) {
    const CodeObject& object = code.object();
    const auto address = reinterpret_cast<uint64_t>(code.address());
    Bytes load;
    load.put(static_cast<uint32_t>(owner)).put(static_cast<uint32_t>(gettid()));
    load.put(address).put(address).put(static_cast<uint64_t>(object.code_bytes)).put(next_index++);
    load.text(object.symbol()).put(object.bytes.data(), object.code_bytes);
    return dump.write(record(kCodeLoad, load));
  }

  void add(const JitCode& code) {
    const std::lock_guard lock(mutex);
    if (folder.empty()) return;
    if (const pid_t self = getpid(); owner != self && !open_for(self)) return give_up();
    if (!write_lines(code) || !write_code(code)) give_up();
  }
};

JitDump& jit_dump() {
  static JitDump dump;
  return dump;
}

}  // namespace

void turn_on_jit_dump(std::string folder) {
  const std::lock_guard lock(jit_dump().mutex);
  jit_dump().folder = std::move(folder);
}

void jit_dump_add(const JitCode& code) { jit_dump().add(code); }

}  // namespace tenon::x86
