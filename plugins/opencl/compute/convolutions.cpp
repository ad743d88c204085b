// Conv by planes (depthwise.cpp), images (image_convolutions.cpp) or blocks (group_convolutions.cpp) where these apply,
// otherwise as an implicit matrix product with register tiles (tile.hpp): output channels by output positions. The
// inputs of the positions, tap by tap (im2col), are the packed panel; with few output channels they are gathered when
// they are used.
#include <algorithm>

#include <tenon/ops/convolution.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/conv_forms.hpp"
#include "opencl/compute/group_tile.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

using irgen::KernelRequest;

// n as conv_launch() fills it.
constexpr std::string_view kConvHead = R"(
    const long groups = n[3], channels = n[1] / groups, M = n[2] / groups, taps = n[6], N = n[5], K = channels * taps;
    const long in_size = n[4], job_rows = n[8];
    const long row_blocks = (M + job_rows - 1) / job_rows, column_blocks = (N + COLUMNS - 1) / COLUMNS;
    const long row0 = item % row_blocks * job_rows, row1 = min(M, row0 + job_rows);
    // The last block of columns is moved back to be a whole one: what two of them have is the same.
    const long column = min(item / row_blocks % column_blocks * COLUMNS, max(N - COLUMNS, 0l));
    const long group = item / row_blocks / column_blocks % groups;
    const long image = item / row_blocks / column_blocks / groups;
    const long plane = (image * n[1] + group * channels) * in_size, all = n[0] * n[1] * in_size;
)";

// A vector of positions consists of stretches along the last axis. For a tap, each reads adjacent inputs, or inputs a
// stride apart, or nothing where they are in the padding.
constexpr std::string_view kStretches = R"(
TV tenon_reach(const long from, const int low, const int high, const long all, __global const uchar* a0) {
  const IV lane = LANE_NUMBERS;
  if (LAST_STRIDE <= 2 && from >= 0 && from + LAST_STRIDE * LANES <= all) {
    TV x = XV(from);
    if (LAST_STRIDE == 2) x = (TV)(x.even, XV(from + LANES).even);
    return select((TV)0, x, lane >= (IV)low && lane < (IV)high);
  }
  T some[LANES];
  for (int t = 0; t < LANES; ++t) some[t] = t >= low && t < high ? X(from + t * LAST_STRIDE) : (T)0;
  return VLOAD(0, some);
}
)";

constexpr std::string_view kConvPanel = R"(
    for (long c0 = 0; c0 < channels; c0 += n[9])
    for (long tap0 = 0; tap0 < taps; tap0 += n[10]) {
    const long panel_channels = min(n[9], channels - c0), panel_taps = min(n[10], taps - tap0);
    const long k0 = c0 * taps + tap0, depth = panel_channels * panel_taps;
    if (n[7] && column + COLUMNS <= N) {
      // A matrix: the columns of a channel at once.
      for (long c = LOCAL_ID; c < panel_channels; c += LOCAL_SIZE)
        for (int v = 0; v < VECTORS; ++v) PANEL(c, v) = XV(plane + (c0 + c) * in_size + column + v * LANES);
    } else
    for (long tap = LOCAL_ID; tap < panel_taps; tap += LOCAL_SIZE) {
      int k[R];
      long rest_tap = tap0 + tap;
      for (int d = R - 1; d >= 0; --d) {
        k[d] = (int)(rest_tap % KERNEL(d)) * DILATION(d);
        rest_tap /= KERNEL(d);
      }
      for (int v = 0; v < VECTORS; ++v) {
        long from[LANES];
        int low[LANES], high[LANES], at[R], stretches = 0, lane = 0;
        long rest = column + v * LANES;
        long left = N - rest;
        for (int d = R - 1; d >= 0; --d) {
          at[d] = (int)(rest % OUT(d));
          rest /= OUT(d);
        }
        while (lane < LANES && left > 0) {
          const int length = min(LANES - lane, OUT(R - 1) - at[R - 1]);
          int inside = 1;
          long base = 0;
          for (int d = 0; d < R - 1; ++d) {
            const int i = at[d] * STRIDE(d) - BEGIN(d) + k[d];
            inside &= i >= 0 && i < IN(d);
            base = base * IN(d) + i;
          }
          const int first = at[R - 1] * LAST_STRIDE - BEGIN(R - 1) + k[R - 1], last = IN(R - 1) - 1 - first;
          const int begin = first >= 0 ? 0 : (LAST_STRIDE - 1 - first) / LAST_STRIDE;
          const int end = last < 0 ? 0 : min(length, last / LAST_STRIDE + 1);
          if (inside && begin < end) {
            from[stretches] = base * IN(R - 1) + first - lane * LAST_STRIDE;
            low[stretches] = lane + begin;
            high[stretches++] = lane + end;
          }
          lane += length, left -= length;
          at[R - 1] = 0;
          for (int d = R - 2; d >= 0 && ++at[d] == OUT(d); --d) at[d] = 0;
        }
        const long first_plane = plane + c0 * in_size;
        const long lowest = first_plane + from[0], highest = lowest + (panel_channels - 1) * in_size + LANES;
        if (LAST_STRIDE == 1 && stretches == 1 && high[0] - low[0] == LANES && lowest >= 0 && highest <= all) {
          for (long c = 0; c < panel_channels; ++c) PANEL(c * panel_taps + tap, v) = XV(lowest + c * in_size);
        } else {
          for (long c = 0; c < panel_channels; ++c) {
            const long channel = first_plane + c * in_size;
            TV x = (TV)0;
            for (int s = 0; s < stretches; ++s) x += tenon_reach(channel + from[s], low[s], high[s], all, a0);
            PANEL(c * panel_taps + tap, v) = x;
          }
        }
      }
    }
    SYNC;
)";

