#include <tenon/support/result.hpp>

#include <cstdio>
#include <cstdlib>

namespace tenon {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::invalid_argument: return "invalid_argument";
    case Code::not_found: return "not_found";
    case Code::already_exists: return "already_exists";
    case Code::unsupported: return "unsupported";
    case Code::resource_exhausted: return "resource_exhausted";
    case Code::io: return "io";
    case Code::parse: return "parse";
    case Code::plugin: return "plugin";
    case Code::internal: return "internal";
    case Code::cancelled: return "cancelled";
  }
  return "unknown";
}

std::string Error::to_string() const {
  std::string out = message_;
  for (const auto& frame : frames_) out += "\n  in " + frame;
  return out;
}

namespace detail {
void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "tenon: %s (%s) at %s:%d\n", message.c_str(), condition, file, line);
  std::abort();
}
}  // namespace detail

}  // namespace tenon
