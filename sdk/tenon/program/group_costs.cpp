#include <tenon/program/group_costs_internal.hpp>

#include <cmath>

namespace tenon::program::detail {

namespace {

// Of a memory, for what is used again: up to so much all of it is found there. What streams by takes the rest, and places
// of a cache are not free to choose, so that of more some is lost already.
constexpr double kSurePart = 0.5;

// The smallest that holds so many bytes for certain.
const CostModel::Memory& holder(const CostModel& model, double bytes) {
  for (const CostModel::Memory& m : model.memories)
    if (m.bytes == 0 || bytes <= usable_bytes(m)) return m;
  return model.memories.back();
}

// Of a byte that is used again after so many others: the smallest memory that may hold it has it, or the next one.
double seconds_per_byte(const CostModel& model, double bytes) {
  double seconds = 0, rest = 1;
  for (const CostModel::Memory& m : model.memories) {
    if (m.bytes == 0 || bytes <= usable_bytes(m)) return seconds + rest / m.bytes_per_second;
    if (bytes >= m.bytes) continue;
    const double lost = (bytes - usable_bytes(m)) / (m.bytes - usable_bytes(m));
    seconds += rest * (1 - lost) / m.bytes_per_second;
    rest *= lost;
  }
  return seconds + rest / model.memories.back().bytes_per_second;
}

// Of each row of the results: written once, and read for each row of the reader whose window it is in.
double times_touched(const StageNumbers& n) {
  double read = 1;
  for (const StageNumbers::Index& index : n.indices)
    if (&index != n.indices.data()) read *= 1 + index.overlap;
  return 1 + read;
}

}  // namespace

double usable_bytes(const CostModel::Memory& memory) { return memory.bytes * kSurePart; }

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
  double made = 1, read = 1, seen = 1, iterations = strips.iterations(numbers);
  for (const Strips::Loop& loop : strips.loops) {
    const double around = iterations;
    const double pieces = std::max(1.0, std::ceil(numbers.extents[static_cast<size_t>(loop.dim)] / loop.step));
    iterations /= pieces;
    const auto index = std::ranges::find(n.indices, loop.dim, &StageNumbers::Index::dim);
    if (index == n.indices.end() || index->extent <= 0) continue;
    const double step = std::max(1.0, index->extent / pieces);
    const double part = std::min(1.0, (step + index->overlap) / index->extent);
    if (index == n.indices.begin()) share.rows = pieces;
    share.moves = true;
    made /= pieces;
    read *= part;
    if (index->overlap > 0) {
      share.kept = true;
      share.kept_around |= &loop != strips.loops.data();
      share.turns = around;
      seen = 1;
    }
    seen *= part;
  }
  if (!n.indices.empty()) share.rows *= n.elements / std::max(n.indices.front().extent, 1.0) * times_touched(n);
  share.made = n.bytes * made;
  share.read = n.bytes * read;
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
  rows_ += share.rows;
}

void GroupCost::make_inside(const StageNumbers& n, const CostModel& model, const Share& share, double reader_bytes) {
  last_use_ = std::max(last_use_, n.last_use);
  const double read = n.bytes * seconds_per_byte(model, share.read + reader_bytes);
  const double least = n.bytes * (1 + n.times_read) / model.memories.front().bytes_per_second;
  if (!share.kept) {
    seconds_ += std::max(2 * read, least);
    largest_ = std::max(largest_, share.made + reader_bytes);
    return;
  }
  windows_ += share.seen;
  fresh_seconds_ += read;
  least_seconds_ += least;
  through_windows_ += n.bytes + share.read_again() * iterations_;
  turns_ = turns_ > 0 ? std::min(turns_, share.turns) : share.turns;
  calls_with_windows_ += iterations_;
}

PredictedCost GroupCost::total(const PipelineNumbers& numbers, const CostModel& model, size_t last) const {
  const double outside = outside_ + numbers.stages[last].bytes;
  const double between_uses = outside / std::max(turns_, 1.0) + windows_ + largest_;
  PredictedCost out;
  out.memory_seconds = outside * seconds_per_byte(model, outside) + seconds_ +
                       std::max(through_windows_ * seconds_per_byte(model, between_uses) + fresh_seconds_, least_seconds_);
  if (piece_bytes_ > 0) out.memory_seconds += outside / piece_bytes_ * holder(model, outside).latency_seconds;
  out.dispatch_seconds =
      calls_ * model.seconds_per_call + calls_with_windows_ * model.seconds_per_window + rows_ * model.seconds_per_row;
  out.redundant_seconds = redundant_ * model.seconds_per_element;
  return out;
}

}  // namespace tenon::program::detail
