// Pipeline: stages that compute buffers from buffers, and a schedule. build() makes a Program of it.
//
//   Pipeline p("blur");
//   const Expr x = Expr::symbol("x"), y = Expr::symbol("y");
//   BufferRef in = p.buffer("in", kF32, 2), sum = p.buffer("sum", kF32, 2), out = p.buffer("out", kF32, 2);
//   p.stage("square", square).reads(in, {x, y}).writes(sum, {x, y});
//   p.stage("blur", blur).reads(sum, {x, {y - 1, y + 1}}).writes(out, {x, y}).loops({{y, 4}});
//   TENON_TRY(program, p.build({in}, {out}), "the blur");
//
// A stage states, per dim of each buffer that it reads, the window of indices that one element of its results needs, as
// expressions over the indices of its results, over scalars and over bounds of buffers (BufferRef::min, max ...). The
// rest follows: which box of each buffer is computed where, how much of it is kept, and what shares memory.
//
// Placement. Without a word from the author a stage is computed in the innermost loop that all its readers are in, but
// outside of loops on which its results do not depend: nothing is computed twice. In a loop, only what earlier
// iterations have not computed is computed, where both ends of a box are proved never to go back; and only as many
// indices are kept as later iterations read (a window). Buffers take the memory of one another where a copy or a stage
// allows it.
//
// Errors of the calls below (a dim too many, an index that is none) are kept and returned by build().
// Threads: a Pipeline may be used by one thread at a time; build() does not change it, and gives the same program each
// time.
#pragma once
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/expr/expr.hpp>
#include <tenon/program/ir/kernel.hpp>
#include <tenon/program/ir/program.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::program {

// Indices first to last, both in; last < first: none.
struct Window {
  Expr first;
  Expr last;
  Window() = default;
  template <class T>
  requires std::convertible_to<T, Expr> Window(const T& at) : first(at), last(at) {}  // NOLINT: a point is a window
  Window(Expr from, Expr to) : first(std::move(from)), last(std::move(to)) {}
  Expr extent() const { return last - first + 1; }
  bool operator==(const Window&) const = default;
};
using Windows = std::vector<Window>;

// As many workers as the run has threads.
inline constexpr int64_t kAllWorkers = INT32_MAX;

// A loop over an index of a stage's results, `step` indices an iteration (at least 1; may be a scalar). Workers other
// than 1 (a constant, or a scalar) let iterations run at the same time: each worker has its own memory for what one
// iteration needs, and where iterations hand on a window they overlap in order (LoopKind::pipelined).
// `ahead`: what stages right in a serial loop will read so many iterations later of arrays that are made outside of it,
// and where they will write results for others, is fetched meanwhile (Prefetch, statement.hpp), a part before each
// stage.
struct LoopOver {
  Expr index;
  Expr step = 1;
  Expr workers = 1;
  int64_t ahead = 0;  // 0: nothing is fetched
  // Of the innermost loop of a stage with a kernel: an iteration makes its results in memory of its own, from where a
  // further stage (its name and "_out") writes them to where they belong, whole lines at a time and non-temporal.
  // For results that the caches do not hold until they are read: their memory is not read before it is written.
  bool non_temporal = false;
  bool operator==(const LoopOver&) const = default;
};
// The kernel of such stages, `copy_non_temporal`: for the table that a program's text is read with.
TENON_API KernelHandle non_temporal_kernel();

struct PipelineData;
class StageRef;

// A buffer of a pipeline; copies mean the same buffer. Valid as long as the pipeline.
class TENON_API BufferRef {
 public:
  const std::string& name() const;
  int rank() const;
  // Bounds as expressions. Of an input, output or constant: what the caller gives. Of another buffer: all that is
  // computed.
  Expr min(int dim) const;
  Expr max(int dim) const;
  Expr extent(int dim) const;
  Expr stride(int dim) const;  // bytes
  Window bounds(int dim) const { return {min(dim), max(dim)}; }

  // Where memory is kept: inside of that loop, so that nothing is handed from one iteration to the next; or outside of
  // all.
  BufferRef& store_at(const StageRef& stage, const Expr& index);
  BufferRef& store_root();
  BufferRef& store_in(Placement placement);
  BufferRef& store_in(std::string_view space);
  // Boxes computed of this buffer begin at and have an extent of a multiple of `alignment` in the dim.
  BufferRef& align(int dim, int64_t alignment);
  // Bytes from an index to the next. Of an input or output a condition that the caller meets (and a run checks).
  BufferRef& stride(int dim, const Expr& bytes);
  // Of an output: it is the caller's ring of so many places, which nothing may be laid into.
  BufferRef& fold(int dim, const Expr& places);
  // Its bounds in the dim are these: of inputs and outputs, a condition that a run checks.
  BufferRef& has_bounds(int dim, const Window& window);

