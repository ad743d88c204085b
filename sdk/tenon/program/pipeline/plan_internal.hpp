// Inside the room: the decisions of build() about a pipeline, step by step, before it emits statements.
//
//   order_stages    which stages are needed, producers before readers
//   find_repeats    along which indices copies write one element repeatedly
//   alias_copies    which copies need no work: one side shares the memory of the other
//   place_stages    in which loops each stage is computed, and which indices of its results there
//   plan_windows    what an iteration computes, and what is kept for later ones
//   alias_in_place  which results take the memory of their operands
//   emit_program    statements
//
// Indices of stages and buffers are those of the PipelineData. Boxes are expressions over bounds of declared buffers,
// scalars, and two symbols of each enclosing loop: its `lo` and `hi`, the first and last index that an iteration
// covers.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tenon/expr/bounds.hpp>
#include <tenon/program/pipeline/index_range_internal.hpp>
#include <tenon/program/pipeline/pipeline_data_internal.hpp>

namespace tenon::program {

using Path = std::vector<int>;  // loops, outermost first

struct LoopPlan {
  int stage = -1;   // over whose results it iterates
  int index = -1;   // index of that stage
  int stated = -1;  // which of the loops stated by its author
  Expr step, workers;
  int64_t ahead = 0;  // see LoopOver
  std::string symbol, lo, hi;
  Window range;   // of the index, over the symbols of the enclosing loops: what is required
  Expr first;     // the first index that is computed
  int depth = 0;  // number of enclosing loops
  bool dropped = false;
  bool carries = false;  // some window is carried from one iteration to the next
  Expr warm_up = 0;      // iterations begin this many indices early

  bool parallel() const { return !workers.is_constant(1); }
  Expr begin() const { return first - warm_up; }
  Expr index_symbol() const { return Expr::symbol(symbol); }
};

// For a stage, an index of it and an enclosing loop (not its own) that moves the index: the first index that an
// iteration computes. (The last one is the last required one.)
struct Slide {
  int loop = -1;
  int index = -1;
  Expr first;
  Expr initial;  // in the first iteration
};

struct StagePlan {
  bool needed = false;
  bool is_view = false;    // a copy without work
  bool pads_only = false;  // a copy whose source shares the memory of its destination
  std::vector<std::string> indices;
  // For a copy, per index: 1 where all indices along it get the same element, over values known in a run (else 0).
  std::vector<Expr> repeats;
  Path location;                 // the enclosing loops of the stage, without its own
  Path own;                      // its own loops, outermost first
  std::vector<Window> required;  // per index, over the symbols of `location`
  std::vector<Slide> slides;

  int index_of(std::string_view name) const {
    for (size_t i = 0; i < indices.size(); ++i)
      if (indices[i] == name) return static_cast<int>(i);
    return -1;
  }
  Path body() const {
    Path path = location;
    path.insert(path.end(), own.begin(), own.end());
    return path;
  }
  // The size of body(), without making it.
  size_t body_size() const { return location.size() + own.size(); }
  int body_at(size_t depth) const { return depth < location.size() ? location[depth] : own[depth - location.size()]; }
  bool is_in(int loop) const {
    for (size_t i = 0; i < body_size(); ++i)
      if (body_at(i) == loop) return true;
    return false;
  }
};

// The buffer shares the memory of `of`: its element at `index` is the element of `of` at map(index).
struct Alias {
  int of = -1;
  std::vector<Expr> map;  // per dim of `of`, over the symbols alias_index(d)
  size_t rank = 0;        // of the buffer itself
  bool same() const;      // whether map is the identity
};
Expr alias_index(int dim);

struct Use {
  int stage = -1;
  int read = -1;
};

// A contiguous window of a loop, for kernels that accept no ring buffers. Iterations see `extent` indices from `anchor`
// on, at position (anchor - origin) mod `period`; indices beyond the period are stored twice, at the beginning of the
// memory as well, for later iterations.
struct LinearWindow {
  int loop = -1;
  int dim = -1;
  Expr anchor;  // over the symbol of the loop
  Expr origin;  // the first of all computed indices
  Expr extent;
  Expr period;  // a multiple of the anchor's step per iteration
  Expr places;  // of the memory
};

// How memory is provided for a buffer that shares no other's.
struct Storage {
  int level = 0;        // memory is allocated in each iteration of the first `level` loops around the producer
  int carried_by = -1;  // the loop whose iterations pass on a window, if any
  int ring_dim = -1;
  Expr ring;                 // places of the ring buffer
  std::vector<Window> box;   // the visible indices
  std::vector<Expr> places;  // per dim, over no loop symbols: enough for `box` in any iteration, or for the ring
  std::vector<bool> moves;   // per dim, whether `box` differs between iterations
  Expr slots = 1;
  std::optional<LinearWindow> linear;  // then `level` is 1, and all iterations share the memory
};

struct BufferPlan {
  Role role = Role::local;
  int producer = -1;  // stage
  int write = -1;
  std::vector<Use> uses;
  std::optional<Alias> alias;
  std::vector<int> carried_by;  // loops whose iterations read results of earlier ones
  // all iterations of loops beyond this depth share the memory: they carry no window of it
  size_t keep_outside = SIZE_MAX;
  Storage storage;
};

struct Plan {
  const PipelineData& data;
  const BuildOptions& options;
  std::vector<int> inputs, outputs;
  std::vector<std::string> scalars;
  std::vector<int> order;  // stages that are needed, producers first
  std::vector<StagePlan> stages;
  std::vector<BufferPlan> buffers;
  std::vector<LoopPlan> loops;
  std::vector<Check> checks;  // conditions on the caller under which the plan holds
  Substitution known_bounds;  // bounds of local buffers, and of declared ones with has_bounds(), by their symbols

