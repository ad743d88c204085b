// The targets of the plugin: convolutions, products, pools and sums as commands of an NVDLA-like machine.
#pragma once
#include <memory>

#include <tenon/plugin/backend.hpp>

namespace tenon::nvdla {

// An error for a machine whose numbers contradict one another, or for a chain among `fusions` that it has no units for.
Result<std::unique_ptr<TargetBackend>> create_backend(const TargetDescription& description);

}  // namespace tenon::nvdla
