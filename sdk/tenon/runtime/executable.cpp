#include <tenon/runtime/executable.hpp>

namespace tenon {

Result<std::string> Executable::serialize() const {
  return error(Code::unsupported, "this target does not store compiled code");
}

}  // namespace tenon
