#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

#include <tenon/program/exec/arguments_internal.hpp>
#include <tenon/program/exec/binder_internal.hpp>
#include <tenon/program/exec/locals_internal.hpp>
#include <tenon/program/exec/registers_internal.hpp>
#include <tenon/program/exec/statistics_internal.hpp>
#include <tenon/program/exec/steady_internal.hpp>
#include <tenon/program/labels.hpp>
#include <tenon/program/symbolic_internal.hpp>
#include <tenon/program/walk.hpp>

namespace tenon::program::detail {
namespace {

constexpr auto kWord = static_cast<Place>(sizeof(int64_t));

// Memory that buffers are views of: an argument, or one allocation at one place of the program.
struct Root {
  Expr address;            // of the base of slot 0
  Expr low = 0, high = 0;  // the bytes that it has, counted from there
  Expr slot_bytes = 0;
  int64_t slots = 1;
  int32_t block = -1;  // of the plan; -1: not planned
  size_t depth = 0;    // how many loops are around
};

class Binder {
 public:
  Binder(const Program& program, const Arguments& shapes, const BindOptions& options, int64_t threads)
      : program_(program),
        options_(options),
        threads_(threads),
        scope_(program),
        registers_(result_.code, scope_.assumptions()),
        roots_(program.buffers.size()),
        in_transfer_(program.tokens.size()) {
    result_.regions.emplace_back();
    for (const auto& [name, value] : shapes.scalars) scope_.define(name, value);
    scope_.define(std::string(kThreadsSymbol), threads);
    for (size_t id = 0; id < program.buffers.size(); ++id)
      if (program.buffers[id].role != Role::local)
        declare(static_cast<BufferId>(id), shapes.buffers.find(program.buffers[id].name)->second);
    for (size_t t = 0; t < program.tokens.size(); ++t) code().tokens.push_back(registers_.new_word());
  }

  Result<BoundCode> bind() {
    TENON_OK(emit_outermost(), "program '", program_.name, "'");
    result_.steps = step_ + 1;
    place_blocks();
    flatten(registers_.leave_program(), code().instrs);
    code().instrs.push_back({Op::end});
    find_targets();
    return std::move(result_);
  }

 private:
  ByteCode& code() { return result_.code; }
  const std::string& name(BufferId id) const { return program_.buffer(id).name; }
  std::vector<Instr>& body() { return registers_.body(); }
  static Expr address(size_t number) { return Expr::symbol(str(kAddressPrefix, number)); }

  // Numbers ---------------------------------------------------------------------------------------------------

  Expr resolved(const Expr& e) const { return scope_.simplified(scope_.resolve(e)); }
  bool prove_not_negative(const Expr& e) const { return prove_le(0, e, scope_.assumptions()); }
  Result<int64_t> most(const Expr& e) const {
    const Interval range = bounds(e, scope_.assumptions());
    if (!range.upper) return error(Code::resource_exhausted, "no upper bound of ", e, " can be told");
    return *range.upper;
  }

  // Buffers ---------------------------------------------------------------------------------------------------

  void declare(BufferId id, const BufferArgument& argument) {
    const Buffer& b = program_.buffer(id);
    const BoundBuffer bound = bind_argument(b, id, argument);
    SymbolicBuffer made{id, 0, {}, false};
    for (const DimView& d : bound.dims) made.dims.push_back({d.min, d.extent, d.stride, d.fold});
    scope_.exchange(id, std::move(made));
    const Spread spread = spread_of(bound.dims, b.element).value();
    const Place place = new_address(0);
    code().arguments.push_back(place);
    roots_[static_cast<size_t>(id)] = {address(addresses_ - 1), spread.low, spread.high};
  }

  // A register for an address that is set before the iterations of a level.
  Place new_address(size_t level) {
    const Place place = registers_.new_word();
    registers_.define(str(kAddressPrefix, addresses_++), place, level);
    return place;
  }

  Root& root_of(const SymbolicBuffer& buffer) { return roots_[static_cast<size_t>(buffer.root)]; }

  // The memory is used at this step, and as long as the loops go on that it is not made in.
  void use(BufferId root) {
    const Root& r = roots_[static_cast<size_t>(root)];
    if (r.block < 0) return;
    result_.blocks[static_cast<size_t>(r.block)].use(step_, step_);
    for (size_t depth = r.depth; depth < loops_.size(); ++depth) loops_[depth].touched.push_back(r.block);
  }

