// The program IR: a small language of statements over buffers. docs/program.md shows the text form.
//
//   program @blur() {
//     input %in : i16[2]
//     output %out : i16[2]
//
//     allocate %rows : i16[out.min0 - 1 +: out.extent0 + 2, out.min1 - 1 +: out.extent1 + 2 fold 3] {
//       for y in [out.min1 - 2, out.min1 + out.extent1) {
//         call add1(in %in, out %rows[out.min0 - 1 +: out.extent0 + 2, y + 1 +: 1])
//         crop %line = %out[_, y +: 1] {
//           call sum3x3(in %rows, out %line)
//         }
//       }
//     }
//   }
//
// Buffers. A buffer is an entry of Program::buffers (program.hpp) and is identified by its index there. Declared
// buffers (input, output, constant, state) are passed by the caller. The others are made by one statement (Allocate,
// Crop, Slice, Transpose, View) and are visible only in its body. Each has, per dim, min, extent, stride and fold;
// DimView (kernel.hpp) defines them.
//
// Expressions are tenon::Expr over these symbols, evaluated where the statement is:
//   n              a scalar parameter of the program, or the symbol of an enclosing Let or Loop
//   NAME.min0      min, extent, stride (bytes), fold (0: none) of dim 0 of the buffer NAME, as visible there
//   run.threads    how many threads the run may use
// An expression without a value (a division by zero, a number outside int64) stops the run with an error.
//
// Order. Statements of a Block run one after another. Concurrent are only: iterations of a parallel loop; iterations of
// a pipelined loop, as far as Signal and Await allow; and a transfer, from its DmaStart until its DmaWait.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <tenon/expr/expr.hpp>
#include <tenon/program/ir/kernel.hpp>
#include <tenon/support/export.hpp>

namespace tenon::program {

// Indices into Program::buffers and Program::tokens.
using BufferId = int32_t;
using TokenId = int32_t;

namespace detail {
struct StatementNode;
}

// A handle of an immutable statement; copies share it. A default-constructed one does nothing.
class TENON_API Statement {
 public:
  Statement() = default;
  // From any of the structs below: Statement s = Loop{...}. A Block drops its empty statements and absorbs the
  // statements of inner blocks; with a single statement it becomes that statement.
  template <class T>
  requires(!std::same_as<T, Statement>) Statement(T node);

  bool empty() const { return !node_; }
  // The struct, or null when the statement is of another kind.
  template <class T>
  const T* as() const;
  // visitor(const Block&), visitor(const Loop&) ...; must not be called on the empty statement.
  template <class Visitor>
  decltype(auto) visit(Visitor&& visitor) const;
  // Whether both are the same node, in O(1); == compares their contents.
  bool is(const Statement& other) const { return node_ == other.node_; }
  friend TENON_API bool operator==(const Statement& a, const Statement& b);

