// The total cost of a group: calls, moved bytes and prefetches.
#include <tenon/program/schedule/group_costs_internal.hpp>

#include <algorithm>
#include <cmath>

#include <tenon/program/exec/prefetch_internal.hpp>

namespace tenon::program::detail {

namespace {

// Prefetches before a call are free up to this many bytes. With twice as many, this much less is hidden, since the
// processor waits until earlier ones have been issued; less is lost where the next iteration's bytes are contiguous,
// since the hardware then prefetches as well. Fitted to schedules of 83 pipelines on a Zen 4, whose L1 allows 24
// outstanding lines (docs/performance/lessons/schedules.md, What hints cost).
constexpr double kFreePortion = 1280, kLostOfPieces = 0.6, kLostOfRows = 0.3;
// Nothing is hidden beyond this many portions: 2 to the power 1 / kLost, or more.
constexpr double kNoneOfPieces = 3.18, kNoneOfRows = 10.1;
// From here to kBeside fitted to 5,054 measured schedules of 36 drawn pipelines (What hints cost). The part of the
// additional time of ends that are apart that is hidden for pieces that the hardware prefetches.
constexpr double kApartHidden = 0.45;
// The part of what is prefetched for the next iteration that adds to this iteration's working set.
constexpr double kBeside = 0.9;
// Between two calls a result is reused: of the prefetches of an iteration, two calls have their portions in between.
constexpr double kCallsBetween = 2;
// Cost of the prefetch instructions before a call: chains whose ends are in L2, where nobody waits for the prefetched
// data, take .2 to 4 ns more per call (docs/performance/lessons/schedules.md, What hints cost).
constexpr double kSecondsOfHints = 3e-9;
// The part of the latency of a piece's first bytes that counts: other pieces are in flight meanwhile.
constexpr double kWaited = 0.25;
// The part that does not overlap, of the shorter of loads from the smallest memory and what runs beside them.
constexpr double kNotBeside = 0.2;

// The time that prefetching saves of a transfer with ends apart, and of the work beside it: the transfer takes `times`
// as long, and `part` of it is hidden, at most the time of the work plus the cost of being apart.
double saved_by_hints(double part, double times, double way, double apart, double work) {
  return way - times * way + std::min(part * (times * way + apart), apart + work);
}

}  // namespace

void GroupCost::add(const PipelineNumbers& numbers, size_t at, const Share& share, const Inside& before) {
  const StageNumbers& n = numbers.stages[at];
  double bytes_in = 0;
  for (const StageNumbers::Read& read : n.reads) {
    const bool inside = read.made_at != SIZE_MAX && read.made_at >= first_;
    const bool read_here_before = read.read_before != SIZE_MAX && read.read_before >= first_;
    if (!inside && !read_here_before) bytes_in += read.bytes;
    if (!inside && read.made_at != SIZE_MAX) loaded_ += read.bytes * numbers.stages[read.made_at].times_read;
  }
  if (at > first_) {
    last_use_ = std::max(last_use_, numbers.stages[at - 1].last_use);
    make_inside(before);
  }
  outside_ += bytes_in;
  again_ += bytes_in * share.again;
  if (bytes_in * share.again_around > 0) {
    again_around_ += bytes_in * share.again_around;
    turns_around_ = turns_around_ > 0 ? std::min(turns_around_, share.turns_around) : share.turns_around;
  }
  const double calls = share.moves ? iterations_ : 1;
  calls_ += calls;
  ++stages_;
  rows_ += share.rows;
  pieces_ += share.pieces;
  shared_lines_ = share.shared_lines;
  resamples_ = resamples_ || share.resampled;
}

void GroupCost::make_inside(const Inside& results) {
  nearest_seconds_ += results.least_seconds;
  if (!results.kept) {
    seconds_ += std::max(2 * results.fresh_seconds, results.least_seconds);
    largest_ = std::max(largest_, results.held_bytes);
    return;
  }
  windows_ += results.window_bytes;
  const double again = results.again_bytes * iterations_;
  fresh_seconds_ += results.fresh_seconds +
                    std::max(results.bytes * (results.rows_read - 1) - again, 0.0) * results.reread_seconds_per_byte;
  least_seconds_ += results.least_seconds;
  through_windows_ += results.bytes + again;
  turns_ = turns_ > 0 ? std::min(turns_, results.turns) : results.turns;
  calls_with_windows_ += iterations_;
}

double GroupCost::part_hinted(const MemoryCosts& memories, double bytes, double calls) const {
  if (!may_fetch_ || (piece_bytes_ > 0 && resamples_)) return 0;
  const double portions = bytes / (calls * kFreePortion);
  // Most strips examined are far too long: avoids the logarithm for them.
  if (portions >= (piece_bytes_ > 0 ? kNoneOfPieces : kNoneOfRows)) return 0;
  const double lost = portions > 1 ? (piece_bytes_ > 0 ? kLostOfPieces : kLostOfRows) * std::log2(portions) : 0;
  return std::max(1 - lost, 0.0) * memories.part_held_beside(windows_ + largest_, bytes / full_iterations_);
}

double GroupCost::again_seconds(const MemoryCosts& memories, double bytes) const {
  const auto seconds = [&](double again, double turns) {
    return again > 0 ? again * memories.seconds_per_byte(bytes / turns + windows_ + largest_) : 0;
  };
  return seconds(again_, iterations_) + seconds(again_around_, turns_around_);
}

struct GroupCost::Ways {
  double bytes = 0, way = 0;   // read and written outside, and the seconds for it
  double far = 0, nearby = 0;  // the parts in the largest memory, and in the one before it
  double apart = 0;            // additional seconds, of strips
  double hidden = 0;           // ... less, without hints
  double inside = 0, between_uses = 0;
  double lost = 0;  // inside, since streaming data evicts results that are passed on
  double waited = 0, waited_hinted = 0, loaded = 0;

