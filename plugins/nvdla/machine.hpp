// A target of the plugin: its file, and what the file says of the hardware.
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
