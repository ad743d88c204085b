#include <tenon/program/group_costs_internal.hpp>

#include <cmath>

namespace tenon::program::detail {

namespace {

// Of a memory, for what is used again: what streams by takes the rest, and places of a cache are not free to choose.
constexpr double kUsablePart = 2.0 / 3;
// That the first bytes of a piece take that does not follow the last one: the latency of main memory.
constexpr double kSecondsPerPiece = 100e-9;

double bandwidth(const CostModel& model, double bytes) {
  for (const CostModel::Memory& m : model.memories)
    if (m.bytes == 0 || bytes <= m.bytes * kUsablePart) return m.bytes_per_second;
  return model.memories.back().bytes_per_second;
}

}  // namespace

double Strips::iterations(const PipelineNumbers& numbers) const {
  double out = 1;
  for (const Loop& loop : loops)
    out *= std::max(1.0, std::ceil(numbers.extents[static_cast<size_t>(loop.dim)] / loop.step));
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

// Loops within a window's loop see all that it keeps.
Share share_of(const PipelineNumbers& numbers, const Strips& strips, size_t at) {
  const StageNumbers& n = numbers.stages[at];
  Share share;
  double made = 1, seen = 1;
  for (const Strips::Loop& loop : strips.loops) {
    const auto index = std::ranges::find(n.indices, loop.dim, &StageNumbers::Index::dim);
    if (index == n.indices.end() || index->extent <= 0) continue;
    const double pieces = std::max(1.0, std::ceil(numbers.extents[static_cast<size_t>(loop.dim)] / loop.step));
    const double step = std::max(1.0, index->extent / pieces);
    share.moves = true;
    made /= pieces;
    if (index->overlap > 0) {
      share.kept = true;
      share.kept_around |= &loop != strips.loops.data();
      seen = 1;
    }
    seen *= std::min(1.0, (step + index->overlap) / index->extent);
  }
  share.made = n.bytes * made;
  share.seen = n.bytes * seen;
  return share;
}

void GroupCost::add(const PipelineNumbers& numbers, const CostModel& model, size_t at, const Share& before,
                    const Share& share) {
  const StageNumbers& n = numbers.stages[at];
  double bytes_in = 0;
  for (const StageNumbers::Read& read : n.reads) {
    const bool inside = read.made_at != SIZE_MAX && read.made_at >= first_;
    const bool read_here_before = read.read_before != SIZE_MAX && read.read_before >= first_;
    if (!inside && !read_here_before) bytes_in += read.bytes;
  }
  if (at > first_) make_inside(numbers.stages[at - 1], model, before, share.made);
  outside_ += bytes_in;
  const double calls = share.moves ? iterations_ : 1;
  calls_ += calls;
}

void GroupCost::make_inside(const StageNumbers& n, const CostModel& model, const Share& share, double reader_bytes) {
  last_use_ = std::max(last_use_, n.last_use);
  const double read = n.bytes / bandwidth(model, share.seen + reader_bytes);
  const double least = n.bytes * (1 + n.times_read) / model.memories.front().bytes_per_second;
  if (!share.kept) {
    seconds_ += std::max(2 * read, least);
    largest_ = std::max(largest_, share.made + reader_bytes);
    return;
  }
  windows_ += share.seen;
  fresh_seconds_ += read;
  least_seconds_ += least;
  through_windows_ += n.bytes + std::max(share.seen - share.made, 0.0) * iterations_;
  calls_with_windows_ += iterations_;
}

PredictedCost GroupCost::total(const PipelineNumbers& numbers, const CostModel& model, size_t last) const {
  const double outside = outside_ + numbers.stages[last].bytes;
  const double in_an_iteration = outside / iterations_ + windows_ + largest_;
  PredictedCost out;
  out.memory_seconds = outside / bandwidth(model, outside) + seconds_ +
                       std::max(through_windows_ / bandwidth(model, in_an_iteration) + fresh_seconds_, least_seconds_);
  if (piece_bytes_ > 0) out.memory_seconds += outside / piece_bytes_ * kSecondsPerPiece;
  out.dispatch_seconds = calls_ * model.seconds_per_call + calls_with_windows_ * model.seconds_per_window;
  out.redundant_seconds = redundant_ * model.seconds_per_element;
  return out;
}

}  // namespace tenon::program::detail
