// Inside the room: the code generator of bound programs, statement by statement.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tenon/program/exec/bound_code_internal.hpp>
#include <tenon/program/exec/box_moves_internal.hpp>
#include <tenon/program/exec/registers_internal.hpp>
#include <tenon/program/exec/simple_loops_internal.hpp>
#include <tenon/program/exec/steady_internal.hpp>
#include <tenon/program/ir/symbolic_internal.hpp>

namespace tenon::program::detail {

inline constexpr auto kWord = static_cast<Place>(sizeof(int64_t));

// The memory that buffers are views of: an argument, or one allocation of the program.
struct MemoryRoot {
  Place place = -1;             // of the address of the base of slot 0, ...
  size_t level = 0;             // ... which is computed before the iterations of this level
  std::optional<Expr> address;  // the same as a symbol, once an expression needs it
  Expr low = 0, high = 0;       // its range of bytes, relative to that address
  Expr slot_bytes = 0;
  int64_t slots = 1;
  int32_t block = -1;  // of the plan; -1: not planned
  bool grows = false;  // its address is set by an instruction during a run
  size_t depth = 0;    // number of enclosing loops
};

struct DimsHash {
  size_t operator()(const std::vector<SymbolicDim>& dims) const;
};

class Binder {
 public:
  Binder(const Program& program, const Arguments& shapes, const BindOptions& options, int64_t threads);
  Result<BoundCode> bind();

 private:
  struct OpenLoop {
    int32_t number;
    bool pipelined;                // in the program; with one worker its code is serial
    int64_t first;                 // step
    std::vector<int32_t> touched;  // blocks from outside that it uses
    std::string symbol;
    std::string shown;                   // of a loop over periods: the symbol of the original loop
    std::set<void (*)()> finishes = {};  // of kernels called in it that leave their results unfinished
  };

  // Names an operand in an error; a function, since most names are never needed.
  using Label = std::function<std::string()>;

  ByteCode& code() { return result_.code; }
  const ByteCode& code() const { return result_.code; }
  const std::string& name(BufferId id) const { return program_.buffer(id).name; }
  std::vector<Instr>& body() { return registers_.body(); }

  // Numbers ---------------------------------------------------------------------------------------------------

  Expr resolved(const Expr& e) const { return scope_.simplified(scope_.resolve(e)); }
  bool prove_not_negative(const Expr& e) const {
    return e.is_constant() ? e.constant() >= 0 : prove_le(0, e, scope_.assumptions());
  }
  Result<int64_t> most(const Expr& e) const;

  // Buffers ---------------------------------------------------------------------------------------------------

  void declare(BufferId id, const BufferArgument& argument);
  const Expr& address_of(MemoryRoot& root);
  MemoryRoot& root_of(const SymbolicBuffer& buffer) { return roots_[static_cast<size_t>(buffer.root)]; }
  // The memory is in use at this step, and until the end of enclosing loops in which it is not allocated.
  void use(BufferId root);

  // Statements ------------------------------------------------------------------------------------------------

  // Locals are live from the statement that names them first. Their place depends on their uses.
  Result<void> emit_outermost();
  Result<void> emit(const Statement& s);
  Result<void> emit(const Block& block);
  Result<void> emit(const Let& let);
  Result<void> with_buffer(BufferId id, SymbolicBuffer made, const Statement& inner);
  Result<void> emit(const Allocate& s);
  // Sets its root.
  Result<SymbolicBuffer> make_allocation(const Allocation& a);
  Result<void> check_extents(const Allocation& a, const SymbolicBuffer& made);
  Result<void> check_at_run(const Expr& not_negative, std::string message);
  Result<MemoryRoot> make_root(const Allocation& a, const Expr& bytes, int64_t slots);
  void count_allocation(const Allocation& a, const Expr& bytes);
  void count_free(BufferId id);
  void place_blocks();
  Result<void> emit(const Free& s);
  Result<void> emit(const Crop& s) { return with_buffer(s.buffer, scope_.crop(s), s.body); }
  Result<void> emit(const Transpose& s) { return with_buffer(s.buffer, scope_.transpose(s), s.body); }
  Result<void> emit(const View& s) { return with_buffer(s.buffer, scope_.view(s), s.body); }
  Result<void> emit(const Slice& s);
  Result<void> emit(const Check& s);