  // Statements ------------------------------------------------------------------------------------------------

  // Locals live from the statement that names them first. Where they lie is a matter of their uses.
  Result<void> emit_outermost() {
    const auto locals = locals_by_first_use(program_);
    for (size_t i = 0; i < locals.size(); ++i) {
      for (const Allocation* a : locals[i]) {
        TENON_TRY(made, make_allocation(*a), "local '", name(a->buffer), "'");
        scope_.exchange(a->buffer, std::move(made));
      }
      TENON_OK(emit(outermost(program_)[i]));
    }
    for (const auto& first_named : locals)
      for (const Allocation* a : first_named)
        if (!freed_.contains(a->buffer)) count_free(a->buffer);
    return {};
  }

  Result<void> emit(const Statement& s) {
    if (s.empty()) return {};
    ++step_;
    TENON_OK(s.visit([this](const auto& statement) { return emit(statement); }));
    return registers_.status();
  }

  Result<void> emit(const Block& block) {
    for (const Statement& s : block.statements) TENON_OK(emit(s));
    return {};
  }

  Result<void> emit(const Let& let) {
    scope_.define(let.symbol, resolved(let.value));
    auto result = emit(let.body);
    scope_.erase(let.symbol);
    return result;
  }

  Result<void> with_buffer(BufferId id, SymbolicBuffer made, const Statement& inner) {
    auto before = scope_.exchange(id, std::move(made));
    auto result = emit(inner);
    scope_.exchange(id, std::move(before));
    return result;
  }

  Result<void> emit(const Allocate& s) {
    const Allocation& a = s.allocation;
    const Root before = roots_[static_cast<size_t>(a.buffer)];
    TENON_TRY(made, make_allocation(a), "allocate '", name(a.buffer), "'");
    auto result = with_buffer(a.buffer, std::move(made), s.body);
    if (!freed_.erase(a.buffer)) count_free(a.buffer);
    roots_[static_cast<size_t>(a.buffer)] = before;
    return result;
  }

  // Sets its root.
  Result<SymbolicBuffer> make_allocation(const Allocation& a) {
    SymbolicBuffer made = scope_.allocation(a);
    TENON_OK(check_extents(a, made));
    const SymbolicSpread spread = spread_of(made.dims, program_.buffer(a.buffer).element);
    const Expr bytes = scope_.simplified(spread.bytes);
    TENON_TRY(slots, most(resolved(a.slots)), "the slots of '", name(a.buffer), "'");
    if (slots < 1)
      return error(Code::invalid_argument, "'", name(a.buffer), "' has ", slots, " slots, at least 1 is needed");
    TENON_TRY(root, make_root(a, bytes, slots));
    made.offset = scope_.simplified(spread.base);
    roots_[static_cast<size_t>(a.buffer)] = std::move(root);
    count_allocation(a, bytes * slots);
    return made;
  }

  Result<void> check_extents(const Allocation& a, const SymbolicBuffer& made) {
    for (size_t d = 0; d < made.dims.size(); ++d)
      if (!prove_not_negative(made.dims[d].extent))
        TENON_OK(check_at_run(made.dims[d].extent,
                              str("allocate '", name(a.buffer), "': dim ", d, " has an extent that is negative")));
    return {};
  }
  Result<void> check_at_run(const Expr& not_negative, std::string message) {
    if (not_negative.is_constant()) return error(Code::invalid_argument, message);
    Instr instr{Op::check};
    instr.a = registers_.value(less_equal(0, not_negative));
    instr.index = static_cast<int32_t>(code().checks.size());
    code().checks.push_back({std::move(message), innermost()});
    body().push_back(instr);
    return {};
  }

