// Windows whose taps do not form a block of the image: DeformConv reads each where an offset says, Col2Im sums
// overlapping blocks.
#include <algorithm>

#include <tenon/ir/builder.hpp>
#include <tenon/ops/convolution.hpp>
#include <tenon/ops/resize.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/compute_source.hpp"
#include "opencl/compute/windows.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

using irgen::KernelRequest;

// ---- Col2Im ----

// n: 0 elements and 1 blocks of an image, 2 taps, then the axes: IN of the image, OUT of the blocks.
constexpr int kFirstBlockAxis = 3;
constexpr std::string_view kBlocksBody = R"(
    const long plane = item / n[0] * n[2] * n[1];
    int at[R], k[R];
    long rest = item % n[0];
    for (int d = R - 1; d >= 0; --d) at[d] = (int)(rest % IN(d)) + BEGIN(d), rest /= IN(d), k[d] = 0;
    T sum = 0;
    for (long tap = 0; tap < n[2]; ++tap) {
      long block = 0;
      int inside = 1;
      for (int d = 0; d < R; ++d) {
        const int from = at[d] - k[d] * DILATION(d);
        inside &= from >= 0 && from % STRIDE(d) == 0 && from / STRIDE(d) < OUT(d);
        block = block * OUT(d) + from / STRIDE(d);
      }
      if (inside) sum += X(plane + tap * n[1] + block);
      NEXT_TAP(k);
    }
    Y(item, sum);
)";

Result<ComputeKernel> make_col2im(const KernelRequest& request, const ComputeTarget& target) {
  TENON_TRY(work, image_type(request));
  const Op* op = &request.op;
  ComputeSource source(request, target);
  source.define("T", scalar_name(work));
  const Shape& y = request.results[0].shape();
  define_axes(source, y.ranked() && y.rank() > 2 ? static_cast<size_t>(y.rank()) - 2 : 1, kFirstBlockAxis);
  source.load("X", 0, work);
  source.store("Y", 0, work);
  return source.kernel(kBlocksBody, [op](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const auto block = constant_ints_of(op->operand(2));
    if (!block) return error(Code::unsupported, "the blocks of ", op->describe(), " are known at a run only");
    const Dims &y = shapes.results[0], image = spatial_of(y);
    const std::vector<Dim> kernel(block->begin(), block->end());
    TENON_TRY(window, Window::of(*op, image.size(), kernel));
    Dims blocks;
    for (size_t d = 0; d < image.size(); ++d) {
      TENON_TRY(extent, window.output_extent(d, Dim(image[d])));
      if (!extent.is_static()) return error(Code::unsupported, op->describe(), ": the image is too large");
      blocks.push_back(extent.value());
    }
    TENON_TRY(axes, window_axes(*op, image, blocks, kernel));
    ComputeLaunch made{{elements_of(image), elements_of(blocks), elements_of(*block)}, elements_of(y)};
    add_axes(axes, made);
    return made;
  });
}

// ---- DeformConv ----

