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

struct Error::Parts {
  Code code;
  std::string message;
  std::vector<std::string> frames;
};

Error::Error(Code code, std::string message) : parts_(new Parts{code, std::move(message), {}}) {}
Error::Error(const Error& other) : parts_(new Parts(other.parts())) {}
Error::Error(Error&&) noexcept = default;
Error& Error::operator=(const Error& other) { return *this = Error(other); }
Error& Error::operator=(Error&&) noexcept = default;
Error::~Error() = default;

const Error::Parts& Error::parts() const {
  static const Parts gone{Code::internal, "an error that was moved away", {}};
  return parts_ ? *parts_ : gone;
}

Code Error::code() const { return parts().code; }
const std::string& Error::message() const { return parts().message; }
const std::vector<std::string>& Error::frames() const { return parts().frames; }

Error Error::with_frame(std::string frame) && {
  Error out = parts_ ? std::move(*this) : *this;
  out.parts_->frames.push_back(std::move(frame));
  return out;
}

std::string Error::to_string() const {
  std::string out = message();
  for (const auto& frame : frames()) out += str("\n  in ", frame);
  return out;
}

namespace detail {
void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "tenon: %s (%s) at %s:%d\n", message.c_str(), condition, file, line);
  std::abort();
}
}  // namespace detail

}  // namespace tenon
