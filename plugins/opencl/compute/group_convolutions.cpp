// Conv by blocks of output channels and positions for a work group (group_tile.hpp): an implicit product whose second
// factor is gathered from the image when it is used. The offset that a step of the inner extent (an input channel and a
// tap) adds to a position's place in the image is computed once for each panel, in local memory; the place of a
// position is in registers. An element then takes one addition, and a comparison along each axis.
#include <tenon/support/str.hpp>

#include "opencl/compute/conv_forms.hpp"
#include "opencl/compute/group_tile.hpp"

namespace tenon::opencl {
namespace {

// n as conv_launch() fills it.
constexpr std::string_view kConvolutionJob = R"(
    const int own = (int)LOCAL_ID;
    const long groups = n[3], channels = n[1] / groups, M = n[2] / groups, taps = n[6], N = n[5], K = channels * taps;
    const long row_blocks = (M + BLOCK_ROWS - 1) / BLOCK_ROWS, column_blocks = (N + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS;
    const long row0 = item % row_blocks * BLOCK_ROWS, column0 = item / row_blocks % column_blocks * BLOCK_COLUMNS;
    const long group = item / row_blocks / column_blocks % groups;
    const long image = item / row_blocks / column_blocks / groups;
    const long in_size = n[4], plane = (image * n[1] + group * channels) * in_size;
)";

constexpr std::string_view kPlaces =
    R"(    // Compilers read the table anew behind each barrier.
    int extents[R];
#pragma unroll
    for (int d = 0; d < R; ++d) extents[d] = IN(d);
    // Where the windows of this item's columns begin, which may be before the image.
    int begins[B_PASSES * R];
    long places[B_PASSES];
#pragma unroll
    for (int i = 0; i < B_PASSES; ++i) {
      long rest = min(column0 + B_LINE(i), N - 1), place = 0;
#pragma unroll
      for (int d = R - 1; d >= 0; --d) {
        begins[i * R + d] = (int)(rest % OUT(d)) * STRIDE(d) - BEGIN(d);
        rest /= OUT(d);
      }
#pragma unroll
      for (int d = 0; d < R; ++d) place = place * IN(d) + begins[i * R + d];
      places[i] = plane + place;
    }
)";

// Channel and tap of each step, as an element offset from a window's begin and as steps along each axis.
constexpr std::string_view kPrepare = R"(
      for (int k = own; k < DEPTH; k += LOCAL_SIZE) {
        long behind = (from + k) / taps;
        int rest = (int)((from + k) % taps);
#pragma unroll
        for (int d = R - 1; d >= 0; --d) {
          steps[k * R + d] = rest % KERNEL(d) * DILATION(d);
          rest /= KERNEL(d);
        }
#pragma unroll
        for (int d = 0; d < R; ++d) behind = behind * IN(d) + steps[k * R + d];
        step_places[k] = behind;
      }
)";

constexpr std::string_view kInside = R"(        const int window = i % B_PASSES, behind = B_K(i);
        if (inside) {
#pragma unroll
          for (int d = 0; d < R; ++d) inside &= (uint)(begins[window * R + d] + steps[behind * R + d]) < (uint)extents[d];
        }
)";

constexpr std::string_view kWeights = "A(ROW_OF_A(min(row0 + A_LINE(i), M - 1)) + k)";
constexpr GroupPanels kGathered{
    .a = kWeights, .b = "X(places[window] + step_places[behind])", .b_inside = kInside, .prepare = kPrepare};
// A plain image is a matrix of channels by positions.
constexpr GroupPanels kMatrices{
    .a = kWeights, .b = "X(plane + k * in_size + min(column0 + B_LINE(i), N - 1))", .b_inside = {}, .prepare = {}};

bool is_known_plain(const irgen::KernelRequest& request) {
  if (!request.is_static()) return false;
  const auto dims = [](const Type& type) { return *type.shape().static_dims(); };
  const auto axes = window_axes(request.op, spatial_of(dims(request.operands[0])), spatial_of(dims(request.results[0])),
                                kernel_of(dims(request.operands[1])));
  return axes.ok() && is_plain(*axes);
}

}  // namespace

Result<ComputeKernel> make_group_conv(const irgen::KernelRequest& request, const ProductExtents& extents,
                                      ElementType work, int64_t group, const ComputeTarget& target,
                                      const Epilogue& epilogue) {
  const auto y = request.results[0].shape().static_dims();
  constexpr double kOfGathered = 12;  // cost of an element of the image, in multiply-adds
  const int64_t matrices = group * (y && !y->empty() ? y->front() : 1);
  const GroupTile tile = choose_group_tile(extents, matrices, work, target, kOfGathered);
  ComputeSource source(request, target);
  source.vectors_of(tile.lanes);
  define_group_tile(source, tile, work, true, false);
  const bool plain = is_known_plain(request);
  if (!plain) source.local("  __local long step_places[DEPTH];\n  __local int steps[DEPTH * R];\n");
  source.define("AFTER(x, row, at, count)", "(void)0");
  define_conv_operands(source, request, work);
  define_axes(source, spatial_rank(request, 0), kConvAxes);
  source.finish(epilogue, tile.lanes);
  return source.kernel(str(kConvolutionJob, plain ? "" : kPlaces,
                           group_product_body(tile, plain ? kMatrices : kGathered, is_short(epilogue))),
                       [op = &request.op, tile, group](const CallShapes& shapes) -> Result<ComputeLaunch> {
                         const Dims &x = shapes.operands[0], &w = shapes.operands[1], &y = shapes.results[0];
                         TENON_TRY(axes, window_axes(*op, spatial_of(x), spatial_of(y), kernel_of(w)));
                         ComputeLaunch made = conv_launch(x, y, group, axes);
                         made.items = tile.jobs(y[1] / group, elements_of(spatial_of(y)), y[0] * group);
                         return made;
                       });
}

}  // namespace tenon::opencl
