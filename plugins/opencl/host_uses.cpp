#include "opencl/host_uses.hpp"

#include <algorithm>

namespace tenon::opencl {

void HostUses::before(Access access, std::span<const std::byte> range, cl_command_queue queue, WaitList& waits) const {
  for (const Use& use : uses_)
    if (use.queue != queue && (access == Access::write || use.access == Access::write) && overlap(use.range, range))
      waits.add(use.event);
}

void HostUses::add(Access access, std::span<const std::byte> range, cl_command_queue queue, EventObject event) {
  if (uses_.size() >= most_) {
    std::erase_if(uses_, [&](const Use& use) { return status_of(*cl_, use.event.get()) <= CL_COMPLETE; });
    most_ = std::max(kLeastKept, 2 * uses_.size());
  }
  uses_.push_back({range, access, queue, std::move(event)});
}

}  // namespace tenon::opencl
