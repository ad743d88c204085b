// Conv as an implicit matrix product: a tile of output channels by 16 output positions in registers, which gathers the
// positions' inputs tap by tap; the image is read as it lies where the positions are neighbours. ConvTranspose gathers,
// for one output element, the inputs that reach it.
#include <tenon/ops/convolution.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/compute_source.hpp"
#include "opencl/compute/windows.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

using irgen::KernelRequest;

// n: 0 images, 1 input channels, 2 output channels, 3 groups, 4 inputs and 5 outputs of a channel, 6 taps, 7 is the
// image read as it lies?, then the axes.
constexpr int kFirstAxis = 8;
constexpr std::string_view kConvBody = R"(
    const long groups = n[3], channels = n[1] / groups, outputs = n[2] / groups, taps = n[6];
    const long in_size = n[4], out_size = n[5];
    const long position_tiles = (out_size + 15) / 16, channel_tiles = (outputs + ROWS - 1) / ROWS;
    const long position = item % position_tiles * 16, first = item / position_tiles % channel_tiles * ROWS;
    const long group = item / position_tiles / channel_tiles % groups;
    const long image = item / position_tiles / channel_tiles / groups;
    const long plane = (image * n[1] + group * channels) * in_size;
    T16 sums[ROWS];
    long weights[ROWS];
    for (int r = 0; r < ROWS; ++r) {
      const long output = group * outputs + min(first + r, outputs - 1);
      sums[r] = (T16)BIAS(output);
      weights[r] = output * channels * taps;
    }
    if (n[7] && position + 16 <= out_size) {
      for (long c = 0; c < channels; ++c) {
        const T16 x = X16(plane + c * in_size + position);
        for (int r = 0; r < ROWS; ++r) sums[r] = fma((T16)W(weights[r] + c), x, sums[r]);
      }
    } else {
      int start[R][16];
      for (int t = 0; t < 16; ++t) {
        long rest = min(position + t, out_size - 1);
        for (int d = R - 1; d >= 0; --d) {
          start[d][t] = (int)(rest % OUT(d)) * STRIDE(d) - BEGIN(d);
          rest /= OUT(d);
        }
      }
      // Neighbours along the last axis, in one row.
      const int in_row = STRIDE(R - 1) == 1 && position % OUT(R - 1) + 16 <= OUT(R - 1);
      int k[R];
      for (int d = 0; d < R; ++d) k[d] = 0;
      for (long tap = 0; tap < taps; ++tap) {
        int from[16];
        int inside = 0;
        for (int t = 0; t < 16; ++t) {
          int at = 0, ok = 1;
          for (int d = 0; d < R; ++d) {
            const int i = start[d][t] + k[d] * DILATION(d);
            ok &= i >= 0 && i < IN(d);
            at = at * IN(d) + i;
          }
          from[t] = ok ? at : -1;
          inside += ok;
        }
        if (inside > 0) {
          for (long c = 0; c < channels; ++c) {
            const long channel = plane + c * in_size;
            T16 x;
            if (in_row && inside == 16) {
              x = X16(channel + from[0]);
            } else {
              T lanes[16];
              for (int t = 0; t < 16; ++t) lanes[t] = from[t] >= 0 ? X(channel + from[t]) : (T)0;
              x = vload16(0, lanes);
            }
            for (int r = 0; r < ROWS; ++r) sums[r] = fma((T16)W(weights[r] + c * taps + tap), x, sums[r]);
          }
        }
        NEXT_TAP(k);
      }
    }
    for (int r = 0; r < ROWS && first + r < outputs; ++r) {
      const long to = (image * n[2] + group * outputs + first + r) * out_size + position;
      for (int t = 0; t < 16 && position + t < out_size; ++t) Y(to + t, ((const T*)&sums[r])[t]);
    }
)";

// n as above; the axes' "in" is of x, "out" of y. w: [C, M / group, taps].
constexpr std::string_view kTransposedBody = R"(
    const long groups = n[3], channels = n[1] / groups, outputs = n[2] / groups, taps = n[6];
    const long in_size = n[4], out_size = n[5];
    const long output = item / out_size % n[2], group = output / outputs, image = item / out_size / n[2];
    int at[R];
    long rest = item % out_size;
    for (int d = R - 1; d >= 0; --d) {
      at[d] = (int)(rest % OUT(d)) + BEGIN(d);
      rest /= OUT(d);
    }
    T sum = BIAS(output);
    int k[R];
    for (int d = 0; d < R; ++d) k[d] = 0;
    for (long tap = 0; tap < taps; ++tap) {
      long from = 0;
      int inside = 1;
      for (int d = 0; d < R; ++d) {
        const int reach = at[d] - k[d] * DILATION(d), i = reach / STRIDE(d);
        inside &= reach >= 0 && i * STRIDE(d) == reach && i < IN(d);
        from = from * IN(d) + i;
      }
      if (inside)
        for (long c = 0; c < channels; ++c) {
          const long channel = group * channels + c;
          sum = fma(X((image * n[1] + channel) * in_size + from),
                    W((channel * outputs + output % outputs) * taps + tap), sum);
        }
      NEXT_TAP(k);
    }
    Y(item, sum);
)";