  Result<Root> make_root(const Allocation& a, const Expr& bytes, int64_t slots) {
    Root root{{}, 0, bytes, bytes, slots, -1, loops_.size()};
    TENON_TRY(most_bytes, most(bytes));
    const auto limit = static_cast<int64_t>(tensor_bytes_limit());
    const int64_t align = std::max<int64_t>(a.align_bytes, static_cast<int64_t>(kAlignBytes));
    const bool planned = bytes.is_constant() || most_bytes <= options_.most_planned_bytes / slots;
    if (planned && most_bytes > limit / slots)
      return error(Code::resource_exhausted, slots, " slots of ", most_bytes, " bytes, and at most ", limit,
                   " are allowed (TENON_TENSOR_LIMIT)");
    if (planned) {
      root.slot_bytes = most_bytes;
      root.block = static_cast<int32_t>(result_.blocks.size());
      result_.blocks.push_back(
          {.buffer = a.buffer, .space = a.space, .bytes = most_bytes * slots, .align = align, .region = region_});
      block_roots_.push_back(new_address(region_level()));
    } else {
      const size_t level = std::max(registers_.level_of(bytes), region_level());
      Instr grow{Op::grow, registers_.new_word(), registers_.value(bytes * slots)};
      grow.index = static_cast<int32_t>(code().grow_align.size());
      code().grow_align.push_back(static_cast<size_t>(align));
      registers_.define(str(kAddressPrefix, addresses_++), grow, level);
    }
    root.address = address(addresses_ - 1);
    return root;
  }

  void count_allocation(const Allocation& a, const Expr& bytes) {
    if (!options_.statistics) return;
    Instr instr{Op::allocate};
    instr.a = registers_.value(scope_.simplified(bytes));
    instr.index = a.buffer;
    // Automatic placement is decided by the bytes of a run.
    instr.b = a.placement == Placement::automatic
                  ? registers_.value(scope_.simplified(less_equal(bytes, options_.stack_bytes)))
                  : Value{a.placement == Placement::stack, -1};
    body().push_back(instr);
    counted_[a.buffer] = instr;
  }
  void count_free(BufferId id) {
    if (!options_.statistics) return;
    Instr instr = counted_[id];
    instr.op = Op::free;
    body().push_back(instr);
  }

  Result<void> emit(const Free& s) {
    freed_.insert(s.buffer);
    count_free(s.buffer);
    return {};
  }

  Result<void> emit(const Crop& s) { return with_buffer(s.buffer, scope_.crop(s), s.body); }
  Result<void> emit(const Transpose& s) { return with_buffer(s.buffer, scope_.transpose(s), s.body); }
  Result<void> emit(const View& s) { return with_buffer(s.buffer, scope_.view(s), s.body); }
  Result<void> emit(const Slice& s) {
    const SymbolicBuffer& source = *scope_.find(s.source);
    for (size_t d = 0; d < s.at.size(); ++d) {
      if (!s.at[d]) continue;
      const Expr above = resolved(*s.at[d]) - source.dims[d].min, below = source.dims[d].extent - 1 - above;
      for (const Expr& e : {above, below})
        if (!prove_not_negative(e))
          TENON_OK(check_at_run(e, str("slice '", name(s.buffer), "', dim ", d, ": the index ", *s.at[d],
                                       " is outside of '", name(s.source), "'")));
    }
    return with_buffer(s.buffer, scope_.slice(s), s.body);
  }

  Result<void> emit(const Check& s) {
    const Expr condition = resolved(s.condition);
    std::string message = str(s.message, " (", s.condition, " is 0)");
    if (condition.is_constant() && condition.constant() != 0) return {};
    Instr instr{Op::check};
    instr.a = registers_.value(condition);
    instr.index = static_cast<int32_t>(code().checks.size());
    code().checks.push_back({std::move(message), innermost()});
    body().push_back(instr);
    return {};
  }

  // Loops -----------------------------------------------------------------------------------------------------

  int32_t innermost() const { return loops_.empty() ? -1 : loops_.back().number; }

  Result<void> emit(const Loop& loop) {
    const Expr begin = resolved(loop.begin), end = resolved(loop.end), step = resolved(loop.step);
    const std::optional<SteadyPart> steady = steady_part(loop, begin, end, step);
    if (!steady) return emit_loop(loop, begin, end, step);
    const Expr from = begin + steady->first * step, to = begin + steady->last * step;
    if (steady->first > 0) TENON_OK(emit_loop(loop, begin, from, step));
    TENON_OK(emit_loop(loop, from, min(to, end), step));
    return prove_le(end, to) ? Result<void>() : emit_loop(loop, to, end, step);
  }

  std::optional<SteadyPart> steady_part(const Loop& loop, const Expr& begin, const Expr& end, const Expr& step) {
    const bool counted = begin.is_constant() && end.is_constant() && step.is_constant() && step.constant() >= 1;
    if (loop.kind != LoopKind::serial || !counted || begin.constant() >= end.constant()) return {};
    return detail::steady_part(loop, begin.constant(), step.constant(), iteration_count(begin.constant(), end.constant(), step.constant()), scope_);
  }

