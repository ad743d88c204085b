// Sub-groups: items of a work group that a device runs together, so that they hand one another values without local
// memory and barriers.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <tenon/target/description.hpp>

namespace tenon::opencl {

// What sources may ask of them. Which items are in one, and how many, is the driver's choice, and the last one of a
// work group may have less.
struct SubGroups {
  bool there = false;    // sub_group_reduce_add, sub_group_broadcast and the others of cl_khr_subgroups
  bool shuffle = false;  // sub_group_shuffle
  int64_t size = 0;      // items that kernels ask for; 0: as many as the driver likes
};

// Features of described() (device_info.hpp).
inline constexpr std::string_view kSubGroups = "subgroups", kSubGroupShuffle = "subgroup-shuffle";
SubGroups sub_groups_of(const TargetDescription& target, int64_t size);

// At the head of each source that uses them: it is compiled as the version of OpenCL C that has them.
inline constexpr std::string_view kSubGroupHead = R"(#ifdef cl_khr_subgroups
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#endif
)";
// Before a kernel of work groups of `group` items: the size, where groups are made of whole ones; else nothing.
std::string sub_group_attribute(const SubGroups& sub_groups, int64_t group);

}  // namespace tenon::opencl
