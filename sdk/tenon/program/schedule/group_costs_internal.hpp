// Inside the room: the cost of a group of stages, which are computed together, strip by strip of the last one. The
// model is that of auto_schedule.hpp.
#pragma once
#include <algorithm>
#include <limits>
#include <vector>

#include <tenon/program/schedule/auto_schedule.hpp>
#include <tenon/program/schedule/stage_numbers_internal.hpp>

namespace tenon::program::detail {

// Capacity of a memory for data that is reused.
double usable_bytes(const CostModel::Memory& memory);

// The part of the transfer time of pieces that is hidden where `ahead` bytes are prefetched: all of it for pieces up to
// that size, none of it from a sixth more on.
double part_ahead(double piece, double ahead);

// The memories of a model, in a form for frequent queries.
class MemoryCosts {
 public:
  explicit MemoryCosts(const CostModel& model);
  // For a byte that is reused after `bytes` others: the smallest memory that may hold it, or the next one, serves it.
  double seconds_per_byte(double bytes) const;
  // Of the smallest memory that certainly holds so many bytes.
  double latency_seconds(double bytes) const;
  // Whether the model states what the smallest memory certainly holds.
  bool smallest_is_measured() const { return smallest_is_measured_; }
  bool is_in_smallest(double bytes) const { return bytes <= levels_.front().sure; }
  // The part of `bytes` bytes, reused cyclically, that is only in the largest memory.
  double part_in_largest(double bytes) const;
  // ... and that is only in the one before it.
  double part_nearby(double bytes) const;
  // Whether `bytes` bytes certainly are still in a memory before the largest one when they are next used.
  bool is_held(double bytes) const { return levels_.size() > 1 && bytes <= levels_[levels_.size() - 2].sure; }
  double fastest_seconds_per_byte() const { return levels_.front().seconds_per_byte; }
  double slowest_seconds_per_byte() const { return levels_.back().seconds_per_byte; }
  // The part of `bytes` bytes, reused cyclically, that the smallest memory has evicted.
  double part_beyond_smallest(double bytes) const;
  // The part of `more` bytes that fits beside `bytes` in the smallest memory with room for these.
  double part_held_beside(double bytes, double more) const;

 private:
  struct Level {
    double sure, bytes;       // the last one: infinite
    double lost_per_byte;     // beyond the certain capacity
    double seconds_per_byte;  // of data found there
    double latency_seconds;
  };
  std::vector<Level> levels_;
  bool smallest_is_measured_;
};

// Loops around a group, innermost first; none: its stages are computed one after another.
struct Strips {
  struct Loop {
    int dim = -1;     // of the pipeline
    double step = 1;  // of a stage that has the dim's largest extent; of others proportionally less
    bool operator==(const Loop&) const = default;
  };
  std::vector<Loop> loops;
  bool operator==(const Strips&) const = default;

  double iterations(const PipelineNumbers& numbers) const;
  // The size of the iteration space in full steps, which is fractional where the last iterations are cut.
  double full_iterations(const PipelineNumbers& numbers) const;
  // Bytes of a stage's rows that are computed contiguously; 0: rows are not cut, or the next piece of each is computed
  // soon, as in tiles.
  double piece_bytes(const PipelineNumbers& numbers, size_t at) const;
  // Whether prefetching is considered in such loops.
  bool may_fetch() const { return loops.size() == 1 || loops.size() == 2; }
};

// Whether some other stage has far more indices of a dim. In loops down columns such stages take some 60 ns more per
// piece of a row than predicted, whatever is prefetched: nothing is prefetched there.
bool is_resampled(const PipelineNumbers& numbers, const StageNumbers& n);

// How a loop treats the largest memory: no prefetch; prefetch; prefetch of reads, with results stored non-temporally;
// or whichever is predicted to be the cheapest.
enum class Far : uint8_t { plain, fetched, non_temporal, cheapest };
struct GroupTotal {
  PredictedCost cost;
  Far far = Far::plain;
};

// The results of one stage in one iteration.
struct Share {
  double made = 0;           // bytes, on average
  double most = 0;           // ... in an uncut iteration
  double read = 0;           // bytes of it that the iteration's readers need, including those of earlier iterations
  double seen = 0;           // bytes of it that are live meanwhile, for this iteration and later ones
  double turns = 1;          // iterations of the outermost loop that keeps a window of it, and of its outer loops
  double rows = 1;           // written and read in all iterations; each piece of a row counts as one
  double pieces = 0;         // of its rows, in all iterations; 0: rows are not cut
  double shared_lines = 0;   // cache lines shared by two adjacent rows, or adjacent pieces of one
  double row_bytes = 0;      // of a row, or of a piece of one
  double rows_read = 1;      // per row of its reader
  bool resampled = false;    // see is_resampled()
  bool moves = false;        // differs between iterations
  bool kept = false;         // a window of it is kept from one iteration to the next
  bool kept_around = false;  // ... of a loop that is not the innermost

  // Bytes read by its stage that are read again: by the next iteration of the innermost loop; by later iterations of
  // outer loops. `turns_around`: iterations of the outermost of these and of the loops around it.
  double again = 0, again_around = 0;
  double turns_around = 1;

