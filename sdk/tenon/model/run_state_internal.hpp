// Inside of the room: what one run of a model at a time needs, kept from run to run.
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
  EventPtr ready;       // when it is made there; null: it is

  // Of a value that is no longer wanted. Most hold nothing.
  void clear() {
    if (!host.absent() || device.buffer || ready) *this = {};
  }
};

struct RunState {
  std::vector<std::unique_ptr<Stream>> streams;  // as RunPlan::devices
  std::vector<Slot> slots;
  std::vector<const Datum*> values;     // by slot, of this run: where its data on the host are; null: on a device only
  std::vector<const Datum*> arguments;  // of a segment
  std::vector<Datum*> results;
  // The extents of inputs that it has run with, and the types that passed values had then.
  std::vector<Dims> extents;
  std::vector<PassedValue> seen;  // by RunPlan::passed
  bool placed = false;            // passed values have places
  std::vector<Datum> arenas;      // by segment: bytes for its intermediate values, once they are placed

  // What a segment is lent.
  std::span<std::byte> arena_of(size_t segment) {
    if (segment >= arenas.size() || arenas[segment].absent()) return {};
    Tensor& bytes = arenas[segment].tensor();
    return {bytes.mutable_data(), bytes.bytes()};
  }
};

// States that no run has at the moment. Any thread.
class RunStates {
 public:
  // Both outlive it.
  RunStates(const CompiledModel::Parts& parts, const RunPlan& plan);
  ~RunStates();

  // One that has run with such extents, or a new one.
  Result<std::unique_ptr<RunState>> acquire(std::span<const Datum> inputs);
  // After a run without errors. Plans places after the first run with these extents.
  void release(std::unique_ptr<RunState> state);

  // Memory for passed values and what segments are lent, of one run: of the extents that need most, if they are known
  // from runs only.
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
  // With what segments are lent, beside the values.
  ValuePlan plan_with_arenas(std::vector<PassedValue> values) const;
  std::shared_ptr<const ValuePlan> plan_seen(RunState& state) const;

  const CompiledModel::Parts& parts_;
  const RunPlan& plan_;
  Spare<RunState> spare_;  // the last one released, if nobody has taken it since; owned
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<RunState>> idle_;  // the most recent last
  std::list<Known> known_;                       // the most recent first; one entry when nothing is open
};

}  // namespace tenon::detail