// n: 0 input channels, 1 output channels, 2 groups, 3 offset groups, 4 inputs and 5 outputs of a channel, 6 taps, then
// the axes. An item is BLOCK output channels at a position.
constexpr int kFirstDeformAxis = 7, kBlock = 8;
constexpr std::string_view kDeformBody = R"(
    const long groups = n[2], channels = n[0] / groups, outputs = n[1] / groups, in_size = n[4], N = n[5], taps = n[6];
    const long blocks = (outputs + BLOCK - 1) / BLOCK, position = item % N, block = item / N % blocks * BLOCK;
    const long group = item / N / blocks % groups, image = item / N / blocks / groups;
    S sums[BLOCK];
    for (int m = 0; m < BLOCK; ++m) sums[m] = 0;
    for (long channel = 0; channel < channels; ++channel) {
      const long plane = (image * n[0] + group * channels + channel) * in_size;
      const long line = image * n[3] + (group * channels + channel) / (n[0] / n[3]);
      int k[R];
      for (int d = 0; d < R; ++d) k[d] = 0;
      for (long tap = 0; tap < taps; ++tap) {
        long whole[R], rest = position;
        S fraction[R];
        int known = 1;
        for (int d = R - 1; d >= 0; --d) {
          const S start = (S)(rest % OUT(d) * STRIDE(d) + k[d] * DILATION(d) - BEGIN(d));
          rest /= OUT(d);
          const S at = start + (S)OFFSET(((line * taps + tap) * R + d) * N + position);
          known &= !isnan(at);
          const S near = known ? fmin(fmax(at, (S)-2), (S)IN(d) + 1) : (S)0;
          whole[d] = (long)floor(near), fraction[d] = near - floor(near);
        }
        S value = 0;
        for (int corner = 0; known && corner < (1 << R); ++corner) {
          S weight = 1;
          long from = 0;
          int inside = 1;
          for (int d = 0; d < R; ++d) {
            const int upper = corner >> d & 1;
            const long at = whole[d] + upper;
            inside &= at >= 0 && at < IN(d);
            weight *= upper ? fraction[d] : 1 - fraction[d];
            from = from * IN(d) + at;
          }
          if (inside && weight != 0) value += weight * (S)X(plane + from);
        }
        value = (S)(T)value * MASK((line * taps + tap) * N + position);
        for (int m = 0; m < BLOCK; ++m) {
          const long output = group * outputs + min(block + m, outputs - 1);
          sums[m] += value * (S)W((output * channels + channel) * taps + tap);
        }
        NEXT_TAP(k);
      }
    }
    for (int m = 0; m < BLOCK && block + m < outputs; ++m) {
      const long output = group * outputs + block + m;
      Y((image * n[1] + output) * N + position, (T)(sums[m] + BIAS(output)));
    }
)";

Result<ComputeKernel> make_deform_conv(const KernelRequest& request, const ComputeTarget& target) {
  TENON_TRY(work, image_type(request));
  const Op* op = &request.op;
  ComputeSource source(request, target);
  source.define("T", scalar_name(work));
  source.define("S", scalar_name(sum_type_of(work, target)));
  source.define("BLOCK", kBlock);
  define_axes(source, spatial_rank(request, 0), kFirstDeformAxis);
  source.load("X", 0, work);
  source.load("W", 1, work);
  source.load("OFFSET", 2, work);
  source.load_optional("BIAS", 3, work, "0");
  source.load_optional("MASK", 4, work, "1");
  source.store("Y", 0, work);
  return source.kernel(kDeformBody, [op](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims &x = shapes.operands[0], &w = shapes.operands[1], &y = shapes.results[0], kernel = spatial_of(w);
    TENON_TRY(axes, window_axes(*op, spatial_of(x), spatial_of(y), {kernel.begin(), kernel.end()}));
    const int64_t groups = std::max<int64_t>(op->attr<int64_t>("group", 1), 1),
                  offset_groups = std::max<int64_t>(op->attr<int64_t>("offset_group", 1), 1);
    const int64_t outputs = elements_of(spatial_of(y)), blocks = (y[1] / groups + kBlock - 1) / kBlock;
    if (x[1] < offset_groups)
      return error(Code::unsupported, offset_groups, " groups of offsets for ", x[1], " channels");
    ComputeLaunch made{{x[1], y[1], groups, offset_groups, elements_of(spatial_of(x)), outputs, elements_of(kernel)},
                       y[0] * groups * blocks * outputs};
    add_axes(axes, made);
    return made;
  });
}

constexpr ComputeRow kDeformedRows[] = {{Col2Im::kName, make_col2im}, {DeformConv::kName, make_deform_conv}};

}  // namespace

std::span<const ComputeRow> deformed_rows() { return kDeformedRows; }

}  // namespace tenon::opencl