 private:
  friend class Pipeline;
  friend class StageRef;
  friend struct PipelineData;
  BufferRef(PipelineData* data, int id) : data_(data), id_(id) {}
  PipelineData* data_;
  int id_;
};

// A stage of a pipeline; copies mean the same stage. The operands of its kernel are what it reads, in the order stated,
// then what it writes; then its scalars.
class TENON_API StageRef {
 public:
  const std::string& name() const;
  StageRef& reads(const BufferRef& buffer, Windows windows);
  // `indices` are symbols, one per dim. Results of one stage share them, so that one loop goes over all.
  StageRef& writes(const BufferRef& buffer, std::vector<Expr> indices);
  StageRef& scalars(std::vector<Expr> values);
  // The kernel may find operand `read` in the memory of result `write`, if it is read there point by point.
  StageRef& in_place(int read = 0, int write = 0);

  // Innermost first. Of two over the same index the outer one goes over bands, the inner one over strips of each:
  // windows begin anew in a band, which computes again what it shares with the one before.
  StageRef& loops(std::vector<LoopOver> loops);
  StageRef& compute_at(const StageRef& stage, const Expr& index);
  StageRef& compute_root();

 private:
  friend class Pipeline;
  friend class BufferRef;
  StageRef(PipelineData* data, int id) : data_(data), id_(id) {}
  PipelineData* data_;
  int id_;
};

// What a copy writes where its source has nothing: an element's bytes, or the element of a buffer at the same index
// (rank 0: its only one).
struct Padding {
  std::vector<std::byte> element;
  std::optional<BufferRef> buffer;
  template <class T>
  requires std::is_arithmetic_v<T>
  static Padding value(T v) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&v);
    return {{bytes, bytes + sizeof v}, std::nullopt};
  }
  static Padding from(const BufferRef& buffer) { return {{}, buffer}; }
};

struct BuildOptions {
  bool alias_copies = true;  // copies become views
  bool alias_in_place = true;
  bool share_memory = true;  // buffers that do not live at the same time
};

class TENON_API Pipeline {
 public:
  explicit Pipeline(std::string_view name);
  ~Pipeline();
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;

  BufferRef buffer(std::string_view name, ElementType element, int rank);
  // Given by the caller, the same in every run.
  BufferRef constant(std::string_view name, ElementType element, int rank);
  // A parameter of the program. A symbol that is no index, bound or scalar is an error.
  Expr scalar(std::string_view name);

  StageRef stage(std::string_view name, KernelHandle kernel);

  // destination(indices) = source(map), any expressions over the indices. With padding: where map is outside of `keep`
  // (a window per dim of the source; none: the bounds of the source, which then must be an input, constant or output).
  StageRef copy(const BufferRef& source, Windows map, const BufferRef& destination, std::vector<Expr> indices);
  StageRef padded_copy(const BufferRef& source, Windows map, const BufferRef& destination, std::vector<Expr> indices,
                       Windows keep, Padding padding);
  // Source i has the indices offsets[i] .. offsets[i + 1] - 1 of `dim`, less offsets[i].
  StageRef concatenate(const std::vector<BufferRef>& sources, const BufferRef& destination, std::vector<Expr> indices,
                       int dim, const std::vector<Expr>& offsets);
  // Source i is at index i of `dim`, which the sources do not have.
  StageRef stack(const std::vector<BufferRef>& sources, const BufferRef& destination, std::vector<Expr> indices,
                 int dim);
  // The source at index `at` of `dim`, which the destination does not have.
  StageRef slice(const BufferRef& source, const BufferRef& destination, std::vector<Expr> indices, int dim,
                 const Expr& at);
  // Dim d of the destination is dim order[d] of the source.
  StageRef transpose(const BufferRef& source, const BufferRef& destination, std::vector<Expr> indices,
                     const std::vector<int>& order);
  // Dims are aligned at the last one; where the source, which is an input or constant, has one index (seen in a run)
  // all indices of the destination read it.
  StageRef broadcast(const BufferRef& source, const BufferRef& destination, std::vector<Expr> indices);

  // The program that computes `outputs` from `inputs`. Scalars in this order are its parameters; the ones not named
  // follow in the order they were made.
  Result<Program> build(const std::vector<BufferRef>& inputs, const std::vector<BufferRef>& outputs,
                        const std::vector<Expr>& scalars = {}, const BuildOptions& options = {}) const;

 private:
  friend struct PipelineData;
  std::unique_ptr<PipelineData> data_;
};

}  // namespace tenon::program
