#include <tenon/runtime/host_run.hpp>

namespace tenon {

HostRun::~HostRun() = default;

}  // namespace tenon
