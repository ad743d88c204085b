// TENON_CHECK(condition, parts...): an invariant of the program itself. On failure prints a sentence made of the parts
// with file and line, and aborts. Wrong input (models, YAML, plugins, arguments) must give a Result instead.
#pragma once
#include <tenon/support/export.hpp>
#include <tenon/support/str.hpp>

namespace tenon::detail {
[[noreturn]] TENON_API void check_failed(const char* file, int line, const char* condition, const std::string& message);
}

#define TENON_CHECK(condition, ...)                                                             \
  do {                                                                                          \
    if (!(condition)) [[unlikely]]                                                              \
      ::tenon::detail::check_failed(__FILE__, __LINE__, #condition, ::tenon::str(__VA_ARGS__)); \
  } while (0)
