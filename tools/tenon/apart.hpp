// Numbered tasks in separate processes: one that crashes or hangs is one failed task, and does not end the run.
//
//   run_apart(cases.size(), {.jobs = 2}, [&](size_t i) { return answer_to(i); }, [&](size_t i, ApartAnswer a) {...});
//
// A worker process is forked from the caller's and runs one task after another, so that what a task loads (a driver, a
// device's compiler) serves later tasks, too. If a task ends its process, and other tasks ran in that process before,
// it is retried once in a fresh one: only a task that ends a fresh process has failed by itself.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace tenon::cli {

struct ApartOptions {
  int jobs = 1;  // number of concurrent processes
  // Per task, not counting time in which this process is stopped itself; a process that exceeds it is killed.
  double timeout_s = 60;
};

// Of an answer that cannot be read.
inline constexpr std::string_view kNoAnswer =
    "something else than an answer came from the case's process: what runs there writes into a file that it has not "
    "opened";

struct ApartAnswer {
  std::string text;     // the result of the task
  std::string failure;  // set instead if it failed: "crashed with signal 11 (Segmentation fault)"
};

// `work` runs in a forked process, so the caller must have no threads that it needs. `done` runs in this process, in
// the order of answers. If no process can be created, tasks run in this process.
void run_apart(size_t tasks, const ApartOptions& options, const std::function<std::string(size_t)>& work,
               const std::function<void(size_t, ApartAnswer)>& done);

}  // namespace tenon::cli