// For few output channels: the inputs of the positions are gathered for each tile, tap by tap, or read as vectors where
// the positions are adjacent.
constexpr std::string_view kConvDirect = R"(
    for (long first = row0; first < row1; first += ROWS)
    for (int part = 0; part < VECTORS; ++part) {
    const long position = column + part * LANES;
    if (position >= N) break;
    TV sums[ROWS];
    long weights[ROWS];
    for (int r = 0; r < ROWS; ++r) {
      const long row = min(first + r, M - 1);
      sums[r] = (TV)START(row);
      weights[r] = ROW_OF_A(row);
    }
    if (n[7] && position + LANES <= N) {
      for (long c = 0; c < channels; ++c) {
        const TV x = XV(plane + c * in_size + position);
        for (int r = 0; r < ROWS; ++r) sums[r] = fma((TV)A(weights[r] + c), x, sums[r]);
      }
    } else {
      int start[R][LANES];
      for (int t = 0; t < LANES; ++t) {
        long rest = min(position + t, N - 1);
        for (int d = R - 1; d >= 0; --d) {
          start[d][t] = (int)(rest % OUT(d)) * STRIDE(d) - BEGIN(d);
          rest /= OUT(d);
        }
      }
      // Neighbours along the last axis, in one row.
      const int in_row = LAST_STRIDE == 1 && position % OUT(R - 1) + LANES <= OUT(R - 1);
      int k[R];
      for (int d = 0; d < R; ++d) k[d] = 0;
      for (long tap = 0; tap < taps; ++tap) {
        int from[LANES];
        int inside = 0;
        for (int t = 0; t < LANES; ++t) {
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
            TV x;
            if (in_row && inside == LANES) {
              x = XV(channel + from[0]);
            } else {
              T lanes[LANES];
              for (int t = 0; t < LANES; ++t) lanes[t] = from[t] >= 0 ? X(channel + from[t]) : (T)0;
              x = VLOAD(0, lanes);
            }
            for (int r = 0; r < ROWS; ++r) sums[r] = fma((TV)A(weights[r] + c * taps + tap), x, sums[r]);
          }
        }
        NEXT_TAP(k);
      }
    }
    const int count = (int)min((long)LANES, N - position);
    for (int r = 0; r < ROWS && first + r < row1; ++r) {
      const long line = LINE(first + r) + position;
      PLACE(place, line);
      FINISH(place, line, 0, count, sums[r]);
    }
    }
)";

ProductExtents extents_of(const KernelRequest& request, int64_t group) {
  ProductExtents made;
  if (const auto w = request.operands[1].shape().static_dims(); w && !w->empty()) {
    made.m = w->front() / group;
    made.k = elements_of(*w) / std::max<int64_t>(w->front(), 1);
  }
  if (const auto y = request.results[0].shape().static_dims(); y && y->size() >= 2)
    made.n = elements_of(spatial_of(*y));
  return made;
}

