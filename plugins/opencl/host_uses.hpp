// Host memory that the work of one stream accesses.
#pragma once
#include <span>
#include <vector>

#include "opencl/cl_buffer.hpp"

namespace tenon::opencl {

inline bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

// Like Uses, for ranges of host memory. One thread at a time.
class HostUses {
 public:
  explicit HostUses(const Api& cl) : cl_(&cl) {}
  void before(Access access, std::span<const std::byte> range, cl_command_queue queue, WaitList& waits) const;
  void add(Access access, std::span<const std::byte> range, cl_command_queue queue, EventObject event);
  void clear() { uses_.clear(); }

 private:
  struct Use {
    std::span<const std::byte> range;
    Access access;
    cl_command_queue queue;
    EventObject event;
  };
  static constexpr size_t kLeastKept = 16;
  const Api* cl_;
  std::vector<Use> uses_;
  size_t most_ = kLeastKept;  // when there are more, completed uses are dropped
};

}  // namespace tenon::opencl
