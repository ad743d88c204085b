// DevicePlan: the launches of a program for one combination of extents.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <tenon/irgen/from_graph.hpp>
#include <tenon/program/exec/flatten.hpp>

#include "opencl/cl_stream.hpp"
#include "opencl/compiler.hpp"
#include "opencl/guard_zones.hpp"

namespace tenon::opencl {

// Memory that is passed to a launch.
struct MemoryPlace {
  enum class Kind : uint8_t { arena, constants, input, output, faults };
  Kind kind = Kind::arena;
  size_t number = 0;  // for kinds input and output
};

struct Launch {
  std::string stage;
  std::string source;                           // empty: a copy of one block of bytes
  std::shared_ptr<const BuiltProgram> program;  // built from `source`; null where there is none
  std::string_view kernel;                      // name of the kernel
  int64_t first_word = 0;
  int64_t chunks = 0;           // for a snippet; 0: a move or a compute kernel
  int64_t items = 0;            // requested work items
  int64_t group = 1;            // work-group size
  std::vector<MemoryPlace> at;  // memory of its ports; for moves and copies: destination, source
  int64_t bytes = 0, to = 0, from = 0;
};

// What a run needs for itself. Concurrent runs of a plan have one each.
struct RunContext {
  Memory arena;
  Memory faults;                      // one int, if the plan has launches that can fail
  std::vector<KernelObject> kernels;  // by launch; none for copies of blocks
  cl_command_queue queue = nullptr;   // of its last run, which has ended when last_use is complete
  EventObject last_use;
};

struct DevicePlan {
  std::vector<Launch> launches;
  std::vector<Dims> output_dims;
  size_t arena_bytes = 0, arena_lower_bound_bytes = 0;
  Memory words;
  bool can_fail = false;  // some launch may detect invalid data; it then writes its number + 1 to RunContext::faults
  std::unique_ptr<GuardZones> guards;  // null unless the option is set; then inputs and outputs are in the arena, too

  std::mutex mutex;
  std::deque<std::unique_ptr<RunContext>> idle;
};

// Offsets of constants in their memory, by GraphProgram::constants.
struct PlanSources {
  ClDevice& device;
  const Compiler& compiler;
  const irgen::GraphProgram& program;
  const std::vector<int64_t>& constant_offsets;
  const SymbolValues& scalars;
};

// Waits for the stream, because the words are copied to the device.
Result<std::shared_ptr<DevicePlan>> plan_launches(const PlanSources& sources, const program::FlatProgram& flat,
                                                  ClStream& stream);

}  // namespace tenon::opencl