  StagePlan& stage(int i) { return stages[static_cast<size_t>(i)]; }
  const StagePlan& stage(int i) const { return stages[static_cast<size_t>(i)]; }
  BufferPlan& buffer(int i) { return buffers[static_cast<size_t>(i)]; }
  const BufferPlan& buffer(int i) const { return buffers[static_cast<size_t>(i)]; }
  LoopPlan& loop(int i) { return loops[static_cast<size_t>(i)]; }
  const LoopPlan& loop(int i) const { return loops[static_cast<size_t>(i)]; }
  const StageSpec& spec(int i) const { return data.stages[static_cast<size_t>(i)]; }
  const BufferSpec& buffer_spec(int i) const { return data.buffers[static_cast<size_t>(i)]; }
  // Visible to the caller: its bounds are symbols.
  bool is_declared(int buffer_id) const { return buffer(buffer_id).role != Role::local; }
  // The buffer whose memory this one ultimately shares, itself if none.
  int root_of(int buffer_id) const;
  // 1 where one place suffices for the dim, since all its indices hold the same element: for copies that repeat.
  Expr one_place(int buffer_id, size_t dim) const;
};

// Ordered and placed, without shared memory. The plan refers to `data` and `options`.
Result<Plan> plan_unscheduled(const PipelineData& data, const std::vector<BufferRef>& inputs,
                              const std::vector<BufferRef>& outputs, const BuildOptions& options);

Result<void> order_stages(Plan& plan);
void find_repeats(Plan& plan);
void alias_copies(Plan& plan);
Result<void> place_stages(Plan& plan);
void plan_windows(Plan& plan);
void alias_in_place(Plan& plan);
Result<Program> emit_program(const Plan& plan);

// --- boxes ---

// `w` as seen from outside of the loops path[depth ...], whose symbols are replaced by the range of all iterations.
Window lifted(const Plan& plan, Window w, const Path& path, size_t depth);
// Per index of the stage, what is computed in one iteration of the first `depth` loops of its body.
std::vector<Window> index_box(const Plan& plan, int stage, size_t depth);
// The part of the buffer that a read needs for a box of indices.
std::vector<Window> read_box(const Plan& plan, const Use& use, const std::vector<Window>& indices);
// The first index of read_box in that dim.
Expr first_read(const Plan& plan, const Use& use, const std::vector<Window>& indices, size_t dim);
// The same as index_box, for what is computed in an iteration instead of what is required.
enum class Iteration : uint8_t { first, later, any };
std::vector<Window> computed_box(const Plan& plan, int stage, size_t depth, Iteration iteration);
// Windows per dim of the buffer that a write fills for a box of indices.
std::vector<Window> write_box(const Plan& plan, int stage, int write, const std::vector<Window>& indices);
Window with_known_bounds(const Plan& plan, Window w);
// Whether all kernels that access the buffer, or a buffer in its memory, accept boxes that wrap around a ring.
bool takes_rings(const Plan& plan, int buffer);
bool depends_on_loop(const Plan& plan, const Window& w, int loop);
// All of the buffer that is ever computed (for a declared one: that the caller provides), free of loop symbols.
std::vector<Window> whole_box(const Plan& plan, int buffer);

}  // namespace tenon::program
