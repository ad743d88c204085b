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

// Memory that a launch is given.
struct MemoryPlace {
  enum class Kind : uint8_t { arena, constants, input, output, faults };
  Kind kind = Kind::arena;
  size_t number = 0;  // of an input or output
};

struct Launch {
  std::string stage;
  std::string source;                           // empty: a copy of one block of bytes
  std::shared_ptr<const BuiltProgram> program;  // of the source; null where there is none
  std::string_view kernel;                      // its name
  int64_t first_word = 0;
  int64_t chunks = 0;           // of a snippet; 0: a move or a compute kernel
  int64_t items = 0;            // work items wanted
  int64_t group = 1;            // of a work group
  std::vector<MemoryPlace> at;  // of its ports; of moves and copies: destination, source
  int64_t bytes = 0, to = 0, from = 0;
};

// What one run at a time needs.
struct RunContext {
  Memory arena;
  Memory faults;                      // one int, if the plan has launches that can fail
  std::vector<KernelObject> kernels;  // by launch; none for copies of blocks
  cl_command_queue queue = nullptr;   // that it was enqueued on last, and until when
  EventObject last_use;
};

struct DevicePlan {
  std::vector<Launch> launches;
  std::vector<Dims> output_dims;
  size_t arena_bytes = 0, arena_lower_bound_bytes = 0;
  Memory words;
  bool can_fail = false;  // a launch may find data wrong, and writes its number, plus 1, to RunContext::faults
  std::unique_ptr<GuardZones> guards;  // null without the option: inputs and outputs lie in the arena where it is there

  std::mutex mutex;
  std::deque<std::unique_ptr<RunContext>> idle;
};

// Where the bytes of constants lie in their memory, by GraphProgram::constants.
struct PlanSources {
  ClDevice& device;
  const Compiler& compiler;
  const irgen::GraphProgram& program;
  const std::vector<int64_t>& constant_offsets;
  const SymbolValues& scalars;
};

// Waits for the stream: the words are copied to the device.
Result<std::shared_ptr<DevicePlan>> plan_launches(const PlanSources& sources, const program::FlatProgram& flat,
                                                  ClStream& stream);

}  // namespace tenon::opencl
