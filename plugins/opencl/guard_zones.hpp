// GuardZones: a bit pattern before and after every buffer of a plan. A kernel that writes outside its buffers is
// detected, and reported with the buffer. For tests: option guard_zones of a target.
//
//   zone | buffer a | zone ... zone | buffer b | zone
//
// With zones, a run copies its inputs into the arena and its outputs out of it, no memory of the arena is reused, and
// each launch is waited for. Uninitialised memory holds the pattern as well, which is NaN in every float type, so that
// reading it gives results that differ from the reference.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "opencl/cl_stream.hpp"

namespace tenon::opencl {

// A stream by one thread at a time.
class GuardZones {
 public:
  // `bytes`: size of each zone.
  explicit GuardZones(size_t bytes) : bytes_(bytes) {}

  // Adds a buffer at `begin` of the arena, with space for a zone on both sides.
  void add(std::string buffer, size_t begin, size_t bytes) { buffers_.push_back({std::move(buffer), begin, bytes}); }
  // The buffer added last is the next input, or output, of the run.
  void is_input() { inputs_.push_back(buffers_.size() - 1); }
  void is_output() { outputs_.push_back(buffers_.size() - 1); }

  // Fills an arena of `arena_bytes` with the pattern and the inputs. `waits`: for the producers of the inputs.
  Result<void> begin(ClStream& stream, cl_mem arena, size_t arena_bytes, std::span<const cl_mem> inputs,
                     const WaitList& waits) const;
  // Code::internal names the launch and the buffer whose zone has changed.
  Result<void> check(ClStream& stream, cl_mem arena, size_t arena_bytes, std::string_view launch) const;
  // Copies outputs; they are complete when this returns.
  Result<void> end(ClStream& stream, cl_mem arena, std::span<const cl_mem> outputs) const;

 private:
  struct Guarded {
    std::string name;
    size_t begin = 0, bytes = 0;
  };
  Result<void> check(const Guarded& buffer, std::span<const std::byte> arena, std::string_view launch) const;

  const size_t bytes_;
  std::vector<Guarded> buffers_;
  std::vector<size_t> inputs_, outputs_;  // indices of buffers
};

}  // namespace tenon::opencl
