// Inside the room: what the scheduler knows about a pipeline at given sizes, in numbers.
//
// A dim of the pipeline is what one loop iterates over: indices of two stages belong to the same dim where one reads
// the other's results along them. A loop over a dim therefore divides all stages of a group in the same way, each into
// as many pieces of its own extent.
#pragma once
#include <vector>

#include <tenon/expr/expr.hpp>
#include <tenon/program/pipeline/plan_internal.hpp>

namespace tenon::program::detail {

struct StageNumbers {
  struct Index {
    double extent = 0;
    int dim = -1;        // of the pipeline
    double overlap = 0;  // indices that two consecutive indices of a reader both read
    double again = 0;    // indices read by its stage that it has also read for the previous index, at most
  };
  struct Read {
    double bytes = 0;        // of all that is read of the buffer
    size_t made_at = 0;      // position of its producer; SIZE_MAX: the caller
    size_t read_before = 0;  // position of the previous reader; SIZE_MAX: this is the first
  };
  std::vector<Index> indices;
  std::vector<Read> reads;  // one per buffer
  double elements = 1;      // of its first result
  double bytes = 0;         // of all its results
  double times_read = 1;    // how often its readers load each element, at most
  size_t last_use = 0;      // position of the last reader of its results; its own if there is none
  bool is_output = false;
  bool is_copy = false;  // not computed by a kernel

  // Whether its results, for a stage at `at`, are not read again by the pipeline.
  bool may_be_non_temporal(size_t at) const { return !is_copy && last_use == at; }
};

struct PipelineNumbers {
  std::vector<StageNumbers> stages;  // by position in plan.order
  std::vector<size_t> position;      // of each stage of the plan
  std::vector<double> extents;       // by dim of the pipeline: the largest of any stage

  const StageNumbers& of(int stage) const { return stages[position[static_cast<size_t>(stage)]]; }
};

// `plan` has no schedule. Fails where `sizes` leave a bound open.
Result<PipelineNumbers> measure_stages(const Plan& plan, const SymbolValues& sizes);

}  // namespace tenon::program::detail