  Result<void> emit_loop(const Loop& loop, const Expr& begin, const Expr& end, const Expr& step) {
    const Interval range{bounds(begin, scope_.assumptions()).lower, bounds(end - 1, scope_.assumptions()).upper};
    if (!range.lower || !range.upper)
      return error(Code::resource_exhausted, "loop ", loop.symbol, ": its bounds ", begin, " and ", end,
                   " cannot be told to lie within int64");
    if (prove_le(end, begin, scope_.assumptions())) return {};
    if (!prove_le(1, step, scope_.assumptions()))
      TENON_OK(check_at_run(step - 1, str("loop ", loop.symbol, " has a step below 1")), "loop ", loop.symbol);
    TENON_TRY(workers, most_workers(loop, begin, end, step));

    const auto number = static_cast<int32_t>(code().loops.size());
    code().loops.push_back(
        {.symbol = loop.symbol, .kind = workers > 1 ? loop.kind : LoopKind::serial, .workers = workers});
    LoopCode made = code().loops.back();
    made.begin = registers_.value(begin);
    made.end = registers_.value(end);
    made.step = registers_.value(step);
    made.limit = registers_.value(resolved(loop.workers));
    made.value = registers_.new_word();
    made.left = registers_.new_word();
    made.counter = registers_.new_word();
    made.outer = innermost();
    made.may_be_parallel = loop.kind != LoopKind::serial;
    code().loops[static_cast<size_t>(number)] = made;

    // As begin + step * number of the iteration, where that is known: then x mod 8 in a loop of step 4 is 4 * (k mod
    // 2).
    const bool counted = begin.is_constant() && step.is_constant() && step.constant() >= 1;
    const std::string symbol = counted ? str("iteration.", number) : loop.symbol;
    if (counted) {
      const int64_t most = iteration_count(begin.constant(), *range.upper + 1, step.constant()) - 1;
      scope_.define(loop.symbol, begin + step * Expr::symbol(symbol));
      scope_.assumptions()[symbol] = {0, most};
      registers_.enter(symbol, made.counter, 0, 1, workers == 1);
    } else {
      scope_.define(loop.symbol, Expr::symbol(symbol));
      scope_.assumptions()[symbol] = range;
      registers_.enter(symbol, made.value, begin, step, workers == 1);
    }
    loops_.push_back({number, loop.kind == LoopKind::pipelined, step_, {}});
    dims_known_.emplace_back();
    auto result = workers > 1 ? emit_workers(loop, number) : emit(loop.body);
    leave_loop(loop, symbol, number, workers);
    TENON_OK(std::move(result), "loop ", loop.symbol);
    return registers_.status();
  }

  Result<int64_t> most_workers(const Loop& loop, const Expr& begin, const Expr& end, const Expr& step) const {
    if (loop.kind == LoopKind::serial) return int64_t{1};
    TENON_TRY(limit, most(resolved(loop.workers)), "the workers of loop ", loop.symbol);
    const Interval iterations = bounds(ceildiv(end - begin, max(step, 1)), scope_.assumptions());
    return workers_of(loop, limit, threads_, iterations.upper.value_or(INT64_MAX), inside_workers_);
  }

  Result<void> emit_workers(const Loop& loop, int32_t number) {
    const int32_t outer_region = std::exchange(region_, static_cast<int32_t>(result_.regions.size()));
    LoopCode& made = code().loops[static_cast<size_t>(number)];
    result_.regions.push_back({.outer = outer_region, .loop = number, .workers = made.workers});
    made.worker = registers_.new_word();
    made.outer_worker = worker_loops_.empty() ? -1 : code().loops[static_cast<size_t>(worker_loops_.back())].worker;
    const std::string symbol = str("worker.", number);
    registers_.define(symbol, made.worker, registers_.depth());
    scope_.assumptions()[symbol] = {0, threads_ - 1};
    worker_loops_.push_back(number);
    region_levels_.push_back(registers_.depth());
    // Only where the loop certainly has several workers is it known that loops within have one.
    const bool certain = loop.kind != LoopKind::serial && made.limit.known() && made.begin.known() &&
                         made.end.known() && made.step.known();
    const bool was_inside = std::exchange(inside_workers_, inside_workers_ || certain);
    const int64_t first = step_;
    auto result = emit(loop.body);
    ArenaRegion& region = result_.regions[static_cast<size_t>(region_)];
    region.first = first;
    region.last = step_ + 1;  // leave_loop counts one
    inside_workers_ = was_inside;
    region_levels_.pop_back();
    worker_loops_.pop_back();
    region_ = outer_region;
    return result;
  }

