#include "x86/code/perf_map.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include <tenon/support/log.hpp>

namespace tenon::x86 {
namespace {

std::string hex(uint64_t value) {
  char text[16];
  return {text, std::to_chars(text, text + sizeof text, value, 16).ptr};
}

struct PerfMap {
  std::mutex mutex;
  bool on = false;
  pid_t owner = -1;
  int fd = -1;

  PerfMap() {
    const char* wish = secure_getenv("TENON_PERF_MAP");
    on = wish && std::string_view(wish) == "1";
  }

  void open_for(pid_t self) {
    if (fd >= 0) close(fd);
    owner = self;
    const std::string path = str("/tmp/perf-", self, ".map");
    fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct stat info {};
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid()) {
      // Discards the file of an earlier process with the same PID.
      if (ftruncate(fd, 0) == 0) return;
    }
    log(LogLevel::warning, "perf map ", path,
        " is not written: ", fd < 0 ? std::strerror(errno) : "not a file of ours");
    if (fd >= 0) close(fd);
    fd = -1;
    on = false;
  }

  void add(const JitCode& code) {
    const std::lock_guard lock(mutex);
    if (!on) return;
    if (const pid_t self = getpid(); owner != self) open_for(self);
    if (fd < 0) return;
    const std::string line = str(hex(reinterpret_cast<uint64_t>(code.address())), " ", hex(code.object().code_bytes),
                                 " ", code.object().symbol(), "\n");
    if (::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size())) return;
    log(LogLevel::warning, "perf map: ", std::strerror(errno));
    on = false;
  }
};

PerfMap& perf_map() {
  static PerfMap map;
  return map;
}

}  // namespace

void turn_on_perf_map() {
  const std::lock_guard lock(perf_map().mutex);
  perf_map().on = true;
}

void perf_map_add(const JitCode& code) { perf_map().add(code); }

}  // namespace tenon::x86