  double read_again() const { return std::max(read - made, 0.0); }
};
Share share_of(const PipelineNumbers& numbers, const Strips& strips, size_t at);

// The cost of results of a stage that are passed on within a group, in all iterations.
struct Inside {
  double bytes = 0, again_bytes = 0;        // computed; computed by earlier iterations and read again, in each
  double fresh_seconds = 0;                 // of reading results of the same iteration
  double least_seconds = 0;                 // least time of its reader
  double window_bytes = 0, held_bytes = 0;  // kept; made in an iteration, plus the reader's results
  double turns = 1;                         // see Share
  double rows_read = 1,
         reread_seconds_per_byte = 0;  // of rows that a call reads again; 0: the smallest memory has them
  bool kept = false;
};
Inside inside_of(const StageNumbers& n, const MemoryCosts& memories, const Share& share, const Share& reader);

// The costs of the stages first ... last, accumulated one by one. Bytes are those of all iterations unless stated
// otherwise.
class GroupCost {
 public:
  GroupCost(size_t first, const PipelineNumbers& numbers, const Strips& strips)
      : first_(first),
        iterations_(strips.iterations(numbers)),
        full_iterations_(strips.full_iterations(numbers)),
        piece_bytes_(strips.piece_bytes(numbers, first)),
        goes_along_rows_(strips.loops.size() > 1 && piece_bytes_ == 0),
        may_fetch_(strips.may_fetch()) {}

  size_t first() const { return first_; }
  // Adds the next stage in the order, its results in one iteration, and the cost of passing on the results of the stage
  // added before.
  void add(const PipelineNumbers& numbers, size_t at, const Share& share, const Inside& before);
  // Adds elements that are recomputed, since their author keeps no window of them.
  void add_redundant(double elements) { redundant_ += elements; }
  // Whether all readers of its results are in the group, except for results of the last stage.
  bool is_closed(size_t last) const { return last_use_ <= last; }
  // Where the total is certain to be `bound` or more, any number from `bound` on may be returned.
  GroupTotal total(const PipelineNumbers& numbers, const CostModel& model, const MemoryCosts& memories, size_t last,
                   Far far, double bound = std::numeric_limits<double>::infinity()) const;
  // A lower bound of its total for any treatment of the largest memory, cheaper to compute.
  double at_least(const CostModel& model, const MemoryCosts& memories) const;
  double window_bytes() const { return windows_ + largest_; }
  // Whether hints for far memory can save anything where that is as slow as the model has it, whatever they cost.
  bool hints_may_help(const PipelineNumbers& numbers, const CostModel& model, const MemoryCosts& memories,
                      size_t last) const;

 private:
  void make_inside(const Inside& results);
  double dispatch_seconds(const CostModel& model) const;
  // The part of the possible saving that remains where `bytes` bytes are prefetched in `calls` calls: waiting
  // prefetches stall the work, however much longer the transfer is than the work that could hide it.
  double part_hinted(const MemoryCosts& memories, double bytes, double calls) const;
  // A loop's transfers from and to the largest memory, and the work that overlaps with them.
  struct Ways;
  // Those of all reads and writes outside the group; nothing else is set.
  Ways outside_ways(const PipelineNumbers& numbers, const CostModel& model, const MemoryCosts& memories,
                    size_t last) const;
  bool offers_hints(const CostModel& model, const Ways& ways) const;
  // Additional time for results that are passed on at once, where `passed` bytes stream by in an iteration.
  double pushed_out_seconds(const MemoryCosts& memories, double passed) const;
  // For results of which windows are kept, where `between_uses` bytes are accessed between two uses of a place.
  double moved_seconds(const MemoryCosts& memories, double between_uses) const;
  // For results that only the group sees, where `beside` bytes of others are live.
  double inside_seconds(const MemoryCosts& memories, const Ways& ways, double beside) const;
  // `bound`: as in total().
  double fetching_seconds(const CostModel& model, const MemoryCosts& memories, const Ways& ways, double bound) const;
  double non_temporal_seconds(const CostModel& model, const MemoryCosts& memories, const Ways& ways,
                              double bound) const;
  // Memory and prefetches, and the calls that move results.
  GroupTotal with_far(GroupTotal plain, Far far, const CostModel& model, const MemoryCosts& memories, const Ways& ways,
                      double bound) const;
  // For data from outside that is read again, where all iterations read and write `bytes` bytes outside.
  double again_seconds(const MemoryCosts& memories, double bytes) const;

  size_t first_;
  double iterations_, full_iterations_, piece_bytes_;
  double stages_ = 0;
  bool goes_along_rows_;  // in tiles
  bool may_fetch_;
  bool resamples_ = false;
  size_t last_use_ = 0;   // of results of all stages but the last
  double outside_ = 0;    // bytes from outside the group
  double loaded_ = 0;     // ... of stages before the group, counted once per load by their readers
  double windows_ = 0;    // bytes that are kept, in an iteration
  double largest_ = 0;    // ... the most of any stage whose results are not kept, plus its reader's
  double seconds_ = 0;    // of results that only the group sees and of which no window is kept
  double redundant_ = 0;  // elements
  // For results of which windows are kept: bytes written, and read by later iterations; seconds of reads by the same
  // iteration; and the least seconds of their readers.
  double through_windows_ = 0, fresh_seconds_ = 0, least_seconds_ = 0;
  // For data from outside: bytes that are read again, see Share; and the fewest turns of outer loops.
  double again_ = 0, again_around_ = 0, turns_around_ = 0;
  double nearest_seconds_ = 0;  // least time of the readers of all results inside
  double turns_ = 0;            // fewest iterations between two uses of a window's place; 0: no window
  double calls_ = 0, calls_with_windows_ = 0;
  double rows_ = 0;          // that calls write and read; pieces of them, where loops cut rows
  double pieces_ = 0;        // of all rows that are cut
  double shared_lines_ = 0;  // of results of the last stage
};

}  // namespace tenon::program::detail