  void leave_loop(const Loop& loop, const std::string& symbol, int32_t number, int64_t workers) {
    ++step_;
    const OpenLoop open = std::move(loops_.back());
    loops_.pop_back();
    dims_known_.pop_back();
    for (const int32_t block : open.touched) result_.blocks[static_cast<size_t>(block)].use(open.first, step_);
    Registers::LevelCode inner = registers_.leave();
    scope_.assumptions().erase(symbol);
    scope_.erase(loop.symbol);
    LoopCode& made = code().loops[static_cast<size_t>(number)];
    add_increments(inner.increments, made);
    Instr instr{workers > 1 ? Op::workers : Op::loop};
    instr.index = number;
    made.plain = workers == 1 && inner.header.empty() && !inner.body.empty() && !options_.statistics &&
                 std::ranges::all_of(inner.body, [](const Instr& i) { return i.op == Op::call_plain; });
    auto& out = body();
    out.insert(out.end(), inner.entry.begin(), inner.entry.end());
    out.push_back(instr);
    out.insert(out.end(), inner.header.begin(), inner.header.end());
    out.insert(out.end(), inner.body.begin(), inner.body.end());
    instr.op = workers > 1 ? Op::body_end : Op::next;
    out.push_back(instr);
  }
  void add_increments(const std::vector<Increment>& increments, LoopCode& loop) {
    loop.first_step = static_cast<int32_t>(code().steps.size());
    loop.first_increment = static_cast<int32_t>(code().increments.size());
    for (const Increment& i : increments) {
      if (i.by.known() && i.modulus == 0)
        code().steps.push_back({i.place, i.by.number});
      else
        code().increments.push_back(i);
    }
    loop.last_step = static_cast<int32_t>(code().steps.size());
    loop.last_increment = static_cast<int32_t>(code().increments.size());
  }

  static void flatten(Registers::LevelCode program, std::vector<Instr>& to) {
    to = std::move(program.header);
    to.insert(to.end(), program.body.begin(), program.body.end());
  }
  void find_targets() {
    auto& instrs = code().instrs;
    for (size_t i = 0; i < instrs.size(); ++i) {
      LoopCode* loop =
          instrs[i].index >= 0 && is_loop(instrs[i].op) ? &code().loops[static_cast<size_t>(instrs[i].index)] : nullptr;
      if (loop == nullptr) continue;
      const bool begins = instrs[i].op == Op::loop || instrs[i].op == Op::workers;
      (begins ? loop->body : loop->exit) = static_cast<int32_t>(i) + 1;
    }
  }
  static bool is_loop(Op op) { return op == Op::loop || op == Op::next || op == Op::workers || op == Op::body_end; }

  // The level of the innermost loop of workers.
  size_t region_level() const { return region_levels_.empty() ? 0 : region_levels_.back(); }
  Expr worker() const { return worker_loops_.empty() ? Expr(0) : Expr::symbol(str("worker.", worker_loops_.back())); }

  // Operands --------------------------------------------------------------------------------------------------

  // The address of the base of a box, in the slot of the worker.
  Expr address_of(const SymbolicBuffer& box) {
    const Root& root = root_of(box);
    if (root.slots > 1) limit_workers(box.root, root.slots);
    return root.address + scope_.simplified(box.offset) + (root.slots > 1 ? worker() * root.slot_bytes : Expr(0));
  }
  void limit_workers(BufferId id, int64_t slots) {
    for (const int32_t number : worker_loops_) {
      LoopCode& loop = code().loops[static_cast<size_t>(number)];
      if (slots >= loop.slots) continue;
      loop.slots = slots;
      loop.slots_of = name(id);
    }
  }

  // Dims that a kernel sees here already, with the same numbers: what one stage writes, the next one mostly reads.
  Place find_dims(const SymbolicBuffer& box) const {
    for (const auto& level : dims_known_)
      for (const auto& [dims, place] : level)
        if (dims == box.dims) return place;
    return -1;
  }

