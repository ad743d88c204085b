// Numbered tasks in processes of their own: one that crashes or hangs is one failed task, not the end of the run.
//
//   run_apart(cases.size(), {.jobs = 2}, [&](size_t i) { return answer_to(i); }, [&](size_t i, ApartAnswer a) {...});
//
// A process is forked from the caller's and works on one task after the other, so that what a task loads (a driver, a
// device's compiler) serves the next ones, too. A task that ends its process with others before it in that process is
// tried once more in a fresh one: only what ends a fresh one has failed by itself.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace tenon::cli {

struct ApartOptions {
  int jobs = 1;  // processes at a time
  // Of one task, as long as this process is not stopped itself; the process that is late is killed.
  double timeout_s = 60;
};

// Of an answer that cannot be read.
inline constexpr std::string_view kNoAnswer =
    "something else than an answer came from the case's process: what runs there writes into a file that it has not "
    "opened";

struct ApartAnswer {
  std::string text;     // what the task gave
  std::string failure;  // instead: "crashed with signal 11 (Segmentation fault)"
};

// `work` runs in a forked process; the caller has no threads that it needs. `done` runs here, in the order of answers.
// Where no process can be made, tasks run here.
void run_apart(size_t tasks, const ApartOptions& options, const std::function<std::string(size_t)>& work,
               const std::function<void(size_t, ApartAnswer)>& done);

}  // namespace tenon::cli
