// DeviceRun: one run of a DevicePlan, from its inputs on the device to the event of its last command.
#pragma once
#include <span>
#include <vector>

#include <tenon/runtime/executable.hpp>

#include "opencl/cl_stream.hpp"
#include "opencl/device_plan.hpp"

namespace tenon::opencl {

// Not thread safe; all arguments must outlive it.
class DeviceRun {
 public:
  DeviceRun(ClStream& stream, DevicePlan& plan, cl_mem constants, std::vector<OpProfile>* profile)
      : stream_(stream), plan_(plan), constants_(constants), profile_(profile) {}

  // Enqueues the run. Inputs and outputs are on the device.
  Result<EventPtr> run(std::span<const RunValue> inputs, std::span<const RunValue> outputs);

 private:
  // Makes inputs readable by kernels: at the begin of memory that belongs to the device, or is lent to it.
  Result<void> place(std::span<const RunValue> inputs);
  Result<void> enqueue_all(WaitList& waits);
  Result<void> clear_faults(WaitList& waits);
  Result<void> check_faults();
  Result<void> enqueue(size_t number, WaitList& waits);
  Result<void> take_back();
  // Submits the enqueued work; `waits` are waited for where there is none.
  Result<void> begin(const WaitList& waits);
  // Records the use of everything that the run reads and writes.
  void used(const EventObject& event);
  cl_mem at(const MemoryPlace& place) const;
  static std::vector<cl_mem> objects_of(std::span<const RunValue> values);

  ClStream& stream_;
  DevicePlan& plan_;
  const cl_mem constants_;
  std::vector<OpProfile>* const profile_;
  std::unique_ptr<RunContext> context_;
  std::vector<RunValue> inputs_;
  std::vector<const ClBuffer*> lent_;  // inputs in pinned memory, without duplicates
  std::span<const RunValue> outputs_;
  EventObject last_;  // of the last launch
};

}  // namespace tenon::opencl
