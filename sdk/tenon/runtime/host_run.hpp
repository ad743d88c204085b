// HostRun: executables that can run synchronously, on the calling thread and on host data only, without a stream.
#pragma once
#include <memory>
#include <span>

#include <tenon/runtime/executable.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/support/settled_call.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon {

// A run with fixed inputs and outputs, so that what depends on them is looked up once. Not thread-safe.
class TENON_API BoundRun {
 public:
  virtual ~BoundRun();
  virtual Result<void> run() = 0;
  // All that run() does, in order, to be called instead of it while this object lives; empty: call run().
  virtual std::span<const SettledCall> settled() const { return {}; }
};

// A second base of an Executable whose device is_host(). Found by dynamic_cast, so that the plugin seam is unchanged
// and executables without it run as before.
class TENON_API HostRun {
 public:
  virtual ~HostRun();
  // Executable::enqueue and the wait for it, with as little overhead as possible. Inputs are only read; outputs are
  // places or absent, as for enqueue. Thread-safe. After an error the contents of outputs are unspecified.
  virtual Result<void> run(std::span<const Datum* const> inputs, std::span<Datum* const> outputs,
                           const RunOptions& options) const = 0;
  // The part of Executable::arena_bytes() that may lie in RunOptions::arena, so that executables that run one after
  // another can share it. It may grow with the extents of runs.
  virtual size_t lendable_bytes() const { return 0; }
  // Runs that read these inputs and write these outputs, all of which are places of the right types and extents. The
  // executable, the data and what `options` points to outlive it. The contents of the data may change between runs,
  // their addresses may not. Null: there is no gain over run().
  virtual Result<std::unique_ptr<BoundRun>> bind(std::span<const Datum* const> inputs, std::span<Datum* const> outputs,
                                                 const RunOptions& options) const;
};

}  // namespace tenon
