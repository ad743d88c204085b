// Inside the room: the code of a bound program, and the frame on which it operates.
//
// A frame is one block of bytes at fixed offsets: int64 registers, and the views, dims and scalars that kernels get.
// What a kernel sees is computed in place: the min of a dim is a register like any other. Each worker of a parallel
// loop has a copy of the frame.
#pragma once
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <tenon/program/exec/box_moves_internal.hpp>
#include <tenon/program/exec/run.hpp>
#include <tenon/program/ir/copy_plan.hpp>
#include <tenon/program/ir/program.hpp>
#include <tenon/support/memory.hpp>

namespace tenon::program::detail {

// A byte offset into the frame.
using Place = int32_t;

// A known number, or the place where it is computed.
struct Value {
  int64_t number = 0;
  Place place = -1;  // -1: it is `number`

  bool known() const { return place < 0; }
  bool operator==(const Value&) const = default;
};

enum class Op : uint8_t {
  set,       // to = number
  move,      // to = a
  linear,    // to = number + sum over terms [first, last) of factor * place
  product,   // to = a * b
  floordiv,  // to = a floordiv b
  mod,       // to = a mod b
  min,
  max,
  select,         // to = a != 0 ? b : c
  at_least_0,     // to = a >= 0
  is_0,           // to = a == 0
  ring,           // rings[index]: sets the base of its view
  grow,           // to = address of growing block `index`, with at least a bytes, aligned
  check,          // a != 0, or checks[index] fails
  loop,           // loops[index]: jumps to its end when there is no iteration
  next,           // loops[index]: steps, and jumps to its body while there are iterations
  workers,        // loops[index]: several workers run its body, then jumps to its end
  body_end,       // of a body run by workers
  call,           // sites[index]
  call_plain,     // the same for a site with the plain path: `plain` on the CallContext at `to`
  call_function,  // ... without `plain`: `run` of the site
  copy,
  start,
  wait,
  signal,  // number: the stage
  await,
  read_soon,  // prefetches `last` lines from a + number on, in `first` rows that begin b bytes apart
  write_soon,
  prefetch,  // prefetches[index]
  finish,    // `finish`
  allocate,  // counted: a bytes, number: on the stack
  free,
  end,
};

// Whether it only computes numbers.
inline bool computes(Op op) { return op <= Op::ring; }

// Whether runs may ignore it.
inline bool is_hint(Op op) { return op == Op::read_soon || op == Op::write_soon || op == Op::prefetch; }

struct Instr {
  Op op;
  Place to = -1;
  Value a, b, c;
  int64_t number = 0;
  int32_t index = 0;
  int32_t first = 0, last = 0;
  Result<void> (*plain)(CallContext&) = nullptr;
  void (*finish)() = nullptr;
};

// A call on the plain path, in a body without other instructions: its Instr in a tenth of the bytes, since the kernels
// need the smallest cache for themselves.
struct PlainCall {
  Result<void> (*plain)(CallContext&) = nullptr;  // null: none
  Place context = -1;
  int32_t instr = -1;
};
// The same after a hint, or one of the two.
struct HintedCall {
  PlainCall call;
  int32_t lines = 0;  // of the hint; 0: there is none
  int32_t rows = 0;
  int64_t offset = 0, stride = 0;  // bytes
  Place address = -1;
  bool writes = false;
};

struct Term {
  Place place;
  int64_t factor;
};

// place += by, for each iteration of a loop. Most steps have this form, which needs no checks.
struct Step {
  Place place;
  int64_t by;
};
// The same by an amount known only to a run.
struct Increment {
  Place place;
  Value by;
};
// place += by, kept in [0, modulus).
struct RingStep {
  Place place;
  int64_t by;
  int64_t modulus;
};
// place += by, for a register related to one that a RingStep steps before it: whenever that one has wrapped around,
// which is when it is below its `by`, `back` is subtracted.
struct BesideStep {
  Place place, ring;
  int64_t by, ring_by, back;
};

// Corrections added to the steps of a loop at some iterations of a cycle (ring_turns_internal.hpp).
struct Turn {
  int64_t next;         // iterations to the next turn
  int32_t first, last;  // of ByteCode::jumps
};

struct LoopCode {
  std::string symbol;  // empty: not a loop of the program
  LoopKind kind = LoopKind::serial;
  Value begin, end, step, limit;
  Place value = -1;         // of the symbol
  Place counter = -1;       // iterations before this one
  Place left = -1;          // remaining iterations
  Place worker = -1;        // of loops run by workers: index of the worker
  Place outer_worker = -1;  // of the enclosing loop; -1: none
  int32_t outer = -1;       // the enclosing loop
  int64_t outer_ahead = 0;  // of the register of the enclosing loop: see Site::ahead
  int32_t body = 0, exit = 0;
  int32_t first_step = 0, last_step = 0;
  int32_t first_ring_step = 0, last_ring_step = 0;
  int32_t first_beside = 0, last_beside = 0;
  int32_t first_increment = 0, last_increment = 0;
  int32_t first_turn = 0, last_turn = 0;
  int64_t to_first_turn = 0;      // iterations
  Place to_turn = -1, turn = -1;  // of loops with turns: iterations to the next one, and its index
  int64_t workers = 1;            // at most
  int64_t slots = INT64_MAX;      // fewest slots of a buffer that the body uses
  std::string slots_of;
  bool may_be_parallel = false;  // in the program
  // Its body as plain calls, if from instruction `plain` on it contains nothing else: before them are the numbers at
  // the beginning of an iteration. If there are none, nothing reads the value or the counter. Where there are hints,
  // also as hinted calls, for runs that follow them.
  int32_t plain = 0;
  int32_t first_plain = 0, last_plain = 0;
  int32_t first_hinted = 0, last_hinted = 0;
  int stages = 0;  // of a pipelined loop: one more than the highest

