// HostRun: executables that can run at once, on the calling thread and host data alone, without a stream.
#pragma once
#include <span>

#include <tenon/runtime/executable.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon {

// A second base of an Executable whose device is_host(). Asked for by dynamic_cast, so that the seam to plugins stays
// as it is, and those without it run as they do.
class TENON_API HostRun {
 public:
  virtual ~HostRun();
  // Executable::enqueue and the wait for it, as short as they can be. Inputs are only read; outputs are places or
  // absent, as those of enqueue. Several threads may run at once. After an error outputs hold anything.
  virtual Result<void> run(std::span<const Datum* const> inputs, std::span<Datum* const> outputs,
                           const RunOptions& options) const = 0;
};

}  // namespace tenon
