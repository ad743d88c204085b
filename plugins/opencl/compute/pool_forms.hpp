// Shared by the forms of pools, and the form by planes (planes.hpp).
#pragma once
#include <optional>
#include <string>

#include "opencl/compute/planes.hpp"
#include "opencl/compute/windows.hpp"

namespace tenon::opencl {

// A value less than or equal to every element: the result of a window in the padding.
std::string least_of(ElementType work);
// The padding after each axis: as stated, or as the last window requires.
Dims pads_end(const Op& op, const std::vector<WindowAxis>& axes);

// The window, if the pool can use the form by planes.
std::optional<PlaneWindow> pool_window(const irgen::KernelRequest& request, const ComputeTarget& target);
Result<ComputeKernel> make_plane_max_pool(const irgen::KernelRequest& request, const ComputeTarget& target,
                                          const PlaneWindow& window);
// For floats.
Result<ComputeKernel> make_plane_average_pool(const irgen::KernelRequest& request, const ComputeTarget& target,
                                              const PlaneWindow& window);

}  // namespace tenon::opencl
