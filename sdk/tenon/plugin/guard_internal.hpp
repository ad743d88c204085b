// Calls into plugin code that turn its exceptions into errors, and wrappers that use such calls.
#pragma once
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include <tenon/plugin/backend.hpp>

namespace tenon::plugin_room {

// Objects made by a plugin keep its library loaded: every wrapper holds one of these.
struct Origin {
  std::string plugin;             // its name, for messages
  std::shared_ptr<void> library;  // null: built in
};
using OriginPtr = std::shared_ptr<const Origin>;

// `body` returns a Result; `what` is the call, such as "build()".
template <class Body>
auto guarded(const Origin& origin, std::string_view what, const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return error(Code::resource_exhausted, "plugin '", origin.plugin, "' ran out of memory in ", what);
  } catch (const std::exception& thrown) {
    return error(Code::plugin, "plugin '", origin.plugin, "' threw in ", what, ": ", thrown.what());
  } catch (...) {
    return error(Code::plugin, "plugin '", origin.plugin, "' threw something that is no std::exception in ", what);
  }
}

// The backend behind guards, as are the executables, devices, buffers, streams and events that come from it. `made` is
// not null.
Result<std::unique_ptr<TargetBackend>> guard_backend(OriginPtr origin, std::unique_ptr<TargetBackend> made);

// Checks that an executable declares the counts, names and types of the graph, in order.
Result<void> check_signature(const Origin& origin, const Executable& made, const std::vector<ValueInfo>& inputs,
                             const std::vector<ValueInfo>& outputs);

}  // namespace tenon::plugin_room
