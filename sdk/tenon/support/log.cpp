#include <tenon/support/log.hpp>

#include <atomic>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace tenon {
namespace {

std::atomic<LogLevel> g_level{LogLevel::warning};

spdlog::logger& logger() {
  // Never destroyed: destructors of the host's statics may log. Private: the host's own spdlog registry is left alone.
  static auto* const made = [] {
    auto* logger = new spdlog::logger("tenon", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    logger->set_level(spdlog::level::trace);
    logger->set_pattern("tenon: %^%l%$: %v");
    return logger;
  }();
  return *made;
}

}  // namespace

void set_log_level(LogLevel level) { g_level = level; }
LogLevel log_level() { return g_level; }

void log_message(LogLevel level, const std::string& message) {
  static constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::err, spdlog::level::warn, spdlog::level::info,
                                                          spdlog::level::debug};
  // Passed as an argument, not as the format: braces in a message are text.
  logger().log(kLevels[static_cast<int>(level)], "{}", message);
}

}  // namespace tenon
