#include <tenon/runtime/host_run.hpp>

namespace tenon {

BoundRun::~BoundRun() = default;
HostRun::~HostRun() = default;

Result<std::unique_ptr<BoundRun>> HostRun::bind(std::span<const Datum* const>, std::span<Datum* const>,
                                                const RunOptions&) const {
  return std::unique_ptr<BoundRun>();
}

}  // namespace tenon