  // Loops -----------------------------------------------------------------------------------------------------

  int32_t innermost() const { return once_ >= 0 ? once_ : loops_.empty() ? -1 : loops_.back().number; }
  Result<void> emit(const Loop& loop);
  // The first part, the steady one, and the last.
  Result<void> emit_parts(const Loop& loop, const Loop& written_out, const SteadyPart& steady);
  // The iterations that are not steady.
  Result<void> emit_rest(const Loop& loop, const Expr& begin, const Expr& end, const Expr& step);
  // Unrolls: code for each iteration.
  Result<void> emit_each(const Loop& loop, const Expr& first, int64_t step, int64_t iterations);
  // Trip count of a serial loop with at least one iteration, where it is known independently of where the loop begins.
  std::optional<int64_t> iterations_of(const Loop& loop, const Expr& begin, const Expr& end, const Expr& step) const;
  // The number of steady iterations before periods begin, so that their positions are known: a symbol where the number
  // is known only to a run.
  Expr iterations_to_periods(const Expr& begin, const Expr& step, const SteadyPart& steady);
  // A loop of one iteration whose body is simple: emits only the body. Errors name the loop.
  Result<void> emit_once(const Loop& loop);
  std::optional<SteadyPart> steady_part(const Loop& loop, const Expr& begin, const Expr& end, const Expr& step);
  // `shown`: see OpenLoop. `once`: there is at most one iteration, so that nothing is stepped.
  Result<void> emit_loop(const Loop& loop, const Expr& begin, const Expr& end, const Expr& step,
                         const std::string& shown = {}, bool once = false);
  Result<void> emit_periods(const Loop& loop, const Expr& begin, const Expr& end, const Expr& step, int64_t period);
  Result<int64_t> most_workers(const Loop& loop, const Expr& begin, const Expr& end, const Expr& step) const;
  Result<void> emit_workers(const Loop& loop, int32_t number);
  // In up to three parts, as determined by steady_members().
  Result<void> emit_worker_body(const Loop& loop, int32_t number);
  // The iterations first ... last - 1 of workers, if the loop has no others.
  Result<void> emit_members(const Loop& loop, int32_t number, int64_t first, int64_t last);
  void leave_loop(const Loop& loop, const std::string& symbol, int32_t number, int64_t workers);
  // Some steps are no longer instructions (take_ring_turns).
  void add_steps(Registers::LevelCode& level, LoopCode& loop);
  static void flatten(Registers::LevelCode program, std::vector<Instr>& to);
  void find_targets();
  // The loop's body as plain calls, if it consists of nothing else.
  void find_plain_calls(LoopCode& loop);
  static bool is_loop(Op op) { return op == Op::loop || op == Op::next || op == Op::workers || op == Op::body_end; }
  // The level of the innermost loop of workers.
  size_t region_level() const { return region_levels_.empty() ? 0 : region_levels_.back(); }
  Expr worker() const { return worker_loops_.empty() ? Expr(0) : Expr::symbol(str("worker.", worker_loops_.back())); }

  // Operands --------------------------------------------------------------------------------------------------

