// Sub-groups: work items of a work group that a device executes together, so that they can exchange values without
// local memory and barriers.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <tenon/target/description.hpp>

namespace tenon::opencl {

// The features that sources may use. The driver chooses which items form a sub-group, and how many; the last sub-group
// of a work group may have fewer.
struct SubGroups {
  bool there = false;    // sub_group_reduce_add, sub_group_broadcast and the others of cl_khr_subgroups
  bool shuffle = false;  // sub_group_shuffle
  int64_t size = 0;      // the size that kernels request; 0: any
};

// Features that described() adds (device_info.hpp).
inline constexpr std::string_view kSubGroups = "subgroups", kSubGroupShuffle = "subgroup-shuffle";
SubGroups sub_groups_of(const TargetDescription& target, int64_t size);

// At the head of each source that uses sub-groups: selects the version of OpenCL C that has them.
inline constexpr std::string_view kSubGroupHead = R"(#ifdef cl_khr_subgroups
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#endif
)";
// Before a kernel with work groups of `group` items: requests the size, if the group consists of whole sub-groups.
std::string sub_group_attribute(const SubGroups& sub_groups, int64_t group);

}  // namespace tenon::opencl
