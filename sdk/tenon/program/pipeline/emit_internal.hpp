// Inside the room: lowers the plan of a pipeline to statements. emit.cpp has blocks and loops, emit_memory.cpp
// allocations, emit_views.cpp the views of them in iterations, emit_stages.cpp calls and copies, emit_ahead.cpp
// prefetches for later iterations, emit_checks.cpp the conditions on the caller.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <tenon/program/pipeline/plan_internal.hpp>

namespace tenon::program::detail {

// A unit of a block: a stage, or a loop with all stages in it.
struct Unit {
  int stage = -1;
  int loop = -1;
};

// Buffers that become visible in a block.
using Shown = std::variant<View, Allocation>;

class Emitter {
 public:
  explicit Emitter(const Plan& plan)
      : plan_(plan), ids_(plan.buffers.size(), -1), holds_others_(plan.buffers.size(), false) {
    for (const BufferPlan& b : plan.buffers)
      if (b.alias) holds_others_[static_cast<size_t>(b.alias->of)] = true;
  }

  Result<Program> run();

 private:
  // --- buffers ---

  void declare(int b);
  BufferId add(const BufferSpec& spec, const std::string& name, Role role);

  // The buffer of the program that represents this buffer.
  BufferId id(int b);
  std::string visible_name(int b) { return program_.buffer(id(b)).name; }

  static Expr extent(const Window& w) { return max(w.extent(), Expr(0)); }

  // The number of enclosing loops inside of which the buffer's memory is allocated.
  size_t level(int b) const;
  Path level_path(int b) const;

  // Computed inside of loops: an iteration sees its box as a view of the memory that all iterations share.
  bool moves(int b) const { return plan_.buffer(b).storage.level > 0; }

  void make_memory(int b);

  // A buffer of the same loops and size whose memory is free before this one is first used; -1: none.
  int shared_memory(int b);

  // Without a window, and without a dim that has one place.
  bool is_plain_memory(int b) const;
  bool same_memory(int a, int b) const;

  // The first and last unit that access the buffer.
  std::pair<size_t, size_t> life(int b, const std::vector<Unit>& all) const;
  Allocation allocation(int b);

  // Dims that repeat one element have stride 0; the others then need explicit strides.
  void leave_one_place(int b, Allocation& a) const;
  // Makes strides of long rows whole lines, where all kernels that access them accept rows with gaps.
  void begin_rows_at_lines(int b, Allocation& a) const;

  // The box of an iteration, as a view of the memory that all iterations share.
  View moving_view(int b);

  // The position of a contiguous window in an iteration, as a symbol in its loop.
  Expr place_of_window(int b) const { return Expr::symbol(plan_.buffer_spec(b).name + "_place"); }

  // Copies what a stage has written beyond the period of such a window to the beginning of the next period.
  Statement begin_of_period(int b, const std::vector<Window>& written);

  // The buffer as part of the one whose memory it shares.
  View alias_view(int b);

  // Whether the dim is that of a window.
  bool is_ring(int b, int dim) const;

  // --- expressions in scope ---

  Expr here(const Expr& e) const { return in_scope_.empty() ? e : e.substitute(in_scope_); }
  Range range(const Window& w) const { return {here(w.first), here(w.last) - here(w.first) + 1}; }
  Box box(const std::vector<Window>& windows) const {
    Box out;
    for (const Window& w : windows) out.push_back(range(w));
    return out;
  }
  Expr with_bounds(const Expr& e) const { return here(with_known_bounds(plan_, e).first); }

  // --- blocks ---

  bool is_in(int stage, const Path& path) const;

  // A loop is placed where its stage is: other stages in it come earlier in the order, and have no reader outside of
  // it.
  std::vector<Unit> units(const Path& path) const;
  bool touches(const Unit& unit, int stage) const;
  bool uses_root(const Unit& unit, int root, bool reads_only) const;
  Statement block(const Path& path);
  static Statement wrapped(const Shown& what, Statement body);

  // What becomes visible in the block, in order.
  std::vector<Shown> views_at(const Path& path);
  bool has_memory(int b) const;

  // Those that need a view, parents first.
  std::vector<int> aliases_in_order() const;

  // The outermost block: memory is live from the first unit that accesses it to the last.
  Statement with_memory(const std::vector<Unit>& all, std::vector<Statement> done, std::vector<Shown> views);
  int lives_root(const Shown& view) const;
  size_t first_use(int root, const std::vector<Unit>& all) const;

  // --- units ---

  Statement unit(const Path& path, const Unit& u);
  Statement loop(Path path, int l);

  // Binds the symbol to the value from here on, by a Let when the value is worth a name.
  void bind(const std::string& symbol, const Expr& value, std::vector<std::pair<std::string, Expr>>& lets);
  Statement stage(int s);
  static void name(Expr& e, const std::string& as, std::vector<std::pair<std::string, Expr>>& lets, const Expr& value);
  void name(Expr& e, const std::string& as, std::vector<std::pair<std::string, Expr>>& lets) const;
  Statement call(int s, const std::vector<Window>& indices);
  Statement copies(int s, const std::vector<Window>& indices);

  // --- stages of overlapping iterations ---

  // Whether a later iteration reads what the unit writes.
  bool hands_on(const Unit& unit, int root, int l) const;
  Statement with_signals(const Path& path, const std::vector<Unit>& all, size_t i, Statement s) const;

  //  --- accesses of later iterations ---

  // Prefetches for reads and writes of the stages of an innermost block in memory outside its loop. Empty where nothing
  // is to be prefetched.
  std::vector<Prefetch> fetched_ahead(const Path& path, const std::vector<Unit>& all);
  // Whether the memory of the buffer is shared by all iterations of the enclosing loops, at fixed positions per index.
  bool is_far(int b) const;
  bool is_made_in(int b, int l) const;
  bool is_read_outside(int b, int l) const;
  // `w`, accessed by an iteration, for the iteration that begins at `first`.
  Window in_iteration(int l, const Expr& first, const Window& w);
  // The same for the iteration `iterations` later, minus what the one before that has accessed.
  Window moved_on(int l, int64_t iterations, const Window& w);
  // The indices that the later iteration accesses and this one prefetches.
  Box later_box(int l, const std::vector<Window>& touched);
  // Those of the next execution of the loop, in the next iteration of the enclosing one; empty until the last
  // iteration.
  Box box_after_the_last(int around, int l, const std::vector<Window>& touched);
  // The portion of each prefetch for one of the block's statements.
  static std::vector<Statement> portions(const std::vector<Prefetch>& hints, size_t part, size_t parts);

  //  --- conditions on the caller ---

  std::vector<Statement> checks();
  void check_covered(int b, int d, std::vector<Statement>& out);

  const Plan& plan_;
  Program program_;
  std::vector<BufferId> ids_;
  std::vector<bool> holds_others_;  // buffers with others in their memory
  std::map<int, BufferId> memory_;
  std::map<int, Allocation> allocations_;
  // of memory that several buffers share: when it is in use
  std::map<int, std::vector<std::pair<size_t, size_t>>> taken_;
  Substitution in_scope_;
};

}  // namespace tenon::program::detail
