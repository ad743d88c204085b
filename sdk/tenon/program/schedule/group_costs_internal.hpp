// Inside the room: the cost of a group of stages, whose last one is computed strip by strip, and the others with it.
// The model is that of auto_schedule.hpp.
#pragma once
#include <algorithm>
#include <limits>
#include <vector>

#include <tenon/program/schedule/auto_schedule.hpp>
#include <tenon/program/schedule/stage_numbers_internal.hpp>

namespace tenon::program::detail {

// Of a memory, for what is used again.
double usable_bytes(const CostModel::Memory& memory);

// How much of the way of pieces is hidden where so many bytes are fetched ahead: all of it up to those, and none of it
// from a sixth more on.
double part_ahead(double piece, double ahead);

// The memories of a model, as costs ask for them again and again.
class MemoryCosts {
 public:
  explicit MemoryCosts(const CostModel& model);
  // Of a byte that is used again after so many others: the smallest memory that may hold it has it, or the next one.
  double seconds_per_byte(double bytes) const;
  // Of the smallest memory that holds so many bytes for certain.
  double latency_seconds(double bytes) const;
  // Whether the model states what the smallest memory holds for certain.
  bool smallest_is_measured() const { return smallest_is_measured_; }
  bool is_in_smallest(double bytes) const { return bytes <= levels_.front().sure; }
  // The part of so many bytes, used again after one another, that only the largest memory has.
  double part_in_largest(double bytes) const;
  // ... and that only the one before it has.
  double part_nearby(double bytes) const;
  // Whether so many bytes are for certain found by who uses them next, before the largest memory.
  bool is_held(double bytes) const { return levels_.size() > 1 && bytes <= levels_[levels_.size() - 2].sure; }
  double fastest_seconds_per_byte() const { return levels_.front().seconds_per_byte; }
  double slowest_seconds_per_byte() const { return levels_.back().seconds_per_byte; }
  // The part of so many bytes, used again after one another, that the smallest memory has lost.
  double part_beyond_smallest(double bytes) const;
  // The part of `more` bytes that the smallest memory with room for `bytes` holds beside them.
  double part_held_beside(double bytes, double more) const;

 private:
  struct Level {
    double sure, bytes;       // the last one: infinite
    double lost_per_byte;     // beyond what is sure
    double seconds_per_byte;  // of what is found there
    double latency_seconds;
  };
  std::vector<Level> levels_;
  bool smallest_is_measured_;
};

// Loops around a group, innermost first; none: its stages are computed one after the other.
struct Strips {
  struct Loop {
    int dim = -1;     // of the pipeline
    double step = 1;  // of a stage that has the dim's largest extent; of others as much less as they have fewer indices
    bool operator==(const Loop&) const = default;
  };
  std::vector<Loop> loops;
  bool operator==(const Strips&) const = default;

  double iterations(const PipelineNumbers& numbers) const;
  // How many of a whole step what they go over is: less where the last ones are cut.
  double full_iterations(const PipelineNumbers& numbers) const;
  // Bytes of a stage's rows that are computed without a gap; 0: rows are not cut, or the next piece of each is computed
  // soon, as in tiles.
  double piece_bytes(const PipelineNumbers& numbers, size_t at) const;
  // Whether hints are tried in such loops.
  bool may_fetch() const { return loops.size() == 1 || loops.size() == 2; }
};

// Whether some other stage has far more indices of a dim. Down columns such stages take some 60 ns more for each piece
// of a row than is predicted, whatever is fetched: nothing is.
bool is_resampled(const PipelineNumbers& numbers, const StageNumbers& n);

// What a loop does about the largest memory: nothing; it fetches ahead; it fetches what it reads, and its results are
// stored non-temporally; or what is predicted to be the cheapest.
enum class Far : uint8_t { plain, fetched, non_temporal, cheapest };
struct GroupTotal {
  PredictedCost cost;
  Far far = Far::plain;
};

// What an iteration does with the results of one stage.
struct Share {
  double made = 0;           // bytes, on average
  double most = 0;           // ... where it is not cut
  double read = 0;           // bytes of it that the iteration's readers need, with what earlier iterations made
  double seen = 0;           // bytes of it that lie in memory meanwhile, for this iteration and later ones
  double turns = 1;          // iterations of the outermost loop that keeps a window of it, and of those around
  double rows = 1;           // written and read in all iterations, each piece of one counted
  double pieces = 0;         // that its rows are cut into, in all iterations; 0: they are whole
  double shared_lines = 0;   // of the caches, by two rows or pieces of one that follow each other
  double row_bytes = 0;      // of a row, or of a piece of one
  double rows_read = 1;      // for each row of its reader
  bool resampled = false;    // see is_resampled()
  bool moves = false;        // another part in other iterations
  bool kept = false;         // a window of it stays from one iteration to the next
  bool kept_around = false;  // ... of a loop that is not the innermost

  // Of what its stage reads, so much is read again: by the next iteration of the innermost loop; by later ones of loops
  // around it, of the outermost of which, and of those around, there are so many.
  double again = 0, again_around = 0;
  double turns_around = 1;

