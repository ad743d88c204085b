// What OpenCL devices of this machine say of themselves, and which of them a target means.
//
// The first question is asked in a process of its own: drivers start threads, and some crash or hang. So a process that
// only lists devices, or forks before it runs something, never has a driver in it.
#pragma once
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <tenon/support/result.hpp>
#include <tenon/target/description.hpp>

#include "opencl/api.hpp"

namespace tenon::opencl {

// Answers to queries; plain data. Texts end with 0, longer ones are cut.
struct DeviceInfo {
  char platform[128], name[128], vendor[64], version[128], driver[128], extensions[4096];
  cl_device_type type;
  uint32_t platform_index, device_index;  // in the order of clGetPlatformIDs and clGetDeviceIDs
  uint32_t number;                        // among all devices: the N of "opencl:N"
  uint64_t global_bytes, most_allocation_bytes, local_bytes;
  uint64_t work_group_items, parameter_bytes;
  uint32_t compute_units, clock_mhz, alignment_bits, address_bits;
  uint32_t float_lanes;  // of the vectors that the machine has; 1 where lanes are work items
  cl_device_fp_config single_fp, double_fp;
  cl_bool available, compiler, little_endian;
  cl_bool shares_memory;      // with the host: a copy between them saves nothing
  cl_bool subgroups_feature;  // __opencl_c_subgroups, of OpenCL C 3.0
  uint32_t most_sub_groups;   // of a work group; 0: there are none
  uint32_t sub_group_sizes;   // that a kernel may ask for: those that are powers of two, as a sum

  bool has(std::string_view extension) const;
  bool fp64() const { return double_fp != 0; }
  // Compiles a kernel when it is first launched, for the work groups of that launch, and keeps the result on disk:
  // PoCL. For a program's binary it compiles every kernel once more, for any work groups, which no launch uses.
  bool compiles_at_launch() const;
  // The version of OpenCL C whose sub-group functions it has: "CL2.0", "CL3.0", or "" for none.
  std::string_view sub_group_language() const;
  bool rounds_divide_and_sqrt() const { return (single_fp & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0; }
};
static_assert(std::is_trivially_copyable_v<DeviceInfo>);

// All devices of all platforms, in order. Asked once in a process; any thread. None at all is an error that says so.
Result<std::vector<DeviceInfo>> devices();

// The queries, asked here and now.
Result<std::vector<DeviceInfo>> query_devices(const Api& cl);
// A device of that information in this process.
Result<cl_device_id> device_id(const Api& cl, const DeviceInfo& info);

// Which device the options `device_type` (cpu, gpu or any), `platform` (part of its name) and `device` (the N of
// "opencl:N") of a target file mean: the first that fits. Code::not_found lists what there is instead.
Result<DeviceInfo> device_of(const TargetDescription& target);

// The description with what the device has said: its features, memories, vector width and compute units.
TargetDescription described(TargetDescription target, const DeviceInfo& info);

// Features of described(), for rows of the jitter table.
inline constexpr std::string_view kFp64 = "fp64", kRoundedDivide = "correctly-rounded-divide-sqrt";

}  // namespace tenon::opencl