void define_operands(ComputeSource& source, const KernelRequest& request, ElementType work) {
  source.define("T", scalar_name(work));
  source.define("T16", lanes_name(work, 16));
  source.load("X", 0, work);
  source.load("W", 1, work);
  source.store("Y", 0, work);
  if (request.op.operand(2))
    source.load("BIAS", 2, work);
  else
    source.define("BIAS(i)", "((T)0)");
}

bool is_plain(const std::vector<WindowAxis>& axes) {
  for (const WindowAxis& a : axes)
    if (a.kernel != 1 || a.stride != 1 || a.begin != 0 || a.in != a.out) return false;
  return true;
}

ComputeLaunch launch_of(const Dims& x, const Dims& y, int64_t group, const std::vector<WindowAxis>& axes) {
  int64_t taps = 1;
  for (const WindowAxis& a : axes) taps *= a.kernel;
  ComputeLaunch made{
      {x[0], x[1], y[1], group, elements_of(spatial_of(x)), elements_of(spatial_of(y)), taps, is_plain(axes) ? 1 : 0},
      elements_of(y)};
  add_axes(axes, made);
  return made;
}

std::vector<Dim> kernel_of(const Dims& w) { return {w.begin() + 2, w.end()}; }

Result<ComputeKernel> make_conv(const KernelRequest& request, const ComputeTarget& target) {
  const ElementType work = work_type_of(request.operands[0].element());
  if (!work.is_float()) return error(Code::unsupported, "Conv of ", request.operands[0].element());
  ComputeSource source(request, target);
  define_operands(source, request, work);
  source.define("ROWS", target.tile_rows);
  define_axes(source, spatial_rank(request, 0), kFirstAxis);
  const Op* op = &request.op;
  return source.kernel(kConvBody, [op, rows = target.tile_rows](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims &x = shapes.operands[0], &w = shapes.operands[1], &y = shapes.results[0];
    TENON_TRY(axes, window_axes(*op, spatial_of(x), spatial_of(y), kernel_of(w)));
    const int64_t group = op->attr<int64_t>("group", 1), outputs = y[1] / group;
    ComputeLaunch made = launch_of(x, y, group, axes);
    made.items = y[0] * group * ((outputs + rows - 1) / rows) * ((elements_of(spatial_of(y)) + 15) / 16);
    return made;
  });
}

Result<ComputeKernel> make_conv_transpose(const KernelRequest& request, const ComputeTarget& target) {
  const ElementType work = work_type_of(request.operands[0].element());
  if (!work.is_float()) return error(Code::unsupported, "ConvTranspose of ", request.operands[0].element());
  ComputeSource source(request, target);
  define_operands(source, request, work);
  define_axes(source, spatial_rank(request, 0), kFirstAxis);
  const Op* op = &request.op;
  return source.kernel(kTransposedBody, [op](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims &x = shapes.operands[0], &w = shapes.operands[1], &y = shapes.results[0];
    const Dims in = spatial_of(x), out = spatial_of(y);
    TENON_TRY(window, Window::of(*op, in.size(), kernel_of(w)));
    TENON_TRY(begin, conv_transpose_begin(*op, window, {in.begin(), in.end()}, {out.begin(), out.end()}));
    std::vector<WindowAxis> axes;
    for (size_t d = 0; d < in.size(); ++d)
      axes.push_back({in[d], out[d], w[d + 2], window.strides[d], window.dilations[d], begin[d].constant()});
    if (axes.empty()) axes.emplace_back();
    return launch_of(x, y, op->attr<int64_t>("group", 1), axes);
  });
}

constexpr ComputeRow kRows[] = {{Conv::kName, make_conv}, {ConvTranspose::kName, make_conv_transpose}};

}  // namespace

std::span<const ComputeRow> convolution_rows() { return kRows; }

}  // namespace tenon::opencl
