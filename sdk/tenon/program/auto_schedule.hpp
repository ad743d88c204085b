// Schedules by a cost model, and what schedules are predicted to cost.
//
//   TENON_TRY(report, auto_schedule(p, {in}, {out}, {{"out.min1", 0}, {"out.extent1", 2048}, ...}, CostModel::of(target)));
//   TENON_TRY(program, p.build({in}, {out}));
//
// The model, for a pipeline whose stages are cut into groups, each computed strip by strip in a loop of its last stage:
//   seconds = sum over groups of
//       bytes into and out of the group / bandwidth of the memory that holds what they come from
//     + bytes of results used inside of it / bandwidth of the smallest memory that holds the group's windows
//     + calls * dispatch
//     + elements computed again, where the author keeps no window of them * compute
// Groups are runs of stages in order of computation; of all ways to cut them, and all steps that are powers of two, the
// cheapest is taken (dynamic programming: time quadratic in the stages).
#pragma once
#include <string>
#include <vector>

#include <tenon/expr/expr.hpp>
#include <tenon/program/pipeline.hpp>
#include <tenon/support/export.hpp>
#include <tenon/target/description.hpp>

namespace tenon::program {

struct CostModel {
  struct Memory {
    std::string name;
    double bytes = 0;             // 0: holds anything
    double bytes_per_second = 0;
  };
  std::vector<Memory> memories;       // smallest first; the last holds anything
  double seconds_per_call = 100e-9;  // with its share of the loop and of views
  double seconds_per_element = 0.3e-9;

  // The memories of the description that state a size and a bandwidth, and room for anything in the largest. A target
  // that states none gets the model of a usual host.
  TENON_API static CostModel of(const TargetDescription& target);
  // 32 KiB, 1 MiB and 32 MiB of cache before main memory.
  TENON_API static CostModel host();
};

struct PredictedCost {
  double memory_seconds = 0, dispatch_seconds = 0, redundant_seconds = 0;
  double seconds() const { return memory_seconds + dispatch_seconds + redundant_seconds; }
};

struct TENON_API ScheduleReport {
  PredictedCost automatic, by_hand;  // by_hand: the schedule that the pipeline had (none: every stage by itself)
  std::vector<std::string> groups;   // "blur: 6 stages over y in steps of 16, 720896 bytes of windows"
  std::string to_string() const;
};

// Replaces loops and placements of all stages. `sizes` gives the symbols that bounds of outputs and scalars need.
TENON_API Result<ScheduleReport> auto_schedule(Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                               const std::vector<BufferRef>& outputs, const SymbolValues& sizes,
                                               const CostModel& model);
// What the pipeline costs as it is scheduled.
TENON_API Result<PredictedCost> predict_cost(const Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                             const std::vector<BufferRef>& outputs, const SymbolValues& sizes,
                                             const CostModel& model);

}  // namespace tenon::program
