// Inside the room: collects RunStatistics, if requested.
#pragma once
#include <algorithm>

#include <tenon/program/exec/run.hpp>
#include <tenon/program/ir/statement.hpp>

namespace tenon::program::detail {

inline bool is_on_stack(Placement placement, int64_t bytes, int64_t stack_bytes) {
  return placement == Placement::stack || (placement == Placement::automatic && bytes <= stack_bytes);
}

class StatisticsRecorder {
 public:
  // Null: counts are discarded.
  explicit StatisticsRecorder(RunStatistics* statistics) : to_(statistics ? statistics : &discarded_) { *to_ = {}; }
  StatisticsRecorder(const StatisticsRecorder&) = delete;

  void allocate(int64_t bytes, bool on_stack) {
    (on_stack ? to_->stack : to_->heap).push_back(bytes);
    int64_t& live = on_stack ? stack_live_ : heap_live_;
    int64_t& peak = on_stack ? to_->stack_peak : to_->heap_peak;
    peak = std::max(peak, live += bytes);
  }
  void free(int64_t bytes, bool on_stack) { (on_stack ? stack_live_ : heap_live_) -= bytes; }
  void iteration() { ++to_->loop_iterations; }
  void enter_parallel() { ++to_->parallel_loops; }
  StageStatistics& call(const std::string& label) { return to_->stages[label]; }
  StageStatistics& copy(const std::string& label) { return to_->copies[label]; }

 private:
  RunStatistics discarded_;
  RunStatistics* to_;
  int64_t heap_live_ = 0;
  int64_t stack_live_ = 0;
};

}  // namespace tenon::program::detail