 private:
  using Handle = std::shared_ptr<const detail::StatementNode>;
  static Handle make(detail::StatementNode node);
  Handle node_;
};

// Indices from min to min + extent - 1; an extent below 1 holds none.
struct Range {
  Expr min;
  Expr extent;
  bool operator==(const Range&) const = default;
};
// A Range per dim of the buffer it belongs to; no ranges at all: the whole buffer.
using Box = std::vector<Range>;

// A box of a buffer. It must lie within the buffer, unless it is empty.
struct Region {
  BufferId buffer = -1;
  Box box;
  bool operator==(const Region&) const = default;
};

struct Dim {
  Expr min;
  Expr extent;  // elements, >= 0
  std::optional<Expr>
      stride;                // bytes; unset: dense, i.e. the bytes of an element (dim 0) or of all places of dim d - 1
  std::optional<Expr> fold;  // places of a ring buffer; unset or <= 0: none. No effect where it is >= extent
  bool operator==(const Dim&) const = default;
};

enum class Placement : uint8_t {
  automatic,  // on the stack up to RunOptions::stack_bytes, else from the heap
  heap,       // from the arena of its memory space
  stack,      // small, close to the code; same arena in a compiled program, counted separately
};

// Memory for a buffer with the dims that the body sees. Its contents are undefined until written. A dim has `places` =
// fold where 0 < fold < extent, else extent, and the memory reaches from the lowest to the highest byte of any element:
// element bytes + sum over dims of (places - 1) * |stride|.
struct Allocation {
  BufferId buffer = -1;
  std::vector<Dim> dims;
  std::string space = "host";  // a memory of the target
  int64_t align_bytes = 0;     // a power of two; 0: kAlignBytes
  Placement placement = Placement::automatic;
  // Allocates that memory this many times, contiguously. A statement that runs on worker w of the innermost enclosing
  // loop with more than one worker uses slot w; outside such loops, slot 0. A slot keeps its contents between the
  // iterations of a worker.
  Expr slots = 1;
  bool operator==(const Allocation&) const = default;
};

struct Block {
  std::vector<Statement> statements;
  bool operator==(const Block&) const = default;
};

// `symbol` denotes the value in the body. Symbols in scope may not be bound again.
struct Let {
  std::string symbol;
  Expr value;
  Statement body;
  bool operator==(const Let&) const = default;
};

// Freed at the end of the body, or by a Free in it.
struct Allocate {
  Allocation allocation;
  Statement body;
  bool operator==(const Allocate&) const = default;
};

// Ends the lifetime of an enclosing Allocate before the end of its body. From then on, nobody uses the buffer or a view
// of it. Must not be inside a loop that does not also contain the Allocate.
struct Free {
  BufferId buffer = -1;
  bool operator==(const Free&) const = default;
};

enum class LoopKind : uint8_t {
  serial,
  // Iterations are independent; they run in any order and concurrently.
  parallel,
  // Iterations start in order and overlap: iteration i starts when all up to i - workers are complete. Signal and Await
  // in the body order the stages of different iterations.
  pipelined,
};

// for symbol = begin, begin + step ... while < end. begin, end, step and workers are evaluated once, at entry; a step
// below 1 is an error.
// A parallel or pipelined loop is run by min(workers, threads of the run, iterations) workers, at least one; by one
// inside a loop that has several. Workers take iterations in ascending order. An error in an iteration ends the loop;
// the error reported is that of the lowest iteration known to have failed.
struct Loop {
  std::string symbol;
  Expr begin;
  Expr end;
  Expr step = 1;
  LoopKind kind = LoopKind::serial;
  Expr workers = 1;  // at most; serial loops ignore it
  Statement body;
  bool operator==(const Loop&) const = default;
};

// `buffer` is `source` without the indices outside `box`: its min is the larger of both minima, its last index the
// smaller of both, and a negative extent becomes 0. `buffer` may be `source` itself: inside the body, its metadata are
// then those of the crop.
struct Crop {
  BufferId buffer = -1;
  BufferId source = -1;
  std::vector<std::optional<Range>> box;  // one per dim of the source; unset: as it is
  Statement body;
  bool operator==(const Crop&) const = default;
};

// `buffer` has the dims of `source` that have no index here; the others are fixed at that index, which must be inside.
struct Slice {
  BufferId buffer = -1;
  BufferId source = -1;
  std::vector<std::optional<Expr>> at;  // one per dim of the source
  Statement body;
  bool operator==(const Slice&) const = default;
};

// Dim d of `buffer` is dim order[d] of `source`. Dims may be omitted, which fixes them at their min, and repeated.
struct Transpose {
  BufferId buffer = -1;
  BufferId source = -1;
  std::vector<int> order;
  Statement body;
  bool operator==(const Transpose&) const = default;
};

// The general view: `buffer` has the dims given here, over the memory of `source` from its base plus `offset` bytes on.
// The base of a buffer is the element at min of each dim that is not folded, and at place 0 of each that is. Strides
// may be negative or 0. Elements outside the memory with which `source` was made must not be accessed.
struct View {
  BufferId buffer = -1;
  BufferId source = -1;
  Expr offset;
  std::vector<Dim> dims;  // unset strides: dense, as in an allocation
  Statement body;
  bool operator==(const View&) const = default;
};

enum class Access : uint8_t { in, out, inout };

struct Operand {
  Access access = Access::in;
  Region region;
  bool operator==(const Operand&) const = default;
};

// Runs a kernel, unless the predicate is 0 or a box that it writes is empty. Operands are cropped to their boxes. Boxes
// of `in` and `out` operands may share memory only element for element (an in-place kernel). With a predicate of 0 the
// results may be anything: an executor may honour predicates or not, and whatever does not depend on the results of
// predicated calls is the same either way.
struct Call {
  KernelHandle kernel;
  std::vector<Operand> operands;
  std::vector<Expr> scalars;
  Expr predicate = 1;
  std::string stage;  // for statistics and errors; empty: the name of the kernel
  bool operator==(const Call&) const = default;
};

// For each index of `destination`: destination[index] = source[map(index)]. `indices` names the index of each dim of
// the destination, and `map` has an expression for each dim of the source; any expression is allowed: -x, x + 3,
// y floordiv 2, (x + 8 * y) mod 5. Both have the same element type. No effect when the destination's box is empty.
//
// Where map(index) is outside the source's box (or outside the source), nothing of the source is read. With an element
// as padding, that element is written; with a region, its element at the same `index` (for a region of rank 0, its only
// element); without padding it is an error.
//
// When source and destination share memory, elements are moved in ascending order of the index, dim 0 fastest; an
// element that is copied onto itself may be left as it is.
struct Copy {
  using Element = std::vector<std::byte>;  // as many bytes as an element has
  Region destination;
  Region source;
  std::vector<std::string> indices;
  std::vector<Expr> map;
  std::variant<std::monostate, Element, Region> padding;
  Expr predicate = 1;  // 0: not done; Call defines what a predicate means
  std::string stage;   // empty: "copy"
  bool operator==(const Copy&) const = default;
};

// A copy that runs concurrently with the program until the wait that ends it. Each token is a queue: DmaWait ends the
// oldest transfer started with it. Between the two, nobody may access what the transfer writes or write what it reads.
// Each worker of a parallel or pipelined loop has queues of its own; they must be empty at the end of an iteration, and
// all queues at the end of the program.
struct DmaStart {
  TokenId token = -1;
  Copy copy;
  bool operator==(const DmaStart&) const = default;
};
struct DmaWait {
  TokenId token = -1;
  bool operator==(const DmaWait&) const = default;
};

// Inside a pipelined loop; they refer to the innermost enclosing one. Signal: stage `stage` of this iteration is done.
// Await: blocks until stage `stage` of all earlier iterations is done; what these wrote before their Signal is visible
// (happens-before). At its end an iteration has completed all of its stages. Stages are 0 to kMostStages.
inline constexpr int kMostStages = 255;
struct Signal {
  int stage = 0;
  bool operator==(const Signal&) const = default;
};
struct Await {
  int stage = 0;
  bool operator==(const Await&) const = default;
};

// A hint: the part of the box that is inside the buffer will soon be read (Access::in) or written (out), so that the
// executor may prefetch it. It reads and writes nothing, its box may exceed the buffer, and it may be ignored. Of
// several hints for one box, this is portion `part` of `parts` (1 to kMostParts), all of about the same size.
inline constexpr int kMostParts = 255;
struct Prefetch {
  Access access = Access::in;
  Region region;
  int part = 0;
  int parts = 1;
  bool operator==(const Prefetch&) const = default;
};

// Stops the run with Code::invalid_argument and the message when the condition is 0.
struct Check {
  Expr condition;
  std::string message;
  bool operator==(const Check&) const = default;
};

namespace detail {
using StatementVariant = std::variant<Block, Let, Allocate, Free, Loop, Crop, Slice, Transpose, View, Call, Copy,
                                      DmaStart, DmaWait, Signal, Await, Prefetch, Check>;
struct StatementNode {
  StatementVariant value;
};
}  // namespace detail

template <class T>
requires(!std::same_as<T, Statement>) Statement::Statement(T node) : node_(make({std::move(node)})) {}

template <class T>
const T* Statement::as() const {
  return node_ ? std::get_if<T>(&node_->value) : nullptr;
}

template <class Visitor>
decltype(auto) Statement::visit(Visitor&& visitor) const {
  TENON_CHECK(node_, "visit of the empty statement");
  return std::visit(std::forward<Visitor>(visitor), node_->value);
}

}  // namespace tenon::program
