// Inside the room: executables of the core that check the values of a run against their types themselves.
#pragma once

namespace tenon::plugin_room {

// A base of them beside HostRun: guards do not check the values of their runs.
class ChecksValues {
 public:
  virtual ~ChecksValues() = default;
};

}  // namespace tenon::plugin_room
