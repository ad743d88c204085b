// The passes that every graph goes through before targets see it.
#pragma once
#include <tenon/passes/pass_manager.hpp>
#include <tenon/support/export.hpp>

namespace tenon {

TENON_API Result<PassManager> standard_passes();

}  // namespace tenon