  // Fills a BufferView and its dims in the frame.
  OperandCode operand(const SymbolicBuffer& box, ElementType element, Place view, Site& site, std::string label) {
    OperandCode made{view, {}, static_cast<int32_t>(site.folds.size()), 0, std::move(label)};
    const auto rank = static_cast<int32_t>(box.dims.size());
    const bool shares = std::ranges::all_of(box.dims, is_unfolded);
    if (const Place known = shares ? find_dims(box) : -1; known >= 0) {
      code().views.push_back({view, known, rank, element});
      made.base = {0, view};
      made.last_fold = made.first_fold;
      registers_.into(address_of(box), view);
      use(box.root);
      return made;
    }
    const Place dims = registers_.new_words(box.dims.size() * (sizeof(DimView) / sizeof(int64_t)));
    code().views.push_back({view, dims, rank, element});
    if (shares) dims_known_.back().emplace_back(box.dims, dims);
    Expr base = address_of(box);
    for (int32_t d = 0; d < rank; ++d) {
      const SymbolicDim& dim = box.dims[static_cast<size_t>(d)];
      const Place at = dims + d * static_cast<Place>(sizeof(DimView));
      registers_.into(dim.min, at);
      registers_.into(dim.extent, at + kWord);
      registers_.into(scope_.simplified(dim.stride), at + 2 * kWord);
      if (is_unfolded(dim)) continue;
      const Expr place = scope_.simplified(mod(dim.min, max(dim.fold, 1)));
      if (dim.fold.is_constant() && prove_le(place + dim.extent, dim.fold, scope_.assumptions())) {
        base += place * dim.stride;  // it never wraps
        continue;
      }
      site.folds.push_back(
          {at, registers_.value(place), registers_.value(dim.fold), registers_.value(scope_.simplified(dim.stride))});
    }
    made.last_fold = static_cast<int32_t>(site.folds.size());
    made.base = {0, view};
    if (made.first_fold == made.last_fold)
      registers_.into(base, view);
    else
      made.base = registers_.value(base);
    use(box.root);
    return made;
  }

  // What has to be true of a box, as far as it is not certain. Boxes that are empty may lie anywhere.
  void guard(const Region& r, const SymbolicBuffer& box, const std::string& label, Site& site) {
    const SymbolicBuffer& has = *scope_.find(r.buffer);
    Expr nonempty = 1;
    for (const SymbolicDim& d : box.dims) nonempty *= less(0, d.extent);
    nonempty = scope_.simplified(nonempty);
    const auto need = [&](const Expr& not_negative, const auto&... what) {
      if (prove_not_negative(not_negative)) return;
      const Expr e = scope_.simplified(select(nonempty, not_negative, 0));
      if (prove_not_negative(e)) return;
      site.guards.push_back({registers_.value(e), static_cast<int32_t>(code().messages.size())});
      code().messages.push_back(str(label, ": ", what...));
    };
    for (size_t d = 0; d < r.box.size(); ++d) {
      const Expr above = scope_.simplified(box.dims[d].min - has.dims[d].min);
      need(above, "dim ", d, ": the box begins before the buffer '", name(r.buffer), "'");
      need(scope_.simplified(has.dims[d].extent - above - box.dims[d].extent), "dim ", d,
           ": the box ends behind the buffer '", name(r.buffer), "'");
    }
    if (!box.general) return;
    Expr low = box.offset, high = box.offset + program_.buffer(r.buffer).element.bits() / 8;
    for (const SymbolicDim& d : box.dims) {
      const Expr reach = (places_of(d) - 1) * d.stride;
      low += min(reach, 0);
      high += max(reach, 0);
    }
    const Root& root = root_of(box);
    need(scope_.simplified(low - root.low), "'", name(r.buffer), "' reaches below the memory of '", name(box.root),
         "'");
    need(scope_.simplified(root.high - high), "'", name(r.buffer), "' reaches beyond the memory of '", name(box.root),
         "'");
  }

  void written(const SymbolicBuffer& box, Site& site, std::vector<std::string>& names) {
    if (names.empty())
      for (const SymbolicDim& d : box.dims) site.counted.push_back(registers_.value(d.extent));
    names.push_back(name(box.root));
    for (const SymbolicDim& d : box.dims)
      if (!prove_le(1, d.extent, scope_.assumptions())) site.extents.push_back(registers_.value(d.extent));
  }