  double plain_seconds() const { return way + inside + far * (apart - hidden) + waited + loaded; }
};

// Results without a window are stored where the previous iteration had its own, which may have been evicted since.
// Where half of the smallest memory is assumed to be certain, that leaves room for what streams by.
double GroupCost::pushed_out_seconds(const MemoryCosts& memories, double passed) const {
  const double held = windows_ + largest_;
  if (iterations_ <= 1 || largest_ <= 0 || !memories.smallest_is_measured() || memories.is_in_smallest(held + passed))
    return 0;
  return full_iterations_ * largest_ * (memories.seconds_per_byte(held + passed) - memories.seconds_per_byte(held));
}

double GroupCost::moved_seconds(const MemoryCosts& memories, double between_uses) const {
  return through_windows_ * memories.seconds_per_byte(between_uses) + fresh_seconds_;
}

double GroupCost::inside_seconds(const MemoryCosts& memories, const Ways& w, double beside) const {
  double slower = 1;
  if (beside > 0 && seconds_ > 0) {
    const double between = beside * std::min(kCallsBetween / stages_, 1.0);
    slower = memories.seconds_per_byte(largest_ + between) / memories.seconds_per_byte(largest_);
  }
  const double moved = moved_seconds(memories, w.between_uses + beside);
  return slower * seconds_ + w.lost + std::max(moved, least_seconds_) + kNotBeside * std::min(moved, least_seconds_);
}

double GroupCost::fetching_seconds(const CostModel& model, const MemoryCosts& memories, const Ways& w,
                                   double bound) const {
  const double far = w.far * saved_by_hints(model.fetched_part, model.fetched_way, w.way, w.apart, w.inside);
  const double nearby =
      w.nearby * saved_by_hints(model.fetched_part_nearby, model.fetched_way_nearby, w.way, 0, w.inside);
  const double most = std::max(far + nearby, 0.0);
  if (w.plain_seconds() - w.waited - most >= bound) return w.plain_seconds();
  // Along rows all reads of the next iteration are prefetched, whether or not the previous row has read them.
  const double saved = most * part_hinted(memories, w.bytes + again_around_, full_iterations_ * stages_);
  if (saved <= 0) return w.plain_seconds();
  const double pushed_out = inside_seconds(memories, w, kBeside * w.bytes / full_iterations_) - w.inside;
  return w.plain_seconds() - std::max(saved - w.far * w.hidden - pushed_out, 0.0) - w.waited + w.waited_hinted;
}

// The results go to the largest memory, however small they are, and leave the other memories to reads. Lines that
// pieces share are written as a whole, but read before that: prefetches are for what the stages read. Down columns this
// applies to both pieces.
double GroupCost::non_temporal_seconds(const CostModel& model, const MemoryCosts& memories, const Ways& w,
                                       double bound) const {
  const double results = w.bytes - outside_;
  const double way = outside_ * memories.seconds_per_byte(outside_) + results * memories.slowest_seconds_per_byte();
  const double far = (outside_ * memories.part_in_largest(outside_) + results) / w.bytes;
  const double nearby = turns_ == 0 ? outside_ * memories.part_nearby(outside_) / w.bytes : 0;
  const double apart = w.apart / w.way * way;
  const double most = far * saved_by_hints(model.non_temporal_part, model.non_temporal_way, way, apart, w.inside) +
                      nearby * saved_by_hints(model.fetched_part_nearby, model.fetched_way_nearby, way, 0, w.inside);
  const double lines = shared_lines_ * (piece_bytes_ > 0 ? 2 : 1);
  const double shared = 2 * lines * static_cast<double>(kLineBytes) * memories.slowest_seconds_per_byte();
  const double outside = way + far * apart + shared + w.waited_hinted + w.loaded;
  if (outside + w.inside - std::max(most, 0.0) >= bound) return outside + w.inside;
  return outside - most * part_hinted(memories, outside_ + again_around_, full_iterations_ * (stages_ + 1)) +
         inside_seconds(memories, w, kBeside * outside_ / full_iterations_);
}

GroupTotal GroupCost::with_far(GroupTotal out, Far far, const CostModel& model, const MemoryCosts& memories,
                               const Ways& ways, double bound) const {
  out.far = far;
  if (far == Far::plain) return out;
  const bool non_temporal = far == Far::non_temporal;
  bound -= out.cost.dispatch_seconds + out.cost.redundant_seconds;
  out.cost.memory_seconds = non_temporal ? non_temporal_seconds(model, memories, ways, bound)
                                         : fetching_seconds(model, memories, ways, bound);
  out.cost.dispatch_seconds += calls_ * kSecondsOfHints + (non_temporal ? iterations_ * model.seconds_per_call : 0);
  return out;
}

double GroupCost::dispatch_seconds(const CostModel& model) const {
  return calls_ * model.seconds_per_call + calls_with_windows_ * model.seconds_per_window +
         rows_ * model.seconds_per_row + (goes_along_rows_ && turns_ > 0 ? pieces_ * model.seconds_per_piece : 0);
}

// Prefetching hides at most the transfer, and streaming data only adds to the inside cost.
double GroupCost::at_least(const CostModel& model, const MemoryCosts& memories) const {
  return dispatch_seconds(model) + inside_seconds(memories, {.between_uses = windows_ + largest_}, 0) +
         loaded_ * memories.fastest_seconds_per_byte();
}

GroupCost::Ways GroupCost::outside_ways(const PipelineNumbers& numbers, const CostModel& model,
                                        const MemoryCosts& memories, size_t last) const {
  Ways w{.bytes = outside_ + numbers.stages[last].bytes};
  w.way = w.bytes * memories.seconds_per_byte(w.bytes);
  w.far = memories.part_in_largest(w.bytes);
  // With windows, whose rows are loaded repeatedly, such prefetches hide nothing.
  if (turns_ == 0 && model.fetched_part_nearby > 0) w.nearby = memories.part_nearby(w.bytes);
  return w;
}

bool GroupCost::offers_hints(const CostModel& model, const Ways& w) const {
  return (w.far > 0 || w.nearby * model.fetched_part_nearby > 0) && iterations_ > 1;
}

bool GroupCost::hints_may_help(const PipelineNumbers& numbers, const CostModel& model, const MemoryCosts& memories,
                               size_t last) const {
  const Ways w = outside_ways(numbers, model, memories, last);
  return model.fetched_part > 0 && offers_hints(model, w) &&
         part_hinted(memories, w.bytes + again_around_, full_iterations_ * stages_) > 0;
}

GroupTotal GroupCost::total(const PipelineNumbers& numbers, const CostModel& model, const MemoryCosts& memories,
                            size_t last, Far far, double bound) const {
  const StageNumbers& results = numbers.stages[last];
  Ways w = outside_ways(numbers, model, memories, last);
  w.apart = iterations_ > 1 ? (model.apart - 1) * w.way : 0;
  w.between_uses = w.bytes / std::max(turns_, 1.0) + windows_ + largest_;
  w.lost = pushed_out_seconds(memories, w.bytes / full_iterations_);
  w.inside = inside_seconds(memories, w, 0);
  if (turns_ == 0 && memories.is_in_smallest(largest_))
    w.hidden = part_ahead(outside_ / full_iterations_, model.ahead_bytes) *
               (kApartHidden * w.apart + model.ahead_part * std::min(w.way, w.inside));
  // Where loads from the smallest memory take longer than the transfers through windows, the hardware has that time to
  // prefetch the next whole rows.
  if (turns_ > 0 && piece_bytes_ == 0 && !goes_along_rows_)
    w.hidden =
        (1 - kNotBeside) * std::min(w.way, std::max(least_seconds_ - moved_seconds(memories, w.between_uses), 0.0));
  w.waited = piece_bytes_ > 0 ? kWaited * outside_ / piece_bytes_ * memories.latency_seconds(w.bytes) : 0;
  w.waited_hinted =
      piece_bytes_ > 0 ? (w.far + w.nearby) * outside_ / piece_bytes_ * model.seconds_per_hinted_piece : 0;
  w.loaded = loaded_ * memories.fastest_seconds_per_byte() + again_seconds(memories, w.bytes);
  GroupTotal plain;
  plain.cost.memory_seconds = w.plain_seconds();
  plain.cost.dispatch_seconds = dispatch_seconds(model);
  plain.cost.redundant_seconds = redundant_ * model.seconds_per_element;
  if (far != Far::cheapest) return with_far(plain, far, model, memories, w, bound);
  GroupTotal out = plain;
  const auto offer = [&](Far other) {
    const GroupTotal made = with_far(plain, other, model, memories, w, std::min(bound, out.cost.seconds()));
    if (made.cost.seconds() < out.cost.seconds()) out = made;
  };
  if (!offers_hints(model, w)) return out;
  if (model.fetched_part > 0) offer(Far::fetched);
  const bool gains = model.non_temporal_part > 0 || model.non_temporal_way < 1;
  if (gains && results.may_be_non_temporal(last) && !memories.is_held(results.bytes)) offer(Far::non_temporal);
  return out;
}

}  // namespace tenon::program::detail
