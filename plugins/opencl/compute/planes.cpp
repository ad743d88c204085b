#include "opencl/compute/planes.hpp"

#include <algorithm>

#include <tenon/support/str.hpp>

#include "opencl/compute/plane_forms.hpp"
#include "opencl/compute/tile.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

int64_t pitch_of(const PlaneWindow& w, int64_t columns) {
  return std::max<int64_t>(columns, w.lanes) + w.reach(1) / w.stride[1];
}
int64_t image_rows(const PlaneWindow& w, int64_t rows) { return (rows - 1) * w.stride[0] + w.reach(0) + 1; }

// The most columns of a job, a multiple of the lanes: as many as local memory holds for one row of windows.
int64_t plane_columns(const PlaneWindow& w, ElementType work, const ComputeTarget& target) {
  const int64_t widest = plane_elements(work, target) / (image_rows(w, 1) * w.stride[1]) - w.reach(1) / w.stride[1];
  return widest / w.lanes * w.lanes;
}

}  // namespace

int64_t plane_elements(ElementType work, const ComputeTarget& target) {
  constexpr int64_t kMostBytes = 64 << 10;
  return std::min(kMostBytes, target.local_bytes / 4) / static_cast<int64_t>(work.bits() / 8);
}

std::optional<PlaneWindow> plane_window(const Window& window, ElementType work, const ComputeTarget& target,
                                        std::optional<int64_t> out_columns) {
  if (window.rank() < 1 || window.rank() > 2) return std::nullopt;
  PlaneWindow made;
  for (size_t d = 0; d < window.rank(); ++d) {
    const size_t axis = 2 - window.rank() + d;
    if (!window.kernel[d].is_static()) return std::nullopt;
    made.kernel[axis] = window.kernel[d].value();
    made.stride[axis] = window.strides[d], made.dilation[axis] = window.dilations[d];
  }
  constexpr int64_t kMostTaps = 64, kMostStride = 8;  // there is code for each tap, and a copy for each phase
  if (made.taps() > kMostTaps || made.stride[1] > kMostStride) return std::nullopt;
  made.lanes = lanes_of(work, target);
  constexpr int kFewLanes = 4;
  if (out_columns && *out_columns <= made.lanes / 2 && made.lanes > kFewLanes) made.lanes /= 2;
  if (image_rows(made, 1) * made.stride[1] * pitch_of(made, made.lanes) > plane_elements(work, target))
    return std::nullopt;
  return made;
}

void define_window(ComputeSource& source, const PlaneWindow& w, ElementType work) {
  source.define("T", scalar_name(work));
  source.define("TV", lanes_name(work, w.lanes));
  source.define("LANES", w.lanes);
  source.define("ROW_STRIDE", w.stride[0]);
  source.define("ROW_REACH", w.reach(0));
  source.define("ROW_DILATION", w.dilation[0]);
  source.define("COLUMN_STRIDE", w.stride[1]);
  source.define("COLUMN_REACH", w.reach(1));
  source.define("COLUMN_KERNEL", w.kernel[1]);
  source.define("COLUMN_DILATION", w.dilation[1]);
  source.define("TAPS", w.taps());
  source.define("NEAR_LOCAL(p)", "(((__local TENON_NEAR(T, TV)*)(p))->v)");
  source.vectors_of(w.lanes);
  source.load("X", 0, work);
}

std::string plane_body(ComputeSource& source, const PlaneWindow& w, ElementType work, const ComputeTarget& target,
                       const PlaneText& text) {
  define_window(source, w, work);
  define_lane_numbers(source, w.lanes, work);
  source.define("PADDING", text.padding);
  source.define("SUM", text.sum);
  source.define("START", text.start);
  source.define("TAKE(sum, x, tap)", text.take);
  source.define("TAKE_AT(sum, x, tap)", text.take_at);
  source.define("DONE(sum, line, place, first, column, count)", text.done);
  if (!reads_planes_directly(w, target)) return staged_plane_body(source, w, work, target, text);
  return direct_plane_body(source, w, work, text);
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
  const int64_t columns = std::min(e.out[1], plane_columns(w, work, target));
  const int64_t staged = plane_elements(work, target) / (w.stride[1] * pitch_of(w, columns));
  int64_t blocks = 1;
  if (e.out[0] > 0) {
    const int64_t rows = std::clamp<int64_t>((staged - w.reach(0) - 1) / w.stride[0] + 1, 1, e.out[0]);
    const int64_t jobs = std::max<int64_t>(planes * ((e.out[1] + columns - 1) / std::max<int64_t>(columns, 1)), 1);
    const int64_t wanted = (kJobsOfUnit * target.compute_units + jobs - 1) / jobs;
    blocks = std::max((e.out[0] + rows - 1) / rows, std::min(wanted, e.out[0]));
  }
  const int64_t lines = reads_planes_directly(w, target) ? direct_lines(w) : 1;
  const int64_t rows = std::min(((e.out[0] + blocks - 1) / blocks + lines - 1) / lines * lines, e.out[0]);
  ComputeLaunch made{{e.in[0], e.in[1], e.out[0], e.out[1], e.begin[0], e.begin[1], rows, columns, planes_of_input,
                      planes / std::max<int64_t>(planes_of_input, 1) * e.in[0] * e.in[1]},
                     0};
  if (rows > 0 && columns > 0)
    made.items = planes * ((e.out[0] + rows - 1) / rows) * ((e.out[1] + columns - 1) / columns);
  return made;
}

}  // namespace tenon::opencl
