// The device of a C plugin: its handles, and its memory as the runtime's Device.
#pragma once
#include <memory>
#include <string_view>

#include <tenon/plugin/plain_internal.hpp>
#include <tenon/runtime/device.hpp>
#include <tenon/support/log.hpp>

namespace tenon::plugin_room {

// Shared by all objects of one opened target.
struct Library {
  OriginPtr origin;
  tenon_slots slots;

  template <class... Parameters, class... Arguments>
  Result<void> call(std::string_view slot, int32_t (*function)(tenon_call*, Parameters...),
                    Arguments... arguments) const {
    return call_slot(*origin, slot, function, arguments...);
  }
  // Releases a handle; no caller is left to receive an exception.
  template <class Handle>
  void release(std::string_view slot, void (*function)(Handle*), Handle* handle) const {
    if (!handle) return;
    const auto done = guarded(*origin, slot, [&] { return function(handle), Result<void>(); });
    if (!done.ok()) log(LogLevel::error, done.error().message());
  }
  Error fault(std::string_view what) const { return error(Code::plugin, "plugin '", origin->plugin, "' ", what); }
};
using LibraryPtr = std::shared_ptr<const Library>;

// The plugin's device, closed when nobody uses it any more.
struct DeviceHandle {
  LibraryPtr library;
  tenon_device* handle = nullptr;
  ~DeviceHandle() { library->release("close_device", library->slots.close_device, handle); }
};
using DevicePtr = std::shared_ptr<DeviceHandle>;

// For a library with the group `memory`. handle_of accepts its buffers and streams.
std::shared_ptr<Device> make_plain_device(DevicePtr owner, const TargetDescription& description);
tenon_buffer* handle_of(const Buffer& buffer);
tenon_stream* handle_of(const Stream& stream);
// The event that `slot` returned for work on the stream; null is the plugin's fault.
Result<EventPtr> make_plain_event(const Stream& stream, std::string_view slot, tenon_event* event);

}  // namespace tenon::plugin_room
