// Inside the room: the state that one run at a time needs, reused by later runs.
#pragma once
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <tenon/model/run_plan_internal.hpp>
#include <tenon/support/spare.hpp>

namespace tenon::detail {

// A value between segments.
struct Slot {
  Datum host;
  DeviceTensor device;  // where a device has made it
  EventPtr ready;       // when it is ready there; null: it is

  // For a value that is no longer needed. Most slots are empty.
  void clear() {
    if (!host.absent() || device.buffer || ready) *this = {};
  }
};

struct RunState {
  std::vector<std::unique_ptr<Stream>> streams;  // as RunPlan::devices
  std::vector<Slot> slots;
  std::vector<const Datum*> values;     // by slot, for this run: where its data on the host are; null: on a device only
  std::vector<const Datum*> arguments;  // of a segment
  std::vector<Datum*> results;
  // The extents of inputs with which it has run, and the types of passed values in that run.
  std::vector<Dims> extents;
  std::vector<PassedValue> seen;  // by RunPlan::passed
  bool placed = false;            // passed values have places
  std::vector<Datum> arenas;      // by segment: bytes for its intermediate values, once they are placed

  // The memory lent to a segment.
  std::span<std::byte> arena_of(size_t segment) {
    if (segment >= arenas.size() || arenas[segment].absent()) return {};
    Tensor& bytes = arenas[segment].tensor();
    return {bytes.mutable_data(), bytes.bytes()};
  }
};

// States that no run uses at the moment. Thread-safe.
class RunStates {
 public:
  // Both outlive it.
  RunStates(const CompiledModel::Parts& parts, const RunPlan& plan);
  ~RunStates();

  // A state that has run with such extents, or a new one.
  Result<std::unique_ptr<RunState>> acquire(std::span<const Datum> inputs);
  // Called after a run without errors. Plans places after the first run with these extents.
  void release(std::unique_ptr<RunState> state);

  // Memory of one run for passed values and for what segments are lent; for the extents that need most, if they are
  // known only from runs.
  size_t arena_bytes() const;
  size_t arena_lower_bound_bytes() const;

 private:
  // As many sets of extents as programs are bound to (irgen/program_cache.hpp).
  static constexpr size_t kMostExtents = 16;
  struct Known {
    std::vector<Dims> extents;
    std::shared_ptr<const ValuePlan> plan;
  };
  bool serves(const RunState& state, std::span<const Datum> inputs) const;
  Result<std::unique_ptr<RunState>> make(std::span<const Datum> inputs);
  std::shared_ptr<const ValuePlan> known_plan(const std::vector<Dims>& extents);
  Result<void> place(RunState& state, const ValuePlan& plan) const;
  // Includes the memory lent to segments, beside the values.
  ValuePlan plan_with_arenas(std::vector<PassedValue> values) const;
  std::shared_ptr<const ValuePlan> plan_seen(RunState& state) const;

  const CompiledModel::Parts& parts_;
  const RunPlan& plan_;
  Spare<RunState> spare_;  // the last one released, if it has not been taken since; owned
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<RunState>> idle_;  // the most recent last
  std::list<Known> known_;                       // the most recent first; one entry when nothing is open
};

}  // namespace tenon::detail
