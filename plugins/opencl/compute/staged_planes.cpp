// Windows over planes that are staged in local memory.
#include <algorithm>

#include <tenon/support/str.hpp>

#include "opencl/compute/plane_forms.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

// Copies every COLUMN_STRIDE-th of a row's inputs from column `first` on, which may be before the row, with PADDING
// around them. By vectors, the last one moved back to the row's end; short rows by halves of vectors.
constexpr std::string_view kStageRow = R"(
void tenon_stage(__local T* to, const int length, const long row, const int inside, const int first, const int columns,
                 __global const uchar* a0) {
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
  } else if (COLUMN_STRIDE <= 2 && end - begin >= LANES / 2) {
    for (; x < end; x += LANES / 2) {
      x = min(x, end - LANES / 2);
      NEAR_LOCAL_HALF(to + x) = COLUMN_STRIDE == 1 ? HALFV(row + first + x)
                                : (HALF_TYPE)(HALFV(row + first + 2 * x).even,
                                              HALFV(row + first + 2 * x + LANES / 2 - 1).odd);
    }
  }
  for (; x < end; ++x) to[x] = X(row + first + x * COLUMN_STRIDE);
  for (; x < length; ++x) to[x] = PADDING;
}
)";

// The distance between rows of one phase is `pitch` elements; phase p has the inputs p, p + COLUMN_STRIDE ...
constexpr std::string_view kStaged = R"(
    const int pitch = max(job_columns, LANES) + COLUMN_REACH / COLUMN_STRIDE;
    const int length = job_columns + COLUMN_REACH / COLUMN_STRIDE;
    const int staged_rows = (job_rows - 1) * ROW_STRIDE + ROW_REACH + 1;
)";
// Each work item stages whole rows.
constexpr std::string_view kStageRows =
    R"(    for (int staged = LOCAL_ID; staged < staged_rows * COLUMN_STRIDE; staged += LOCAL_SIZE) {
      const int from = y0 * ROW_STRIDE + staged / COLUMN_STRIDE - (int)n[4];
      const int first = x0 * COLUMN_STRIDE + staged % COLUMN_STRIDE - (int)n[5];
      tenon_stage(image + staged * pitch, length, (plane / n[8] * in_rows + from) * in_columns,
                  from >= 0 && from < in_rows, first, in_columns, a0);
    }
    SYNC;
)";
// Adjacent items copy adjacent inputs, of all phases.
constexpr std::string_view kStageElements =
    R"(    for (int i = LOCAL_ID; i < staged_rows * length * COLUMN_STRIDE; i += LOCAL_SIZE) {
      const int staged_row = i / (length * COLUMN_STRIDE), behind = i % (length * COLUMN_STRIDE);
      const int from = y0 * ROW_STRIDE + staged_row - (int)n[4], column = x0 * COLUMN_STRIDE + behind - (int)n[5];
      const int inside = from >= 0 && from < in_rows && column >= 0 && column < in_columns;
      image[(staged_row * COLUMN_STRIDE + behind % COLUMN_STRIDE) * pitch + behind / COLUMN_STRIDE] =
          inside ? X((plane / n[8] * in_rows + from) * in_columns + column) : (T)PADDING;
    }
    SYNC;
)";

// A vector that would end after the job's columns is moved back, too, where there is space.
constexpr std::string_view kStagedWalk = R"(
    EACH_VECTOR(line, wanted) {
      const int column = job_columns >= LANES ? min(wanted, job_columns - LANES) : wanted;
      const __local T* corner = image + line * ROW_STRIDE * COLUMN_STRIDE * pitch + column;
      const int count = min(LANES, job_columns - column), from_column = (x0 + column) * COLUMN_STRIDE - (int)n[5];
      const IV from_columns = LANE_NUMBERS * (IV)COLUMN_STRIDE + (IV)from_column;
)";
constexpr std::string_view kDone = R"(
      const long first = (plane * n[2] + y0 + line) * n[3] + x0;
      PLACE(place, first);
      DONE(sum, line, place, first, column, count);
    }
    SYNC;
)";

}  // namespace

void define_staging(ComputeSource& source, const PlaneWindow& w, ElementType work) {
  source.of_group();
  source.define("HALF_TYPE", lanes_name(work, w.lanes / 2));
  source.define("NEAR_LOCAL_HALF(p)", "(((__local TENON_NEAR(T, HALF_TYPE)*)(p))->v)");
  source.vectors_of(w.lanes / 2);
  source.load("HALF", 0, work);
  source.vectors_of(w.lanes);
  source.functions(kStageRow);
}

std::string staged_plane_body(ComputeSource& source, const PlaneWindow& w, ElementType work,
                              const ComputeTarget& target, const PlaneText& text) {
  define_staging(source, w, work);
  source.local(str("  __local T image[", plane_elements(work, target), "];\n"));
  // Adjacent vectors are processed by one work item, or by adjacent ones.
  source.define(
      "EACH_VECTOR(line, column)",
      target.work_group == 1
          ? "for (int line = 0; line < job_rows; ++line) for (int column = 0; column < job_columns; column += "
            "LANES)"
          : "const int across = (job_columns + LANES - 1) / LANES; for (int piece = LOCAL_ID; piece < "
            "job_rows * across; piece += LOCAL_SIZE) for (int line = piece / across, column = piece % across "
            "* LANES, once = 1; once; once = 0)");
  std::string body = str(kPlaneJob, text.job, kStaged, target.work_group == 1 ? kStageRows : kStageElements,
                         kStagedWalk, text.column, "      SUM sum = START;\n");
  for (int64_t tap = 0; tap < w.taps(); ++tap) {
    const int64_t row = tap / w.kernel[1] * w.dilation[0], column = tap % w.kernel[1] * w.dilation[1];
    body += str("      { const TV x = NEAR_LOCAL(corner + ", row * w.stride[1] + column % w.stride[1], " * pitch + ",
                column / w.stride[1], "); TAKE(sum, x, ", tap, "); }\n");
  }
  return str(body, kDone);
}

}  // namespace tenon::opencl
