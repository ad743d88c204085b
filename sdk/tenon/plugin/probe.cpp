#include <tenon/plugin/probe.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include <tenon/support/log.hpp>
#include <tenon/support/running_time.hpp>

namespace tenon::plugin_room {
namespace {

constexpr int kDefaultSeconds = 10;
constexpr int kMostSeconds = 3600;
constexpr char kGood = 'K', kBad = 'E';  // first byte of the child's answer, followed by a code and a sentence
constexpr size_t kMostAnswer = 1 << 16;

int limit_seconds() {
  const char* text = std::getenv("TENON_PLUGIN_TIMEOUT");
  if (!text) return kDefaultSeconds;
  int seconds = 0;
  const char* end = text + std::strlen(text);
  const auto [read, status] = std::from_chars(text, end, seconds);
  if (status == std::errc() && read == end && seconds >= 1 && seconds <= kMostSeconds) return seconds;
  log(LogLevel::warning, "TENON_PLUGIN_TIMEOUT is ", quote(text), ", not a number from 1 to ", kMostSeconds,
      "; ignored");
  return kDefaultSeconds;
}

// Isolates the parent from what the attempt does to files, signals or terminals.
void isolate(int keep) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nowhere = open("/dev/null", O_RDWR);
  for (int standard = 0; standard <= 2; ++standard) dup2(nowhere, standard);
  if (keep > 3) close_range(3, static_cast<unsigned>(keep) - 1, 0);
  close_range(static_cast<unsigned>(keep) + 1, ~0u, 0);
}

[[noreturn]] void run_child(int answer_to, const std::function<Result<void>()>& attempt) {
  isolate(answer_to);
  const Result<void> done = attempt();
  std::string answer(1, done.ok() ? kGood : kBad);
  if (!done.ok()) answer += str(static_cast<char>(done.error().code()), done.error().message());
  answer.resize(std::min(answer.size(), kMostAnswer));
  for (size_t sent = 0; sent < answer.size();) {
    const ssize_t count = write(answer_to, answer.data() + sent, answer.size() - sent);
    if (count < 0 && errno != EINTR) break;
    sent += count > 0 ? static_cast<size_t>(count) : 0;
  }
  _exit(0);
}

// What the child has written until it closed its end; empty when it did not do so within the limit.
std::optional<std::string> read_answer(int from, RunningTime::Span limit) {
  RunningTime time;
  std::string answer;
  char buffer[4096];
  for (;;) {
    const RunningTime::Span left = limit - time.now();
    pollfd ready{from, POLLIN, 0};
    const int count = poll(&ready, 1, static_cast<int>(std::clamp(left, {}, RunningTime::kMostStep).count()));
    if ((count < 0 && errno == EINTR) || (count == 0 && left.count() > 0)) continue;
    if (count <= 0) return std::nullopt;
    const ssize_t got = read(from, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    // Processes that the plugin leaves running may hold the other end open: a complete answer suffices.
    if (got <= 0) return answer;
    answer.append(buffer, static_cast<size_t>(got));
    if (answer.front() == kGood) return answer;
  }
}

std::string fate(int status) {
  if (WIFSIGNALED(status)) {
    const char* name = sigdescr_np(WTERMSIG(status));
    return str("died of signal ", WTERMSIG(status), " (", name ? name : "unknown", ")");
  }
  return str("ended the process with status ", WEXITSTATUS(status));
}

bool has_other_threads() {
  std::error_code failed;
  size_t threads = 0;
  for (std::filesystem::directory_iterator entry("/proc/self/task", failed), end; !failed && entry != end;
       entry.increment(failed))
    ++threads;
  return threads > 1;
}

enum class Outcome { answered, timed_out };

Result<Outcome> try_once(const std::string& what, int seconds, const std::function<Result<void>()>& attempt) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return error(Code::io, "no pipe to try ", what, ": ", std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    return error(Code::io, "no process to try ", what, ": ", std::strerror(errno));
  }
  if (child == 0) run_child(ends[1], attempt);
  close(ends[1]);
  const auto answer = read_answer(ends[0], std::chrono::seconds(seconds));
  close(ends[0]);
  if (!answer) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  kill(-child, SIGKILL);  // and its descendants
  if (!answer) return Outcome::timed_out;
  if (answer->empty()) return error(Code::plugin, what, " ", fate(status), " while it was loaded");
  if (answer->front() == kGood) return Outcome::answered;
  if (answer->size() < 2) return error(Code::plugin, what, " could not be tried: half an answer");
  const auto code = static_cast<uint8_t>((*answer)[1]);
  return Error(code <= static_cast<uint8_t>(Code::cancelled) ? Code{code} : Code::plugin, answer->substr(2));
}

}  // namespace

Result<void> probe(const std::string& what, const std::function<Result<void>()>& attempt) {
  const int seconds = limit_seconds();
  // A lock of the core that another thread held during the fork is never released in the child; this is unlikely twice
  // in a row.
  for (int tries = has_other_threads() ? 2 : 1; tries > 0; --tries) {
    TENON_TRY(outcome, try_once(what, seconds, attempt));
    if (outcome == Outcome::answered) return {};
  }
  return error(Code::plugin, what, " did not finish loading within ", seconds,
               " s; TENON_PLUGIN_TIMEOUT sets another limit");
}

}  // namespace tenon::plugin_room