// The stride of the last axis, an attribute.
int64_t last_stride(const Op& op) {
  const Attribute* strides = op.attributes().find("strides");
  const auto* values = strides ? strides->get_if<std::vector<int64_t>>() : nullptr;
  return values && !values->empty() ? values->back() : 1;
}

void define_conv(ComputeSource& source, const KernelRequest& request, ElementType work, const ProductTile& tile) {
  source.vectors_of(tile.lanes);
  define_tile(source, tile, work);
  define_lane_numbers(source, tile.lanes, work);
  source.define("LAST_STRIDE", last_stride(request.op));
  source.define("A_STEP", 1);
  source.define("AFTER(x, row, at, count)", "(void)0");
  define_conv_operands(source, request, work);
  define_axes(source, spatial_rank(request, 0), kConvAxes);
}

// Sets the channels and taps of a panel.
void cut_depth(const ProductTile& tile, int64_t channels, int64_t taps, ComputeLaunch& launch) {
  launch.numbers[9] = std::clamp<int64_t>(tile.depth / std::max<int64_t>(taps, 1), 1, std::max<int64_t>(channels, 1));
  launch.numbers[10] = std::max<int64_t>(std::min(taps, tile.depth), 1);
}

Result<ComputeKernel> make_conv(const KernelRequest& request, const ComputeTarget& target, const Epilogue& epilogue) {
  const ElementType work = work_type_of(request.operands[0].element());
  if (!work.is_float()) return error(Code::unsupported, "Conv of ", request.operands[0].element());
  const Op* op = &request.op;
  const int64_t group = std::max<int64_t>(op->attr<int64_t>("group", 1), 1);
  if (const auto window = depthwise_window(request, work, group, target))
    return make_depthwise(request, *window, group, target, epilogue);
  if (const auto conv = image_conv(request, work, group, target))
    return make_image_conv(request, *conv, target, epilogue);
  const ProductExtents extents = extents_of(request, group);
  if (works_in_groups(target)) return make_group_conv(request, extents, work, group, target, epilogue);
  const ProductTile tile = choose_tile(extents, work, target);
  ComputeSource source(request, target);
  define_conv(source, request, work, tile);
  std::string body(kConvHead);
  if (tile.packs()) {
    source.functions(kStretches);
    source.of_group();
    body += str(kConvPanel, packed_rows(tile, is_short(epilogue)), "    SYNC;\n    }\n");
  } else {
    body += kConvDirect;
  }
  source.finish(epilogue, tile.lanes);
  return source.kernel(body, [op, tile, target, group](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims &x = shapes.operands[0], &w = shapes.operands[1], &y = shapes.results[0];
    TENON_TRY(axes, window_axes(*op, spatial_of(x), spatial_of(y), kernel_of(w)));
    // A plain image is treated as one line, so no vector of positions spans two rows.
    if (is_plain(axes))
      for (size_t d = 0; d + 1 < axes.size(); ++d) {
        axes.back().in *= axes[d].in, axes.back().out *= axes[d].out;
        axes[d].in = axes[d].out = 1;
      }
    ComputeLaunch made = conv_launch(x, y, group, axes);
    const int64_t positions = elements_of(spatial_of(y)), outputs = y[1] / group;
    made.items = y[0] * group * ((positions + tile.columns() - 1) / tile.columns());
    const int64_t channels = x[1] / group, taps = made.numbers[6];
    cut_depth(tile, channels, taps, made);
    const bool waits = made.numbers[9] * made.numbers[10] < channels * taps;
    const RowBlocks blocks = row_blocks(tile, outputs, made.items, waits, target);
    made.items *= outputs == 0 ? 0 : blocks.blocks;
    made.numbers[8] = blocks.rows;
    return made;
  });
}

constexpr ComputeRow kConvolutionRows[] = {{.op = Conv::kName, .make_with = make_conv},
                                           {.op = ConvTranspose::kName, .make = make_conv_transpose}};

}  // namespace

std::span<const ComputeRow> convolution_rows() { return kConvolutionRows; }

}  // namespace tenon::opencl
