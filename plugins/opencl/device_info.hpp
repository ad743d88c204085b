// What the OpenCL devices of this machine report, and which of them a target selects.
//
// The first query runs in a child process, because drivers start threads, and some crash or hang. A process that only
// lists devices, or forks before it runs something, therefore never loads a driver.
#pragma once
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <tenon/support/result.hpp>
#include <tenon/target/description.hpp>

#include "opencl/api.hpp"

namespace tenon::opencl {

// Results of device queries; plain data. Texts are null-terminated, longer ones are truncated.
struct DeviceInfo {
  char platform[128], name[128], vendor[64], version[128], driver[128], extensions[4096];
  cl_device_type type;
  uint32_t platform_index, device_index;  // in the order of clGetPlatformIDs and clGetDeviceIDs
  uint32_t number;                        // among all devices: the N of "opencl:N"
  uint64_t global_bytes, most_allocation_bytes, local_bytes;
  uint64_t work_group_items, parameter_bytes;
  uint32_t compute_units, clock_mhz, alignment_bits, address_bits;
  uint32_t float_lanes;  // native vector width in floats; 1 where lanes are work items
  cl_device_fp_config single_fp, double_fp;
  cl_bool available, compiler, little_endian;
  cl_bool shares_memory;      // with the host, so that copies between them gain nothing
  cl_bool subgroups_feature;  // __opencl_c_subgroups, of OpenCL C 3.0
  uint32_t most_sub_groups;   // in a work group; 0: not supported
  uint32_t sub_group_sizes;   // the sizes that a kernel may request, powers of two, as a sum

  bool has(std::string_view extension) const;
  bool fp64() const { return double_fp != 0; }
  // Whether kernels are compiled when they are first launched, for the work-group size of that launch, and kept on disk
  // (PoCL). To make a program's binary, such a driver compiles each kernel once more, for any work-group size, which no
  // launch uses.
  bool compiles_at_launch() const;
  // The version of OpenCL C that has the device's sub-group functions: "CL2.0", "CL3.0", or "" for none.
  std::string_view sub_group_language() const;
  bool rounds_divide_and_sqrt() const { return (single_fp & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0; }
};
static_assert(std::is_trivially_copyable_v<DeviceInfo>);

// All devices of all platforms, in order. Queried once in a process; any thread. An error when there is none.
Result<std::vector<DeviceInfo>> devices();

// Queries in this process.
Result<std::vector<DeviceInfo>> query_devices(const Api& cl);
// The device in this process that corresponds to the information.
Result<cl_device_id> device_id(const Api& cl, const DeviceInfo& info);

// The device that the options `device_type` (cpu, gpu or any), `platform` (part of its name) and `device` (the N of
// "opencl:N") of a target file select: the first match. Code::not_found lists the devices that exist instead.
Result<DeviceInfo> device_of(const TargetDescription& target);

// The description, completed by what the device reports: features, memories, vector width and compute units.
TargetDescription described(TargetDescription target, const DeviceInfo& info);

// Features of described(), for rows of the jitter table.
inline constexpr std::string_view kFp64 = "fp64", kRoundedDivide = "correctly-rounded-divide-sqrt";

}  // namespace tenon::opencl
