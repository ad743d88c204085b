#include "opencl/compute/planes.hpp"

#include <algorithm>

#include <tenon/support/str.hpp>

#include "opencl/compute/tile.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

// Elements of an image in local memory: what stays near a CPU's core while a row of windows reads it again.
int64_t image_elements(ElementType work, const ComputeTarget& target) {
  constexpr int64_t kMostBytes = 64 << 10;
  return std::min(kMostBytes, target.local_bytes / 4) / static_cast<int64_t>(work.bits() / 8);
}

int64_t reach(const PlaneWindow& w, int axis) { return (w.kernel[axis] - 1) * w.dilation[axis]; }
int64_t pitch_of(const PlaneWindow& w, int64_t columns, int lanes) {
  return std::max<int64_t>(columns, lanes) + reach(w, 1) / w.stride[1];
}
int64_t image_rows(const PlaneWindow& w, int64_t rows) { return (rows - 1) * w.stride[0] + reach(w, 0) + 1; }

// Every COLUMN_STRIDE-th of a row's inputs from column `first` on, which may lie before the row, PADDING around them.
// Vectors, the last one moved back to the row's end; of short rows halves of vectors.
constexpr std::string_view kStageRow = R"(
void tenon_stage(__local T* to, const int length, const long row, const int inside, const int first, const int columns, __global const uchar* a0) {
  const int begin = inside ? clamp((COLUMN_STRIDE - 1 - first) / COLUMN_STRIDE, 0, length) : length;
  const int end = max(begin, min(length, (columns - first + COLUMN_STRIDE - 1) / COLUMN_STRIDE));
  int x = 0;
  for (; x < begin; ++x) to[x] = PADDING;
  if (COLUMN_STRIDE <= 2 && end - begin >= LANES) {
    for (; x < end; x += LANES) {
      x = min(x, end - LANES);
      NEAR_LOCAL(to + x) = COLUMN_STRIDE == 1 ? XV(row + first + x)
                           : (TV)(XV(row + first + 2 * x).even, XV(row + first + 2 * x + LANES - 1).odd);
    }
  } else if (COLUMN_STRIDE == 1 && end - begin >= LANES / 2) {
    for (; x < end; x += LANES / 2) {
      x = min(x, end - LANES / 2);
      NEAR_LOCAL_HALF(to + x) = HALFV(row + first + x);
    }
  }
  for (; x < end; ++x) to[x] = X(row + first + x * COLUMN_STRIDE);
  for (; x < length; ++x) to[x] = PADDING;
}
)";

// Rows of one phase are `pitch` elements; phase p has the inputs p, p + COLUMN_STRIDE ...
constexpr std::string_view kStage = R"(
    const int in_rows = (int)n[0], in_columns = (int)n[1], job_rows = (int)n[6], job_columns = (int)n[7];
    const long row_blocks = (n[2] + job_rows - 1) / job_rows, column_blocks = (n[3] + job_columns - 1) / job_columns;
    // The last block is moved back: its outputs are made twice.
    const int y0 = (int)min(item % row_blocks * job_rows, n[2] - job_rows);
    const int x0 = (int)min(item / row_blocks % column_blocks * job_columns, n[3] - job_columns);
    const long plane = item / row_blocks / column_blocks;
    const int pitch = max(job_columns, LANES) + COLUMN_REACH / COLUMN_STRIDE;
    const int length = job_columns + COLUMN_REACH / COLUMN_STRIDE;
    const int staged_rows = (job_rows - 1) * ROW_STRIDE + ROW_REACH + 1;
    for (int staged = LOCAL_ID; staged < staged_rows * COLUMN_STRIDE; staged += LOCAL_SIZE) {
      const int from = y0 * ROW_STRIDE + staged / COLUMN_STRIDE - (int)n[4];
      const int first = x0 * COLUMN_STRIDE + staged % COLUMN_STRIDE - (int)n[5];
      tenon_stage(image + staged * pitch, length, (plane / n[8] * in_rows + from) * in_columns,
                  from >= 0 && from < in_rows, first, in_columns, a0);
    }
    SYNC;
)";

// A vector that ends behind the job's columns is moved back, too, where there is place.
constexpr std::string_view kWalk = R"(
    EACH_VECTOR(line, wanted) {
      const int column = job_columns >= LANES ? min(wanted, job_columns - LANES) : wanted;
      const __local T* corner = image + line * ROW_STRIDE * COLUMN_STRIDE * pitch + column;
      const int count = min(LANES, job_columns - column);
      const long at = (plane * n[2] + y0 + line) * n[3] + x0 + column;
)";

}  // namespace

std::optional<PlaneWindow> plane_window(const Window& window, ElementType work, const ComputeTarget& target) {
  if (window.rank() < 1 || window.rank() > 2) return std::nullopt;
  PlaneWindow made;
  for (size_t d = 0; d < window.rank(); ++d) {
    const size_t axis = 2 - window.rank() + d;
    if (!window.kernel[d].is_static()) return std::nullopt;
    made.kernel[axis] = window.kernel[d].value();
    made.stride[axis] = window.strides[d], made.dilation[axis] = window.dilations[d];
  }
  constexpr int64_t kMostTaps = 64, kMostStride = 8;  // code for each tap; a copy for each phase
  if (made.taps() > kMostTaps || made.stride[1] > kMostStride) return std::nullopt;
  const int lanes = lanes_of(work, target);
  if (image_rows(made, 1) * made.stride[1] * pitch_of(made, lanes, lanes) > image_elements(work, target))
    return std::nullopt;
  return made;
}

