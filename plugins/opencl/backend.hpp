// The targets of the plugin: snippets as OpenCL C, movement as copies on the device, everything else refused.
//
// Options of a target file:
//   device_type, platform, device   which device it is (device_info.hpp)
//   work_group                      items of a work group. Default 1 on a CPU, where an item is a call, else 64
//   lanes                           32-bit lanes of a vector. Default: what the device has, 4 to 16
//   fuse                            false: every operator is a kernel of its own. Default true
#pragma once
#include <memory>

#include <tenon/plugin/backend.hpp>

namespace tenon::opencl {

// An error when no device is what the description wants. The device is opened when it is first used.
Result<std::unique_ptr<TargetBackend>> create_backend(const TargetDescription& description);

}  // namespace tenon::opencl