  // The box of a region: the buffer itself where the box is the whole buffer, else `made`.
  const SymbolicBuffer& box_of(const Region& region, SymbolicBuffer& made) const {
    return region.box.empty() ? *scope_.find(region.buffer) : made = scope_.region(region);
  }
  // The address of the base of a box, in the worker's slot.
  Expr address_of(const SymbolicBuffer& box);
  // Stores it in the view. Most are known before a run, apart from the addresses of arguments and arenas.
  void set_base(const SymbolicBuffer& box, Place view);
  void limit_workers(BufferId id, int64_t slots);
  // The dims that a kernel sees, in the frame: equal dims that another kernel already sees here, or new ones. Most
  // stages read what the previous one writes, and in a period boxes of one stage equal those of an earlier one.
  Place shared_dims(const std::vector<SymbolicDim>& dims);
  Place new_dims(const std::vector<SymbolicDim>& dims);
  // Fills a BufferView in the frame.
  OperandCode operand(const SymbolicBuffer& box, ElementType element, Place view, Site& site, const Label& label);
  // Emits the conditions on a box that are not certain. Empty boxes may be anywhere.
  void guard(const Region& r, const SymbolicBuffer& box, const Label& label, Site& site);
  bool lies_within_its_root(const SymbolicBuffer& box, ElementType element);
  void written(const SymbolicBuffer& box, Site& site);

  // Calls and copies ------------------------------------------------------------------------------------------

  void push_site(Op op, Site site, const Expr& predicate);
  // The difference between the loop's symbol and its register at the current point of code generation.
  int64_t ahead_in_loop() const;
  // Whether no other worker is notified of the results before the innermost loop ends.
  bool may_be_unfinished() const;
  // Whether calls and copies that certainly do nothing, as in some iterations of a period, are omitted.
  bool may_be_left_out() const { return !loops_.empty() && !options_.statistics; }
  bool does_nothing(const Expr& predicate, const SymbolicBuffer& written) const;
  Result<void> emit(const Call& s);
  // One for all parts of a loop that contain the call; outside of loops each call occurs once.
  int32_t state_of(const Call& s);
  // The boxes of a copy that exist: of its destination, source and padding.
  struct CopiedBoxes {
    struct Named {
      const SymbolicBuffer* box;  // one of `made`, or of the scope
      const char* name;
    };
    CopiedBoxes() = default;
    CopiedBoxes(CopiedBoxes&&) = default;
    std::vector<SymbolicBuffer> made;
    std::vector<Named> boxes;
  };
  // Also emits their conditions at the site.
  CopiedBoxes boxes_of(const Copy& s, Site& site);
  Result<void> emit(const Copy& s);
  // As a call that moves boxes; false if the copy needs more than that.
  bool move_copy(const CopiedBoxes& boxes, Site& site);
  Result<void> plan_copy(const CopiedBoxes& boxes, Site& site);
  Result<void> emit(const DmaStart& s);
  Result<void> emit(const DmaWait& s);
  Result<void> emit(const Signal& s) { return emit_stage(Op::signal, s.stage); }
  Result<void> emit(const Await& s) { return emit_stage(Op::await, s.stage); }
  Result<void> emit_stage(Op op, int stage);
  Result<void> emit(const Prefetch& s);
  // For boxes that are cropped, or that are not known to be whole, evaluated in each run.
  Result<void> emit_in_general(const Prefetch& s, const SymbolicBuffer& has, int64_t element_bytes);

  const Program& program_;
  const BindOptions& options_;
  int64_t threads_;
  BoundCode result_;
  Scope scope_;
  Registers registers_;
  std::vector<MemoryRoot> roots_;                   // by BufferId
  std::vector<Place> block_roots_;                  // by block: of its address
  std::vector<std::vector<BufferId>> in_transfer_;  // by token
  std::vector<OpenLoop> loops_;
  // Dims in the frame, by the loop in which they were made: they are valid in it and in its inner loops.
  std::vector<std::unordered_map<std::vector<SymbolicDim>, Place, DimsHash>> dims_known_{1};
  std::vector<int32_t> worker_loops_;
  std::vector<size_t> region_levels_;
  std::map<BufferId, Instr> counted_;
  std::unordered_map<const Call*, int32_t> states_;  // of calls in loops
  std::vector<bool> freed_;                          // by BufferId
  size_t addresses_ = 0;
  int64_t step_ = 0;
  int32_t region_ = 0;
  int32_t once_ = -1;  // the enclosing loop of one iteration, which has no code and is the innermost
  bool inside_workers_ = false;
};

}  // namespace tenon::program::detail
