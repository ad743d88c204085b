// A target of the plugin: its description, and the hardware that it states.
#pragma once
#include <memory>

#include <tenon/target/description.hpp>

#include "nvdla/hardware.hpp"

namespace tenon::nvdla {

struct Machine {
  TargetDescription description;
  Hardware hardware;
};
using MachinePtr = std::shared_ptr<const Machine>;

}  // namespace tenon::nvdla
