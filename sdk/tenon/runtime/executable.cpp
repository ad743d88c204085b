#include <tenon/runtime/executable.hpp>

namespace tenon {

Result<std::string> Executable::serialize() const {
  return error(Code::unsupported, "this target does not store compiled code");
}

Result<std::string> Executable::listing() const {
  return error(Code::unsupported, "this target generates no code that can be shown");
}

}  // namespace tenon
