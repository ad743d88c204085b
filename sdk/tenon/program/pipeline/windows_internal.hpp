// Inside the room: what each iteration computes, and what is kept for later ones.
//
// Terms, for a stage in a loop over y with step s, and an index of it that moves with y:
//   U(p)   the last index required after the loop has covered everything up to p; non-decreasing in p
//   need   the first index that readers still read in this iteration, each only for what it computes itself
// An iteration computes max(need, U(y - 1) + 1) .. U(y + s - 1), the first one need .. U. Indices below U(y - 1) + 1
// that readers read were computed by earlier iterations: the buffer carries a window, of at most U(y + s - 1) - need +
// 1 indices.
//
// In the first iteration windows of windows would be larger than ever after. Warm-up iterations before the loop's
// beginning, which compute only what windows lack, keep them small. windows.cpp computes slides, windows_extents.cpp
// the extents of windows and the warm-up, windows_memory.cpp their memory.
#pragma once
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include <tenon/program/pipeline/plan_internal.hpp>

namespace tenon::program::detail {

// The values of a loop's symbols, for the loop as planned so far.
struct LoopTerms {
  LoopRange range;
  Substitution by_index;  // the symbols of an iteration's bounds, as functions of its index alone
  Substitution at_start;
  explicit LoopTerms(const LoopPlan& loop)
      : range{loop.symbol, loop.begin(), loop.range.last, loop.step},
        by_index{{loop.lo, loop.index_symbol()}, {loop.hi, loop.index_symbol() + loop.step - 1}},
        at_start{{loop.lo, loop.first},
                 {loop.hi, min(range.first + loop.step - 1, range.last)},
                 {loop.symbol, range.first}} {}
};

class WindowPlanner {
 public:
  explicit WindowPlanner(Plan& plan) : plan_(plan) {}

  void run();

 private:
  // The memory of a buffer is outside of loops in which only one of it and the buffers in its memory is computed.
  void keep_for_aliases(int b);

  // Slides of readers are known before those of their producers are computed; the results are valid until slides are
  // computed anew.
  void slide_all();

  // --- what an iteration computes ---

  void slide(int s, int l);

  // The one index that moves with the loop and with no inner loop; -1 if there is none. An index that follows an inner
  // loop moves with this one where the range of the inner loop does.
  int moved_index(const StagePlan& stage, int l) const;
  // Whether an inner loop iterates over the same index of the same stage: bands pass nothing to one another.
  bool is_band(int l) const;
  bool is_monotone(const Window& required, const LoopPlan& loop) const;

  // Whether all results have the same memory in all iterations of the loop.
  bool may_carry(int s, int l) const;

  // The number of loops inside of which the author has placed the memory.
  size_t store_depth(int buffer) const;

  // The first index of the stage that any reader reads in an iteration.
  std::optional<Expr> need(int s, int index, int l, Iteration iteration) const;
  std::optional<Expr> need_of_buffer(int buffer, size_t d, int l, Iteration iteration) const;
  std::optional<Expr> find_need(int buffer, size_t d, int l, Iteration iteration) const;
  void find_carried(int s, int index, int l, const Expr& previous);
  static Expr first_of(const LoopPlan& loop, const Expr& need, const Expr& next);

  // --- warm-up ---

  bool warm_up(int l);
  int moved_dim(int b, int l) const;
  const Expr& last_of(int b, int dim) const;

  // Indices kept in any iteration but the first, and in the first, with `ahead` more iterations in flight.
  Expr window_extent(int b, int dim, int l, const Expr& ahead) const;
  Expr initial_extent(int b, int dim, int l, const Expr& ahead) const;

  // --- memory ---

  bool needs_memory(int b) const;
  void store(int b);

  // Serialises iterations that may write the same elements of memory that they share.
  void make_serial_if_shared(int b, int l);

  // Makes loops inside of the one whose workers have slots of the buffer serial: their workers would use other slots in
  // an execution in which the outer loop has only one iteration.
  void make_serial_within(int b, size_t level);

  // Whether no two iterations require the same index.
  bool is_disjoint(const Window& required, const LoopPlan& loop) const;
  bool is_carried(int b, int l) const;

  // A ring buffer where all kernels that access the buffer accept one, else a contiguous window; else all indices are
  // kept.
  void keep_window(int b, int l, Storage& storage) const;

  static Substitution next_of(const LoopPlan& loop) { return {{loop.symbol, loop.index_symbol() + loop.step}}; }

  std::optional<LinearWindow> linear_window(int b, int dim, int l) const;

  // Whether other stages write to the memory of the buffer.
  bool holds_sources(int b) const;

  // Whether a view of the buffer allows a ring: each index of the view must be the index of the ring.
  bool may_be_ring(int b, int dim) const;
  Expr ring_places(int b, int dim, int l) const;

  static Expr workers(const LoopPlan& loop) {
    return max(
        min(min(loop.workers, Expr::symbol(kThreadsSymbol)), ceildiv(loop.range.last - loop.begin() + 1, loop.step)),
        Expr(1));
  }

  // The most places that the box takes in any iteration of the enclosing loops.
  Expr most_places(int b, size_t d, size_t level) const;

  // The innermost loop in which an iteration other than the first begins at another index of the dim.
  int sliding_loop(int b, size_t d, size_t level) const;

  // `at_first`: a loop that is in its first iteration.
  Expr over_loops(const Window& w, const Path& path, size_t level, int at_first = -1) const;
  Expr over_loops(const Expr& places, const Path& path, size_t level) const {
    return over_loops(Window(0, places - 1), path, level);
  }

  // One for each worker that executes an iteration of its own.
  Expr slots(const Path& path, size_t level) const;

  const LoopTerms& terms(int l) const { return terms_.try_emplace(l, plan_.loop(l)).first->second; }

  Plan& plan_;
  mutable std::map<std::tuple<int, size_t, int, Iteration>, std::optional<Expr>> needs_;  // of need_of_buffer
  mutable std::map<int, LoopTerms> terms_;
};

}  // namespace tenon::program::detail