  // Calls and copies ------------------------------------------------------------------------------------------

  void push_site(Op op, Site site, const Expr& predicate) {
    site.predicate = registers_.value(resolved(predicate));
    site.plain_path = site.extents.empty() && site.guards.empty() && site.folds.empty() &&
                      site.predicate == Value{1, -1} && !options_.statistics;
    site.loop = innermost();
    Instr instr{op == Op::call && site.plain_path ? (site.plain ? Op::call_plain : Op::call_function) : op};
    instr.index = static_cast<int32_t>(code().sites.size());
    instr.to = site.context;
    instr.plain = site.plain;
    code().sites.push_back(std::move(site));
    body().push_back(instr);
  }

  Result<void> emit(const Call& s) {
    Site site;
    site.call = &s;
    site.run = s.kernel->run;
    if (const auto* plain = site.run.target<Result<void> (*)(CallContext&)>()) site.plain = *plain;
    if (s.kernel->make_state && s.kernel->run_in_state) site.plain = s.kernel->run_in_state;
    constexpr auto kViewWords = sizeof(BufferView) / sizeof(int64_t);
    site.context = registers_.new_words(sizeof(CallContext) / sizeof(int64_t));
    const Place views = registers_.new_words(s.operands.size() * kViewWords);
    std::vector<std::string> names;
    for (size_t i = 0; i < s.operands.size(); ++i) {
      const Operand& o = s.operands[i];
      const std::string label = operand_label(program_, s, i);
      const SymbolicBuffer box = scope_.region(o.region);
      guard(o.region, box, label, site);
      if (o.access != Access::in) written(box, site, names);
      const Place view = views + static_cast<Place>(i * sizeof(BufferView));
      OperandCode made = operand(box, program_.buffer(o.region.buffer).element, view, site, label);
      site.operands.push_back(std::move(made));
    }
    const Place scalars = registers_.new_words(s.scalars.size());
    for (size_t i = 0; i < s.scalars.size(); ++i)
      registers_.into(resolved(s.scalars[i]), scalars + static_cast<Place>(i) * kWord);
    code().contexts.push_back({site.context, views, scalars, static_cast<int32_t>(s.operands.size()),
                               static_cast<int32_t>(s.scalars.size()), stage_of(s), s.kernel.get(), state_of(s)});
    if (!worker_loops_.empty())
      registers_.into(worker(), site.context + static_cast<Place>(offsetof(CallContext, worker)));
    site.label = stage_label(stage_of(s), names);
    push_site(Op::call, std::move(site), s.predicate);
    return {};
  }

  // One for all parts of a loop that hold the call.
  int32_t state_of(const Call& s) {
    const auto [it, added] = states_.try_emplace(&s, static_cast<int32_t>(states_.size()));
    if (added) code().states.push_back(s.kernel.get());
    return it->second;
  }

  Result<Site> copy_site(const Copy& s) {
    Site site;
    site.copy = &s;
    const ElementType element = program_.buffer(s.destination.buffer).element;
    TENON_TRY(plan, CopyPlan::make(s, element), "copy '", stage_of(s), "'");
    std::vector<std::string> names;
    std::vector<std::pair<const Region*, std::string>> regions = {{&s.destination, "the destination"},
                                                                  {&s.source, "the source"}};
    if (const auto* padding = std::get_if<Region>(&s.padding)) regions.push_back({padding, "the padding"});
    for (const auto& [region, label] : regions) {
      const SymbolicBuffer box = scope_.region(*region);
      guard(*region, box, label, site);
      if (region == &s.destination) written(box, site, names);
      const Place view = registers_.new_words(sizeof(BufferView) / sizeof(int64_t));
      OperandCode made = operand(box, element, view, site, label);
      site.operands.push_back(std::move(made));
    }
    site.parameters = registers_.new_words(plan.parameters().size());
    for (size_t i = 0; i < plan.parameters().size(); ++i)
      registers_.into(resolved(Expr::symbol(plan.parameters()[i])), site.parameters + static_cast<Place>(i) * kWord);
    site.label = stage_label(stage_of(s), names);
    site.plan = std::move(plan);
    return site;
  }

  Result<void> emit(const Copy& s) {
    TENON_TRY(site, copy_site(s));
    push_site(Op::copy, std::move(site), s.predicate);
    return {};
  }

