// The forms of Conv and ConvTranspose, and what they share. convolutions.cpp selects the form.
#pragma once
#include <optional>

#include "opencl/compute/images.hpp"
#include "opencl/compute/planes.hpp"
#include "opencl/compute/tile.hpp"
#include "opencl/compute/windows.hpp"

namespace tenon::opencl {

// n: 0 images, 1 input channels, 2 output channels, 3 groups, 4 inputs and 5 outputs of a channel, 6 taps, 7 whether
// the image is read as a plain matrix, 8 rows (output channels) of a job, 9 channels and 10 taps of a panel, then the
// axes.
inline constexpr int kConvAxes = 11;
ComputeLaunch conv_launch(const Dims& x, const Dims& y, int64_t group, const std::vector<WindowAxis>& axes);
// Whether there are no pads, no strides and only one tap.
bool is_plain(const std::vector<WindowAxis>& axes);

// The spatial extents of the weights.
std::vector<Dim> kernel_of(const Dims& w);
// Defines BIAS(i): operand 2, or 0.
void define_bias(ComputeSource& source, const irgen::KernelRequest& request, ElementType work);
// The operands of the product: A, the weights, X, ROW_OF_A(row), START(row), LINE(row) for output channel `row` of a
// group.
void define_conv_operands(ComputeSource& source, const irgen::KernelRequest& request, ElementType work);

// For convolutions whose groups have one input channel, and few output channels, because each reads the input again.
std::optional<PlaneWindow> depthwise_window(const irgen::KernelRequest& request, ElementType work, int64_t group,
                                            const ComputeTarget& target);
Result<ComputeKernel> make_depthwise(const irgen::KernelRequest& request, const PlaneWindow& window, int64_t group,
                                     const ComputeTarget& target, const Epilogue& epilogue);

// Nothing where an extent of a channel is known only to a run, or the image is a plain matrix or does not fit.
struct TiledImageConv {
  ImageConv conv;
  ImageTile tile;
};
std::optional<TiledImageConv> image_conv(const irgen::KernelRequest& request, ElementType work, int64_t group,
                                         const ComputeTarget& target);
Result<ComputeKernel> make_image_conv(const irgen::KernelRequest& request, const TiledImageConv& form,
                                      const ComputeTarget& target, const Epilogue& epilogue);

// For work groups of several items.
Result<ComputeKernel> make_group_conv(const irgen::KernelRequest& request, const ProductExtents& extents,
                                      ElementType work, int64_t group, const ComputeTarget& target,
                                      const Epilogue& epilogue);

Result<ComputeKernel> make_conv_transpose(const irgen::KernelRequest& request, const ComputeTarget& target);

}  // namespace tenon::opencl
