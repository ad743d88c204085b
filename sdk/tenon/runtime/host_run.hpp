// HostRun: executables that can run at once, on the calling thread and host data alone, without a stream.
#pragma once
#include <memory>
#include <span>

#include <tenon/runtime/executable.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/support/settled_call.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon {

// A run whose inputs and outputs are known, so that what depends on them is looked up once. One thread at a time.
class TENON_API BoundRun {
 public:
  virtual ~BoundRun();
  virtual Result<void> run() = 0;
  // All that run() does, in order, to be made instead of it as long as this lives; empty: ask run().
  virtual std::span<const SettledCall> settled() const { return {}; }
};

// A second base of an Executable whose device is_host(). Asked for by dynamic_cast, so that the seam to plugins stays
// as it is, and those without it run as they do.
class TENON_API HostRun {
 public:
  virtual ~HostRun();
  // Executable::enqueue and the wait for it, as short as they can be. Inputs are only read; outputs are places or
  // absent, as those of enqueue. Several threads may run at once. After an error outputs hold anything.
  virtual Result<void> run(std::span<const Datum* const> inputs, std::span<Datum* const> outputs,
                           const RunOptions& options) const = 0;
  // Of Executable::arena_bytes(): what may lie in RunOptions::arena, so that executables that run one after another
  // share it. It may grow with the extents of runs.
  virtual size_t lendable_bytes() const { return 0; }
  // Runs that read these inputs and write these outputs, all places of the right types and extents. The executable, the
  // data and what `options` point to outlive it; bytes of the data may change from run to run, where they lie may not.
  // Null: nothing is to be gained, run() serves.
  virtual Result<std::unique_ptr<BoundRun>> bind(std::span<const Datum* const> inputs, std::span<Datum* const> outputs,
                                                 const RunOptions& options) const;
};

}  // namespace tenon