  Result<void> emit(const DmaStart& s) {
    TENON_TRY(site, copy_site(s.copy));
    site.token = s.token;
    auto& roots = in_transfer_[static_cast<size_t>(s.token)];
    for_each_buffer(Statement(s.copy), [&](BufferId id, Access) { roots.push_back(scope_.find(id)->root); });
    push_site(Op::start, std::move(site), s.copy.predicate);
    return {};
  }

  Result<void> emit(const DmaWait& s) {
    // What a transfer uses is in use until its end. Which one ends here is not known: all that have been started.
    for (const BufferId root : in_transfer_[static_cast<size_t>(s.token)])
      if (roots_[static_cast<size_t>(root)].depth <= loops_.size()) use(root);
    Instr instr{Op::wait};
    instr.index = s.token;
    instr.number = innermost();
    body().push_back(instr);
    return {};
  }

  Result<void> emit(const Signal& s) { return emit_stage(Op::signal, s.stage); }
  Result<void> emit(const Await& s) { return emit_stage(Op::await, s.stage); }
  Result<void> emit_stage(Op op, int stage) {
    const auto around = std::find_if(loops_.rbegin(), loops_.rend(), [](const OpenLoop& l) { return l.pipelined; });
    LoopCode& loop = code().loops[static_cast<size_t>(around->number)];
    if (loop.kind != LoopKind::pipelined) return {};  // with one worker it is a serial one: nobody waits
    loop.stages = std::max(loop.stages, stage + 1);
    Instr instr{op};
    instr.number = stage;
    instr.index = around->number;
    body().push_back(instr);
    return {};
  }

  // Memory ----------------------------------------------------------------------------------------------------

  void place_blocks() {
    plan_arenas(result_.blocks, result_.regions);
    std::vector<std::map<std::string, Place>> bases(result_.regions.size());
    for (size_t r = 0; r < result_.regions.size(); ++r) {
      const ArenaRegion& region = result_.regions[r];
      for (const auto& [space, bytes] : region.bytes) {
        const Place base = bases[r][space] = registers_.new_word();
        if (r == 0)
          code().arenas.emplace_back(base, space);
        else
          code().loops[static_cast<size_t>(region.loop)].bases.push_back(
              {base, bases[static_cast<size_t>(region.outer)].at(space), region.offset.at(space), bytes});
      }
    }
    code().arena_bytes = result_.regions[0].bytes;
    for (size_t b = 0; b < result_.blocks.size(); ++b) {
      const PlannedBlock& block = result_.blocks[b];
      if (block.first > block.last) continue;  // nothing uses it
      const auto r = static_cast<size_t>(block.region);
      auto& roots = r == 0 ? code().roots : code().loops[static_cast<size_t>(result_.regions[r].loop)].worker_roots;
      roots.push_back({block_roots_[b], bases[r].at(block.space), block.offset});
    }
  }

  struct OpenLoop {
    int32_t number;
    bool pipelined;                // in the program; its code is serial when it has one worker
    int64_t first;                 // step
    std::vector<int32_t> touched;  // blocks from around it
  };

  const Program& program_;
  const BindOptions& options_;
  int64_t threads_;
  BoundCode result_;
  Scope scope_;
  Registers registers_;
  std::vector<Root> roots_;                         // by BufferId
  std::vector<Place> block_roots_;                  // by block: the register of its address
  std::vector<std::vector<BufferId>> in_transfer_;  // by token
  std::vector<OpenLoop> loops_;
  // Unfolded dims in the frame, by the loop that they were made in: they hold in it, and in loops further in.
  std::vector<std::vector<std::pair<std::vector<SymbolicDim>, Place>>> dims_known_{1};
  std::vector<int32_t> worker_loops_;
  std::vector<size_t> region_levels_;
  std::map<BufferId, Instr> counted_;
  std::map<const Call*, int32_t> states_;
  std::set<BufferId> freed_;
  size_t addresses_ = 0;
  int64_t step_ = 0;
  int32_t region_ = 0;
  bool inside_workers_ = false;
};

}  // namespace

Result<BoundCode> bind_code(const Program& program, const Arguments& shapes, const BindOptions& options,
                            int64_t threads) {
  return Binder(program, shapes, options, threads).bind();
}

}  // namespace tenon::program::detail
