#include "opencl/sub_groups.hpp"

#include <tenon/support/str.hpp>

namespace tenon::opencl {

SubGroups sub_groups_of(const TargetDescription& target, int64_t size) {
  if (!target.has_feature(kSubGroups)) return {};
  return {.there = true, .shuffle = target.has_feature(kSubGroupShuffle), .size = size};
}

std::string sub_group_attribute(const SubGroups& sub_groups, int64_t group) {
  if (sub_groups.size == 0 || group % sub_groups.size != 0) return {};
  return str("__attribute__((intel_reqd_sub_group_size(", sub_groups.size, "))) ");
}

}  // namespace tenon::opencl
