// The results of one stage in an iteration of strips, and their cost.
#include <tenon/program/schedule/group_costs_internal.hpp>

#include <algorithm>
#include <cmath>

#include <tenon/program/exec/prefetch_internal.hpp>

namespace tenon::program::detail {

namespace {

// For each row of the results: written once, and read for each row of the reader whose window contains it.
double times_touched(const StageNumbers& n) {
  double read = 1;
  for (const StageNumbers::Index& index : n.indices)
    if (&index != n.indices.data()) read *= 1 + index.overlap;
  return 1 + read;
}

}  // namespace

double Strips::iterations(const PipelineNumbers& numbers) const {
  double out = 1;
  for (const Loop& loop : loops)
    out *= std::max(1.0, std::ceil(numbers.extents[static_cast<size_t>(loop.dim)] / loop.step));
  return out;
}

double Strips::full_iterations(const PipelineNumbers& numbers) const {
  double out = 1;
  for (const Loop& loop : loops) out *= std::max(1.0, numbers.extents[static_cast<size_t>(loop.dim)] / loop.step);
  return out;
}

double Strips::piece_bytes(const PipelineNumbers& numbers, size_t at) const {
  const StageNumbers& n = numbers.stages[at];
  if (loops.size() < 2) return 0;
  const Loop& around = loops.back();
  double element = n.bytes;
  for (const StageNumbers::Index& index : n.indices) element /= std::max(index.extent, 1.0);
  const bool columns = !n.indices.empty() && n.indices.front().dim == around.dim;
  return columns ? element * around.step : 0;
}

bool is_resampled(const PipelineNumbers& numbers, const StageNumbers& n) {
  constexpr double kOtherResolution = 0.75;
  return std::ranges::any_of(n.indices, [&](const StageNumbers::Index& index) {
    return index.extent < kOtherResolution * numbers.extents[static_cast<size_t>(index.dim)];
  });
}

// Loops inside a window's loop see everything that the window keeps.
Share share_of(const PipelineNumbers& numbers, const Strips& strips, size_t at) {
  const StageNumbers& n = numbers.stages[at];
  Share share{.resampled = is_resampled(numbers, n)};
  const double all = strips.iterations(numbers);
  double made = 1, most = 1, read = 1, seen = 1, iterations = all;
  for (const Strips::Loop& loop : strips.loops) {
    const double around = iterations;
    const double extent = numbers.extents[static_cast<size_t>(loop.dim)];
    const double pieces = std::max(1.0, std::ceil(extent / loop.step)), full = std::min(1.0, loop.step / extent);
    iterations /= pieces;
    const auto index = std::ranges::find(n.indices, loop.dim, &StageNumbers::Index::dim);
    if (index == n.indices.end() || index->extent <= 0) continue;
    const double step = std::max(1.0, index->extent / pieces);
    const double part = std::min(1.0, (step + index->overlap) / index->extent);
    const double most_seen = std::min(1.0, (std::max(1.0, index->extent * full) + index->overlap) / index->extent);
    if (index->again > 0) {
      const bool next = around == all;  // inner loops, if any, have one iteration
      (next ? share.again : share.again_around) += index->again / step;
      if (!next) share.turns_around = around;
    }
    if (index == n.indices.begin()) share.rows = pieces;
    share.moves = true;
    made /= pieces;
    most *= full;
    read *= part;
    if (index->overlap > 0) {
      share.kept = true;
      share.kept_around |= &loop != strips.loops.data();
      share.turns = around;
      seen = 1;
    }
    seen *= most_seen;
  }
  if (!n.indices.empty()) {
    const double cut = share.rows, rows = n.elements / std::max(n.indices.front().extent, 1.0);
    share.rows *= rows * times_touched(n);
    share.pieces = cut > 1 ? cut * rows : 0;
    share.row_bytes = n.bytes / rows / cut;
    // Where rows are whole lines, so are pieces of them: steps are powers of two.
    if (std::fmod(n.bytes / rows, static_cast<double>(kLineBytes)) != 0) share.shared_lines = cut * rows;
    share.rows_read = times_touched(n) - 1;
  }
  share.made = n.bytes * made;
  share.most = n.bytes * most;
  share.read = n.bytes * read;
  share.seen = n.bytes * seen;
  return share;
}

// Pieces of rows along which a window moves are not aligned to cache lines: writes touch both lines, and of each row's
// reads not even one vector is within one line.
double times_between_lines(const StageNumbers& n, const Share& share) {
  return share.pieces > 0 && n.indices.front().overlap > 0 ? 1 + share.rows_read : 0;
}

Inside inside_of(const StageNumbers& n, const MemoryCosts& memories, const Share& share, const Share& reader) {
  const double held = share.most + reader.most;
  // A call proceeds row by row: between two uses of a row, it reads all rows of a window and writes one.
  const double between = (share.rows_read + 1) * share.row_bytes;
  return {.bytes = n.bytes,
          .again_bytes = share.read_again(),
          .fresh_seconds = n.bytes * memories.seconds_per_byte(share.read - share.made + held),
          .least_seconds =
              n.bytes * (1 + n.times_read + times_between_lines(n, share)) * memories.fastest_seconds_per_byte(),
          .window_bytes = share.seen,
          .held_bytes = held,
          .turns = share.turns,
          .rows_read = share.rows_read,
          .reread_seconds_per_byte = memories.part_beyond_smallest(between) * memories.seconds_per_byte(between),
          .kept = share.kept};
}

}  // namespace tenon::program::detail