  double read_again() const { return std::max(read - made, 0.0); }
};
Share share_of(const PipelineNumbers& numbers, const Strips& strips, size_t at);

// What results of a stage cost that are handed on within a group, in all iterations.
struct Inside {
  double bytes = 0, again_bytes = 0;        // made; made by earlier iterations and read again, in each
  double fresh_seconds = 0;                 // of reading what the same iteration has made
  double least_seconds = 0;                 // that its reader takes
  double window_bytes = 0, held_bytes = 0;  // kept; made in an iteration, with what its reader makes of it
  double turns = 1;                         // see Share
  double rows_read = 1,
         reread_seconds_per_byte = 0;  // of rows that a call reads again: 0: the smallest memory has them
  bool kept = false;
};
Inside inside_of(const StageNumbers& n, const MemoryCosts& memories, const Share& share, const Share& reader);

// The costs of the stages first ... last; made by adding them one by one. Bytes are those of all iterations, but where
// it is said.
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
  // The next stage in the order, what an iteration does with it, and what the one added before costs as it hands its
  // results on.
  void add(const PipelineNumbers& numbers, size_t at, const Share& share, const Inside& before);
  // So many elements are computed again, since their author keeps no window of them.
  void add_redundant(double elements) { redundant_ += elements; }
  // Whether all that reads its results is in it, but for those of the last stage.
  bool is_closed(size_t last) const { return last_use_ <= last; }
  // Where that is sure to be `bound` or more, it may be any number from there on.
  GroupTotal total(const PipelineNumbers& numbers, const CostModel& model, const MemoryCosts& memories, size_t last,
                   Far far, double bound = std::numeric_limits<double>::infinity()) const;
  // No more than its total, whatever its loop does about the largest memory, and sooner known.
  double at_least(const CostModel& model, const MemoryCosts& memories) const;
  double window_bytes() const { return windows_ + largest_; }

 private:
  void make_inside(const Inside& results);
  double dispatch_seconds(const CostModel& model) const;
  // Of what is saved where so many bytes are fetched ahead in so many calls, the part that is: hints that wait hold up
  // the work, however much more of the way there is than work that could hide it.
  double part_hinted(const MemoryCosts& memories, double bytes, double calls) const;
  // A loop's way from and to the largest memory, and what it does meanwhile.
  struct Ways;
  // More, of what is handed on at once where so many bytes pass in an iteration.
  double pushed_out_seconds(const MemoryCosts& memories, double passed) const;
  // Of what windows are kept of, where so many bytes lie between two uses of a place.
  double moved_seconds(const MemoryCosts& memories, double between_uses) const;
  // Of what the group alone sees, where so many bytes of others lie beside.
  double inside_seconds(const MemoryCosts& memories, const Ways& ways, double beside) const;
  // `bound`: as in total().
  double fetching_seconds(const CostModel& model, const MemoryCosts& memories, const Ways& ways, double bound) const;
  double non_temporal_seconds(const CostModel& model, const MemoryCosts& memories, const Ways& ways,
                              double bound) const;
  // Memory and hints, and the calls that move results.
  GroupTotal with_far(GroupTotal plain, Far far, const CostModel& model, const MemoryCosts& memories, const Ways& ways,
                      double bound) const;
  // Of what comes from elsewhere and is read again, where all iterations read and write so many bytes outside.
  double again_seconds(const MemoryCosts& memories, double bytes) const;

  size_t first_;
  double iterations_, full_iterations_, piece_bytes_;
  double stages_ = 0;
  bool goes_along_rows_;  // in tiles
  bool may_fetch_;
  bool resamples_ = false;
  size_t last_use_ = 0;   // of results of all stages but the last
  double outside_ = 0;    // bytes that come from elsewhere
  double loaded_ = 0;     // ... of stages before the group, as often as their readers load them
  double windows_ = 0;    // bytes of what is kept, in an iteration
  double largest_ = 0;    // ... that any stage makes whose results are not kept, with its reader's
  double seconds_ = 0;    // of results that only the group sees and no window is kept of
  double redundant_ = 0;  // elements
  // Of results that windows are kept of: written, and read by later iterations; read by the same one; and seconds that
  // their readers take at least.
  double through_windows_ = 0, fresh_seconds_ = 0, least_seconds_ = 0;
  // Of what comes from elsewhere: bytes that are read again, see Share; and the fewest turns of loops around.
  double again_ = 0, again_around_ = 0, turns_around_ = 0;
  double nearest_seconds_ = 0;  // that readers of all results within take at least
  double turns_ = 0;            // fewest iterations between which a place of a window is used again; 0: no window
  double calls_ = 0, calls_with_windows_ = 0;
  double rows_ = 0;          // that calls write and read: pieces of them, where loops cut rows
  double pieces_ = 0;        // of all rows that are cut
  double shared_lines_ = 0;  // of results of the last stage
};

}  // namespace tenon::program::detail
