// Inside of the room: executables of the core that hold the values of a run against their types themselves.
#pragma once

namespace tenon::plugin_room {

// A base of theirs beside HostRun: guards leave the values of their runs to them.
class ChecksValues {
 public:
  virtual ~ChecksValues() = default;
};

}  // namespace tenon::plugin_room
