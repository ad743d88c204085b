// Diagnostics on standard error. Standard output belongs to results.
#pragma once
#include <string>

#include <tenon/support/export.hpp>
#include <tenon/support/str.hpp>

namespace tenon {

enum class LogLevel : uint8_t { error, warning, info, debug };

// The lowest level that is printed; initially `warning`. Any thread.
TENON_API void set_log_level(LogLevel level);
TENON_API LogLevel log_level();
TENON_API void log_message(LogLevel level, const std::string& message);

template <class... Parts>
void log(LogLevel level, const Parts&... parts) {
  if (level <= log_level()) log_message(level, str(parts...));
}

}  // namespace tenon
