#include "apart.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/support/running_time.hpp>
#include <tenon/support/str.hpp>

namespace tenon::cli {
namespace {

constexpr uint64_t kNoMoreTasks = UINT64_MAX;
constexpr uint64_t kMostBytes = 1 << 30;  // of an answer

// Before each answer: what a task's own code writes into files that are not its own is not taken for one.
struct Header {
  uint64_t task, bytes;
};

bool write_all(int file, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = write(file, at, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count, bytes -= static_cast<size_t>(count);
  }
  return true;
}

bool read_all(int file, void* data, size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t count = read(file, at, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count, bytes -= static_cast<size_t>(count);
  }
  return true;
}

// The main loop of a worker: reads task numbers, writes answers preceded by their headers.
[[noreturn]] void serve(int tasks, int answers, const std::function<std::string(size_t)>& work) {
  uint64_t task = kNoMoreTasks;
  while (read_all(tasks, &task, sizeof task) && task != kNoMoreTasks) {
    const std::string text = work(static_cast<size_t>(task));
    const Header header{task, text.size()};
    if (!write_all(answers, &header, sizeof header) || !write_all(answers, text.data(), text.size())) break;
  }
  _exit(0);
}

// A forked process, from its parent's point of view.
class Worker {
 public:
  // Null if the machine provides no process or pipe.
  static std::unique_ptr<Worker> start(const std::function<std::string(size_t)>& work) {
    int tasks[2], answers[2];
    if (pipe(tasks) != 0) return nullptr;
    if (pipe(answers) != 0) {
      close(tasks[0]), close(tasks[1]);
      return nullptr;
    }
    std::fflush(nullptr);
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // so that it does not outlive a parent that is killed
      if (getppid() != parent) _exit(0);
      close(tasks[1]), close(answers[0]);
      serve(tasks[0], answers[1], work);
    }
    close(tasks[0]), close(answers[1]);
    if (child < 0) {
      close(tasks[1]), close(answers[0]);
      return nullptr;
    }
    return std::unique_ptr<Worker>(new Worker(child, tasks[1], answers[0]));
  }
  ~Worker() {
    if (process_ > 0) {
      write_all(tasks_, &kNoMoreTasks, sizeof kNoMoreTasks);
      collect();
    }
    close(tasks_), close(answers_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // A worker that has already ended answers with its end.
  void give(uint64_t task, RunningTime::Span deadline) {
    task_ = task;
    deadline_ = deadline;
    write_all(tasks_, &task, sizeof task);
  }
  // The task that it works on, and its answer: after that, the worker is idle or has ended.
  size_t task() const { return static_cast<size_t>(*task_); }
  bool busy() const { return task_.has_value(); }
  // One read of what has come; none: there is more of the answer to come.
  std::optional<ApartAnswer> take_some() {
    char some[1 << 16];
    const ssize_t count = read(answers_, some, sizeof some);
    if (count < 0 && errno == EINTR) return std::nullopt;
    if (count <= 0) {
      closed_ = true;
      return end_of_process();
    }
    taken_.append(some, static_cast<size_t>(count));
    Header header;
    if (taken_.size() < sizeof header) return std::nullopt;
    std::memcpy(&header, taken_.data(), sizeof header);
    if (header.task != *task_ || header.bytes > kMostBytes) {
      end();
      return ApartAnswer{.text = {}, .failure = std::string(kNoAnswer)};
    }
    if (taken_.size() - sizeof header < header.bytes) return std::nullopt;
    ApartAnswer answer{.text = taken_.substr(sizeof header, header.bytes), .failure = {}};
    taken_.erase(0, sizeof header + header.bytes);
    ++answered_;
    return answer;
  }
  // Of a worker that has closed its end, how its process ended; none: it has not.
  std::optional<ApartAnswer> end_of_process() {
    int status = 0;
    if (waitpid(process_, &status, WNOHANG) == 0) return std::nullopt;
    process_ = -1;
    return ApartAnswer{.text = {}, .failure = end_text(status)};
  }
  // Nothing comes any more: the process ends, or works on with its files closed by the task's own code.
  bool closed() const { return closed_; }
  void free() { task_.reset(); }
  void end() {
    kill(process_, SIGKILL);
    collect();
  }

  int file() const { return answers_; }
  RunningTime::Span deadline() const { return deadline_; }
  bool ended() const { return process_ <= 0; }
  // The number of tasks that it has finished before the current one.
  size_t answered() const { return answered_; }

 private:
  Worker(pid_t process, int tasks, int answers) : process_(process), tasks_(tasks), answers_(answers) {}

  void collect() {
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {}
    process_ = -1;
  }
  static std::string end_text(int status) {
    if (!WIFSIGNALED(status)) return "the case's process ended without an answer";
    return str("crashed with signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  }

  pid_t process_;
  int tasks_, answers_;
  std::optional<uint64_t> task_;
  RunningTime::Span deadline_{0};
  std::string taken_;  // of the answer, and of what stands behind it
  bool closed_ = false;
  size_t answered_ = 0;
};

class Pool {
 public:
  Pool(size_t tasks, const ApartOptions& options, const std::function<std::string(size_t)>& work,
       const std::function<void(size_t, ApartAnswer)>& done)
      : tasks_(tasks), options_(options), work_(work), done_(done), workers_(static_cast<size_t>(options.jobs)) {}

  void run() {
    while (finished_ < tasks_) {
      hand_out();
      if (finished_ < tasks_) wait();
    }
  }

 private:
  std::optional<size_t> next_task() {
    if (!again_.empty()) {
      const size_t task = again_.front();
      again_.pop_front();
      return task;
    }
    if (next_ < tasks_) return next_++;
    return std::nullopt;
  }

  void hand_out() {
    for (std::unique_ptr<Worker>& worker : workers_) {
      if (worker && worker->busy()) continue;
      const bool fresh = !again_.empty();  // a task that ended one process is retried in a fresh one
      const auto task = next_task();
      if (!task) return;
      if (!worker || worker->ended() || fresh) worker = Worker::start(work_);
      if (worker) {
        const std::chrono::duration<double> limit(options_.timeout_s);
        worker->give(*task, time_.now() + std::chrono::ceil<RunningTime::Span>(limit));
      } else {
        finish(*task, {work_(*task), {}});
      }
    }
  }

  void wait() {
    constexpr RunningTime::Span kClosedStep{1};  // until a process that has closed its end has ended, too
    std::vector<pollfd> files;
    RunningTime::Span left = RunningTime::kMostStep;
    for (const auto& worker : workers_) {
      if (!worker || !worker->busy()) continue;
      files.push_back({worker->closed() ? -1 : worker->file(), POLLIN, 0});
      left = std::clamp(worker->deadline() - time_.now(), RunningTime::Span(0), worker->closed() ? kClosedStep : left);
    }
    if (files.empty() || poll(files.data(), files.size(), static_cast<int>(left.count())) < 0) return;
    auto file = files.begin();
    for (const auto& worker : workers_) {
      if (!worker || !worker->busy()) continue;
      const bool read = (file++)->revents != 0;
      const bool with_others = worker->answered() > 0;
      if (auto answer = read ? worker->take_some() : worker->closed() ? worker->end_of_process() : std::nullopt) {
        take(*worker, *std::move(answer), with_others);
      } else if (time_.now() >= worker->deadline()) {
        worker->end();
        finish(worker->task(), {.text = {}, .failure = str("no answer after ", options_.timeout_s, " s")});
        worker->free();
      }
    }
  }

  void take(Worker& worker, ApartAnswer answer, bool with_others) {
    const size_t task = worker.task();
    worker.free();
    if (!answer.failure.empty() && with_others) {
      again_.push_back(task);
    } else {
      finish(task, std::move(answer));
    }
  }

  void finish(size_t task, ApartAnswer answer) {
    ++finished_;
    done_(task, std::move(answer));
  }

  const size_t tasks_;
  const ApartOptions& options_;
  const std::function<std::string(size_t)>& work_;
  const std::function<void(size_t, ApartAnswer)>& done_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::deque<size_t> again_;
  RunningTime time_;
  size_t next_ = 0, finished_ = 0;
};

}  // namespace

void run_apart(size_t tasks, const ApartOptions& options, const std::function<std::string(size_t)>& work,
               const std::function<void(size_t, ApartAnswer)>& done) {
  // Writing to a worker that has crashed must not end the parent.
  struct sigaction ignore = {}, before = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &before);
  Pool(tasks, options, work, done).run();
  sigaction(SIGPIPE, &before, nullptr);
}

}  // namespace tenon::cli
