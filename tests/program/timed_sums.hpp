// A pipeline of kernels on a clock of its own, for tests of schedules that are chosen by time.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include <program/pipeline_support.hpp>
#include <tenon/program/schedule/auto_schedule.hpp>

namespace tenon::program {

// Sums over three rows, by kernels that report a time that depends on the number of rows: no real time matters.
class TimedSums : public ::testing::Test {
 protected:
  static inline const Expr x = var("x"), y = var("y");
  static constexpr int64_t kWidth = 40, kRows = 48;
  static constexpr int kStages = 3;

  TimedSums() : source_({0, -kStages}, {kWidth, kRows + 2 * kStages}), result_({kWidth, kRows}) {
    source_.fill_pattern();
    KernelHandle sum = window_sum<int32_t>({0, -1}, {0, 1});
    KernelHandle timed = make_kernel(
        "timed_sum",
        [this, sum](CallContext& c) {
          const int64_t rows = c.operands.back().dims[1].extent;
          ++calls_;
          if (!takes_(rows)) return Result<void>(error(Code::unsupported, "a call for ", rows, " rows"));
          now_ += seconds_(rows);
          return sum->run(c);
        },
        true);
    BufferRef from = in_;
    for (int s = 0; s < kStages; ++s) {
      BufferRef to = s + 1 == kStages ? out_ : p_.buffer("mid" + std::to_string(s), kI32, 2);
      p_.stage("stage" + std::to_string(s), timed).reads(from, {x, {y - 1, y + 1}}).writes(to, {x, y});
      from = to;
    }
  }

  // All schedules are candidates, but for what a test says, and compared by this clock.
  template <class Options>
  void offer_all(Options& options) {
    options.most_times = 1e9;
    options.most_candidates = 1000;
    options.clock = [this] { return now_; };
  }
  // Whether all stages are in one loop over rows with this step.
  static bool has_step(const std::vector<std::string>& groups, int64_t rows) {
    return groups.size() == 1 && groups[0].find(str("3 stages over y in steps of ", rows, ",")) != std::string::npos;
  }

  Arguments arguments() { return {{{"source", source_.argument()}, {"result", result_.argument()}}, {}}; }

  Pipeline p_{"sums"};
  BufferRef in_ = p_.buffer("source", kI32, 2), out_ = p_.buffer("result", kI32, 2);
  Array<int32_t> source_, result_;
  CostModel model_ = CostModel::host();
  double now_ = 0;
  int calls_ = 0;
  std::function<double(int64_t)> seconds_ = [](int64_t) { return 1.0; };
  std::function<bool(int64_t)> takes_ = [](int64_t) { return true; };
};

}  // namespace tenon::program
