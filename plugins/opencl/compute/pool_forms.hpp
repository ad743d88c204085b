// What the forms of pools share, and the form by planes (planes.hpp).
#pragma once
#include <optional>
#include <string>

#include "opencl/compute/planes.hpp"
#include "opencl/compute/windows.hpp"

namespace tenon::opencl {

// Less than, or equal to, every element: what a window in the padding gives.
std::string least_of(ElementType work);
// The padding behind each axis: as stated, or what the last window needs.
Dims pads_end(const Op& op, const std::vector<WindowAxis>& axes);

// The window when the pool can work on planes.
std::optional<PlaneWindow> pool_window(const irgen::KernelRequest& request, const ComputeTarget& target);
Result<ComputeKernel> make_plane_max_pool(const irgen::KernelRequest& request, const ComputeTarget& target,
                                          const PlaneWindow& window);
// Of floats.
Result<ComputeKernel> make_plane_average_pool(const irgen::KernelRequest& request, const ComputeTarget& target,
                                              const PlaneWindow& window);

}  // namespace tenon::opencl
