// The targets of the plugin. Snippets and compute kernels become OpenCL C, data movement becomes copies on the device,
// and everything else is refused.
//
// Options of a target file:
//   device_type, platform, device   select the device (device_info.hpp)
//   work_group                      work items of a work group. Default 1 on a CPU, where an item is a call, else 64
//   lanes                           32-bit lanes of a vector. Default: as the device has, 4 to 16
//   fuse                            false: each operator is a kernel of its own. Default true
#pragma once
#include <memory>

#include <tenon/plugin/backend.hpp>

namespace tenon::opencl {

// An error when no device matches the description. The device is opened on first use.
Result<std::unique_ptr<TargetBackend>> create_backend(const TargetDescription& description);

}  // namespace tenon::opencl
