// Executables of a C plugin.
#pragma once
#include <tenon/plugin/plain_device_internal.hpp>
#include <tenon/runtime/executable.hpp>

namespace tenon::plugin_room {

// The plugin may point into `constants` and `bytes`.
std::unique_ptr<Executable> make_plain_executable(DevicePtr owner, std::shared_ptr<Device> device,
                                                  tenon_executable* handle, std::vector<ValueInfo> inputs,
                                                  std::vector<ValueInfo> outputs, std::vector<Tensor> constants,
                                                  std::shared_ptr<void> bytes);

// Storage format: inputs and outputs as text, padded to 64 bytes, then the plugin's own bytes.
struct Stored {
  std::vector<ValueInfo> inputs, outputs;
  std::span<const std::byte> bytes;
};
Result<Stored> read_stored(std::span<const std::byte> bytes);

}  // namespace tenon::plugin_room
