// Pipeline: stages that compute buffers from buffers, and a schedule. build() makes a Program from it.
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
// builder derives the rest: which box of each buffer is computed where, how much of it is kept, and what shares memory.
//
// Placement. By default a stage is computed in the innermost loop that contains all its readers, but outside loops on
// which its results do not depend: nothing is computed twice. In a loop, where neither end of a box moves backwards
// (which must be provable), an iteration computes only what earlier iterations have not, and only as many indices are
// kept as later iterations read (a sliding window). Buffers share memory where a copy or a stage allows it.
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

// Indices first to last, both inclusive; last < first: none.
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

// A loop over an index of a stage's results, `step` indices an iteration (at least 1; may be a scalar). With `workers`
// other than 1 (a constant, or a scalar), iterations run concurrently: each worker has its own memory for what one
// iteration needs, and where a window is carried over, iterations overlap in order (LoopKind::pipelined).
// `ahead`: look-ahead of a serial loop. What stages directly in the loop will read so many iterations later from arrays
// made outside it, and where they will write results for others, is prefetched meanwhile (Prefetch, statement.hpp), a
// part before each stage.
struct LoopOver {
  Expr index;
  Expr step = 1;
  Expr workers = 1;
  int64_t ahead = 0;  // 0: nothing is prefetched
  // For the innermost loop of a stage with a kernel: an iteration computes its results in memory of its own. A further
  // stage (its name and "_out") writes them to their place, whole lines at a time, with non-temporal stores. For
  // results that the caches do not hold until they are read: their memory is not read before it is written.
  bool non_temporal = false;
  bool operator==(const LoopOver&) const = default;
};
// The kernel of such stages, `copy_non_temporal`: add it to the table when parsing a program's text.
TENON_API KernelHandle non_temporal_kernel();

struct PipelineData;
class StageRef;

// A buffer of a pipeline; copies refer to the same buffer. Valid as long as the pipeline.
class TENON_API BufferRef {
 public:
  const std::string& name() const;
  int rank() const;
  // Bounds as expressions. For an input, output or constant: what the caller passes. For another buffer: everything
  // that is computed.
  Expr min(int dim) const;
  Expr max(int dim) const;
  Expr extent(int dim) const;
  Expr stride(int dim) const;  // bytes
  Window bounds(int dim) const { return {min(dim), max(dim)}; }

  // Where memory is allocated: inside that loop, so that nothing is carried over between iterations; or outside all
  // loops.
  BufferRef& store_at(const StageRef& stage, const Expr& index);
  BufferRef& store_root();
  BufferRef& store_in(Placement placement);
  BufferRef& store_in(std::string_view space);
  // Boxes that are computed of this buffer begin at a multiple of `alignment` in the dim, and their extent is one.
  BufferRef& align(int dim, int64_t alignment);
  // Bytes from an index to the next. For an input or output, a condition on the caller (a run checks it).
  BufferRef& stride(int dim, const Expr& bytes);
  // For an output: it is the caller's ring buffer with this many places, and no other buffer may share its memory.
  BufferRef& fold(int dim, const Expr& places);
  // States the bounds in the dim. For inputs and outputs, a condition on the caller that a run checks.
  BufferRef& has_bounds(int dim, const Window& window);

 private:
  friend class Pipeline;
  friend class StageRef;
  friend struct PipelineData;
  BufferRef(PipelineData* data, int id) : data_(data), id_(id) {}
  PipelineData* data_;
  int id_;
};

// A stage of a pipeline; copies refer to the same stage. The operands of its kernel are what it reads, in the order
// stated, then what it writes; then its scalars.
class TENON_API StageRef {
 public:
  const std::string& name() const;
  StageRef& reads(const BufferRef& buffer, Windows windows);
  // `indices` are symbols, one per dim. Results of one stage share them, so that one loop goes over all.
  StageRef& writes(const BufferRef& buffer, std::vector<Expr> indices);
  StageRef& scalars(std::vector<Expr> values);
  // Operand `read` may be in the memory of result `write`, if it is read there point by point.
  StageRef& in_place(int read = 0, int write = 0);

  // Innermost first. With two loops over the same index, the outer one iterates over bands and the inner one over
  // strips of each band. Windows begin anew in a band, so what it shares with the one before is computed again.
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

// What a copy writes where its source has no element: the bytes of an element, or the element of a buffer at the same
// index (rank 0: its only one).
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
  bool alias_copies = true;  // make copies views
  bool alias_in_place = true;
  bool share_memory = true;  // between buffers that are not live at the same time
};

class TENON_API Pipeline {
 public:
  explicit Pipeline(std::string_view name);
  ~Pipeline();
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;

  const std::string& name() const;

  BufferRef buffer(std::string_view name, ElementType element, int rank);
  // Passed by the caller, the same in every run.
  BufferRef constant(std::string_view name, ElementType element, int rank);
  // A parameter of the program. A symbol that is not an index, bound or scalar is an error.
  Expr scalar(std::string_view name);

  StageRef stage(std::string_view name, KernelHandle kernel);

  // destination(indices) = source(map), any expressions over the indices. With padding: where map is outside of `keep`
  // (a window per dim of the source; none: the bounds of the source, which then must be an input, constant or output).
  StageRef copy(const BufferRef& source, Windows map, const BufferRef& destination, std::vector<Expr> indices);
  StageRef padded_copy(const BufferRef& source, Windows map, const BufferRef& destination, std::vector<Expr> indices,
                       Windows keep, Padding padding);
  // Source i provides the indices offsets[i] .. offsets[i + 1] - 1 of `dim`, shifted by -offsets[i].
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
  // Dims are aligned at the last one. Where the source, an input or constant, has one index (known to a run), all
  // indices of the destination read it.
  StageRef broadcast(const BufferRef& source, const BufferRef& destination, std::vector<Expr> indices);

  // The program that computes `outputs` from `inputs`. `scalars` are its parameters, in this order; scalars not listed
  // follow in the order in which they were made.
  Result<Program> build(const std::vector<BufferRef>& inputs, const std::vector<BufferRef>& outputs,
                        const std::vector<Expr>& scalars = {}, const BuildOptions& options = {}) const;

 private:
  friend struct PipelineData;
  std::unique_ptr<PipelineData> data_;
};

}  // namespace tenon::program