int64_t plane_columns(const PlaneWindow& w, ElementType work, const ComputeTarget& target) {
  const int64_t lanes = lanes_of(work, target);
  const int64_t widest = image_elements(work, target) / (image_rows(w, 1) * w.stride[1]) - reach(w, 1) / w.stride[1];
  return widest / lanes * lanes;
}

void define_staging(ComputeSource& source, const PlaneWindow& w, ElementType work, const ComputeTarget& target) {
  const int lanes = lanes_of(work, target);
  source.of_group();
  source.define("T", scalar_name(work));
  source.define("TV", lanes_name(work, lanes));
  source.define("LANES", lanes);
  source.define("ROW_STRIDE", w.stride[0]);
  source.define("ROW_REACH", reach(w, 0));
  source.define("COLUMN_STRIDE", w.stride[1]);
  source.define("COLUMN_REACH", reach(w, 1));
  source.define("NEAR_LOCAL(p)", "(((__local TENON_NEAR(TV)*)(p))->v)");
  source.define("NEAR_LOCAL_HALF(p)", str("(((__local TENON_NEAR(", lanes_name(work, lanes / 2), ")*)(p))->v)"));
  source.vectors_of(lanes / 2);
  source.load("HALF", 0, work);
  source.vectors_of(lanes);
  source.load("X", 0, work);
  source.functions(kStageRow);
}

std::string plane_body(ComputeSource& source, const PlaneWindow& w, ElementType work, const ComputeTarget& target,
                       const PlaneText& text) {
  define_staging(source, w, work, target);
  source.local(str("  __local T image[", image_elements(work, target), "];\n"));
  // Neighbouring vectors to one work item, or to neighbouring ones.
  source.define(
      "EACH_VECTOR(line, column)",
      target.work_group == 1
          ? "for (int line = 0; line < job_rows; ++line) for (int column = 0; column < job_columns; column += "
            "LANES)"
          : "const int across = (job_columns + LANES - 1) / LANES; for (int piece = LOCAL_ID; piece < "
            "job_rows * across; piece += LOCAL_SIZE) for (int line = piece / across, column = piece % across "
            "* LANES, once = 1; once; once = 0)");
  std::string body = str(kStage, text.job, kWalk, text.start);
  for (int64_t tap = 0; tap < w.taps(); ++tap) {
    const int64_t row = tap / w.kernel[1] * w.dilation[0], column = tap % w.kernel[1] * w.dilation[1];
    body +=
        str("      { const int tap = ", tap, "; const TV x = NEAR_LOCAL(corner + ",
            row * w.stride[1] + column % w.stride[1], " * pitch + ", column / w.stride[1], "); ", text.take, " }\n");
  }
  return str(body, text.done, "    }\n    SYNC;\n");
}

PlaneExtents plane_extents(const Window& window, const Dims& in, const Dims& out) {
  PlaneExtents made;
  for (size_t d = 0; d < in.size(); ++d) {
    const size_t axis = 2 - in.size() + d;
    made.in[axis] = in[d], made.out[axis] = out[d], made.begin[axis] = window.pad_begin(d, in[d]);
  }
  return made;
}

ComputeLaunch plane_launch(const PlaneWindow& w, const PlaneExtents& e, int64_t planes, int64_t planes_of_input,
                           ElementType work, const ComputeTarget& target) {
  constexpr int64_t kJobsOfUnit = 4;
  const int lanes = lanes_of(work, target);
  const int64_t room = image_elements(work, target);
  const int64_t columns = std::min(e.out[1], plane_columns(w, work, target));
  const int64_t staged = room / (w.stride[1] * pitch_of(w, columns, lanes));
  int64_t blocks = 1;
  if (e.out[0] > 0) {
    const int64_t rows = std::clamp<int64_t>((staged - reach(w, 0) - 1) / w.stride[0] + 1, 1, e.out[0]);
    const int64_t jobs = std::max<int64_t>(planes * ((e.out[1] + columns - 1) / std::max<int64_t>(columns, 1)), 1);
    const int64_t wanted = (kJobsOfUnit * target.compute_units + jobs - 1) / jobs;
    blocks = std::max((e.out[0] + rows - 1) / rows, std::min(wanted, e.out[0]));
  }
  const int64_t rows = (e.out[0] + blocks - 1) / blocks;
  ComputeLaunch made{{e.in[0], e.in[1], e.out[0], e.out[1], e.begin[0], e.begin[1], rows, columns, planes_of_input}, 0};
  if (rows > 0 && columns > 0)
    made.items = planes * ((e.out[0] + rows - 1) / rows) * ((e.out[1] + columns - 1) / columns);
  return made;
}

}  // namespace tenon::opencl