  bool has_turns() const { return first_turn != last_turn; }
  bool has_hinted_calls() const { return first_hinted != last_hinted; }
  bool is_plain() const { return first_plain != last_plain || has_hinted_calls(); }
  // Whether registers are stepped only by Steps and turns.
  bool steps_by_numbers() const {
    return first_increment == last_increment && first_ring_step == last_ring_step && first_beside == last_beside;
  }
  // Memory of each worker, for allocations in the body: by memory space, then by allocation.
  struct Base {
    Place to;                // address of this worker's part
    Place from;              // address of the enclosing block
    int64_t offset, stride;  // of the part of worker 0, and from one worker to the next
  };
  struct Root {
    Place to, from;
    int64_t offset;
  };
  std::vector<Base> bases;
  std::vector<Root> worker_roots;
};

// A condition on numbers that could not be proved at bind time: 0 <= value, unless a box is empty.
struct Guard {
  Value value;
  int32_t message = 0;
};
// A ring that a box may wrap around: determined where it is used.
struct Fold {
  Place dim;    // the DimView
  Value place;  // of its min
  Value fold, stride, extent;
};
// A view of boxes in rings, and its base where all of them wrap around.
struct RingView {
  Place view = -1;
  Value base;
  std::vector<Fold> folds;
};
struct OperandCode {
  Place view = -1;
  RingView rings;     // with folds: for a kernel that takes no boxes that wrap around. Else the view is as bound
  std::string label;  // for errors
};

struct Site {
  const Call* call = nullptr;  // or
  const Copy* copy = nullptr;
  // The kernel's `run`, when it is a plain function; for a copy: it is moves of boxes.
  Result<void> (*plain)(CallContext&) = nullptr;
  Place context = -1;       // CallContext of a call
  bool plain_path = false;  // nothing below needs to be checked
  Value predicate{1, -1};
  std::vector<Value> extents;  // of written boxes: nothing is done when one is 0
  std::vector<Guard> guards;
  std::vector<OperandCode> operands;  // those of a copy: destination, source, padding
  std::unique_ptr<const CopyPlan> plan;
  Place parameters = -1;              // of the plan, one word each
  std::vector<Value> counted;         // extents of the first written box, for statistics
  InlineVector<BufferId, 2> written;  // roots of the written boxes
  std::string label;                  // label_of(), for statistics; empty without
  int32_t loop = -1;                  // the innermost enclosing one
  int64_t ahead = 0;                  // of that loop's register: difference from it to the index of this iteration
  TokenId token = -1;
};

// The stage and the buffers that it writes, as formatted by stage_label().
std::string label_of(const Site& site, const Program& program);

// A box, and the buffer to which it is cropped.
struct PrefetchCode {
  struct Dim {
    Value first, extent;            // of the box
    Value min, has_extent, stride;  // of the buffer
  };
  std::vector<Dim> dims;
  Value base;  // of the buffer
  int64_t element_bytes = 1;
  int part = 0, parts = 1;
  bool writes = false;
};

struct CheckCode {
  std::string message;
  int32_t loop = -1;
};

// Pointers within a frame, set anew in each copy of it.
struct ViewFixup {
  Place view, dims;
  int32_t rank;
  ElementType element;
};
struct ContextFixup {
  Place context, views, scalars;
  int32_t operands = 0, scalar_count = 0;
  std::string_view stage;
  int32_t state = -1;  // which of ByteCode::states; -1: none
};

struct ByteCode {
  std::vector<Instr> instrs;
  std::vector<Term> terms;
  std::vector<PlainCall> plain_calls;
  std::vector<HintedCall> hinted_calls;
  std::vector<Step> steps;
  std::vector<RingStep> ring_steps;
  std::vector<BesideStep> beside_steps;
  std::vector<Increment> increments;
  std::vector<Turn> turns;
  std::vector<Step> jumps;
  std::vector<RingView> rings;
  std::vector<LoopCode> loops;
  std::vector<Site> sites;
  std::vector<std::unique_ptr<const BoxMoves>> moves;
  std::vector<PrefetchCode> prefetches;
  std::vector<CheckCode> checks;
  std::vector<std::string> messages;
  std::vector<ViewFixup> views;
  std::vector<ContextFixup> contexts;
  std::vector<const Kernel*> states;                  // kernels whose states calls use, one for each call statement
  bool has_hints = false;                             // whether runs may follow or ignore any
  std::vector<int64_t> frame;                         // initial contents before a run
  std::vector<Place> arguments;                       // of declared buffers, in order: address of the base
  std::vector<std::pair<Place, std::string>> arenas;  // address of the arena of a space
  std::vector<LoopCode::Root> roots;                  // of allocations outside of loops of workers
  // Bases of views at fixed places of arguments, and of these allocations: constant during a run.
  std::vector<LoopCode::Root> argument_bases, planned_bases;
  std::map<std::string, int64_t> arena_bytes;
  std::vector<Place> tokens;       // pending transfers, by TokenId
  std::vector<size_t> grow_align;  // of growing blocks
};

// The parts of a frame.
class Frame {
 public:
  explicit Frame(const ByteCode& code) : code_(&code), words_(code.frame) {
    make_states();
    fix();
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  int64_t& at(Place place) { return words_[static_cast<size_t>(place) / 8]; }
  std::byte* data() { return reinterpret_cast<std::byte*>(words_.data()); }
  int64_t get(const Value& v) { return v.known() ? v.number : at(v.place); }
  template <class T>
  T& as(Place place) {
    return *std::launder(reinterpret_cast<T*>(reinterpret_cast<std::byte*>(words_.data()) + place));
  }
  // Copies the registers of another frame of the same code.
  void copy_from(const Frame& other) {
    std::memcpy(words_.data(), other.words_.data(), words_.size() * sizeof(int64_t));
    fix();
  }
  std::vector<AlignedBytes>& grown() { return grown_; }
  std::vector<int64_t>& grown_bytes() { return grown_bytes_; }
  // The threads that kernels may use from now on; copied with this frame's registers.
  void set_parallel(ParallelFor* parallel);

 private:
  void make_states();
  void fix();

  const ByteCode* code_;
  std::vector<int64_t> words_;
  std::vector<std::unique_ptr<KernelState>> states_;  // by ByteCode::states; null: the kernel has none
  ParallelFor* parallel_ = nullptr;
  std::vector<AlignedBytes> grown_;
  std::vector<int64_t> grown_bytes_;
};

}  // namespace tenon::program::detail
