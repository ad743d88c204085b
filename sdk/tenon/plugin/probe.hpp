// Trial runs in a child process: of plugins before they are loaded, and of drivers that a plugin queries.
#pragma once
#include <functional>
#include <string>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::plugin_room {

// Runs `attempt` in a forked child, whose output is dropped and whose files but one are closed. Returns the result of
// `attempt`; a child that dies, exits or takes longer than the limit (TENON_PLUGIN_TIMEOUT seconds, 10 by default) is
// Code::plugin. `what` names the attempt: "plugin '/a/b.so'".
TENON_API Result<void> probe(const std::string& what, const std::function<Result<void>()>& attempt);

}  // namespace tenon::plugin_room
