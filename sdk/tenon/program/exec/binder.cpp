#include <tenon/program/exec/binder_internal.hpp>

#include <algorithm>

#include <tenon/program/exec/arguments_internal.hpp>
#include <tenon/program/exec/locals_internal.hpp>

namespace tenon::program::detail {

Binder::Binder(const Program& program, const Arguments& shapes, const BindOptions& options, int64_t threads)
    : program_(program),
      options_(options),
      threads_(threads),
      scope_(program),
      registers_(result_.code, scope_.assumptions()),
      roots_(program.buffers.size()),
      in_transfer_(program.tokens.size()),
      freed_(program.buffers.size()) {
  result_.regions.emplace_back();
  for (const auto& [name, value] : shapes.scalars) scope_.define(name, value);
  scope_.define(std::string(kThreadsSymbol), threads);
  for (size_t id = 0; id < program.buffers.size(); ++id)
    if (program.buffers[id].role != Role::local)
      declare(static_cast<BufferId>(id), shapes.buffers.find(program.buffers[id].name)->second);
  for (size_t t = 0; t < program.tokens.size(); ++t) code().tokens.push_back(registers_.new_word());
}

Result<BoundCode> Binder::bind() {
  TENON_OK(emit_outermost(), "program '", program_.name, "'");
  result_.steps = step_ + 1;
  place_blocks();
  flatten(registers_.leave_program(), code().instrs);
  code().instrs.push_back({Op::end});
  code().has_hints = std::ranges::any_of(code().instrs, is_hint, &Instr::op);
  find_targets();
  return std::move(result_);
}

void Binder::flatten(Registers::LevelCode program, std::vector<Instr>& to) {
  to = std::move(program.header);
  to.insert(to.end(), program.body.begin(), program.body.end());
}

void Binder::find_targets() {
  auto& instrs = code().instrs;
  for (size_t i = 0; i < instrs.size(); ++i) {
    LoopCode* loop =
        instrs[i].index >= 0 && is_loop(instrs[i].op) ? &code().loops[static_cast<size_t>(instrs[i].index)] : nullptr;
    if (loop == nullptr) continue;
    const bool begins = instrs[i].op == Op::loop || instrs[i].op == Op::workers;
    (begins ? loop->body : loop->exit) = static_cast<int32_t>(i) + 1;
  }
  if (options_.statistics) return;
  for (LoopCode& loop : code().loops)
    if (loop.workers == 1 && loop.exit > 0) find_plain_calls(loop);
}

void Binder::find_plain_calls(LoopCode& loop) {
  std::vector<HintedCall> found;
  bool takes_call = false, hints = false;  // the last site found has a hint and no call so far
  loop.plain = loop.body;
  while (computes(code().instrs[static_cast<size_t>(loop.plain)].op)) ++loop.plain;
  for (int32_t at = loop.plain; at < loop.exit - 1; ++at) {
    const Instr& i = code().instrs[static_cast<size_t>(at)];
    if (i.op == Op::call_plain) {
      if (!takes_call) found.emplace_back();
      found.back().call = {i.plain, i.to, at};
      takes_call = false;
      continue;
    }
    if (!is_hint(i.op) || i.op == Op::prefetch || i.a.known()) return;
    found.push_back({.lines = i.last,
                     .rows = i.first,
                     .offset = i.number,
                     .stride = i.b.number,
                     .address = i.a.place,
                     .writes = i.op == Op::write_soon});
    takes_call = hints = true;
  }
  loop.first_plain = static_cast<int32_t>(code().plain_calls.size());
  for (const HintedCall& c : found)
    if (c.call.plain) code().plain_calls.push_back(c.call);
  loop.last_plain = static_cast<int32_t>(code().plain_calls.size());
  if (!hints) return;
  loop.first_hinted = static_cast<int32_t>(code().hinted_calls.size());
  code().hinted_calls.insert(code().hinted_calls.end(), found.begin(), found.end());
  loop.last_hinted = static_cast<int32_t>(code().hinted_calls.size());
}

// Numbers -------------------------------------------------------------------------------------------------------

Result<int64_t> Binder::most(const Expr& e) const {
  const Interval range = bounds(e, scope_.assumptions());
  if (!range.upper) return error(Code::resource_exhausted, "no upper bound of ", e, " can be told");
  return *range.upper;
}

Result<void> Binder::check_at_run(const Expr& not_negative, std::string message) {
  if (not_negative.is_constant()) return error(Code::invalid_argument, message);
  Instr instr{Op::check};
  instr.a = registers_.value(less_equal(0, not_negative));
  instr.index = static_cast<int32_t>(code().checks.size());
  code().checks.push_back({std::move(message), innermost()});
  body().push_back(instr);
  return {};
}

// Buffers -------------------------------------------------------------------------------------------------------

void Binder::declare(BufferId id, const BufferArgument& argument) {
  const Buffer& b = program_.buffer(id);
  const BoundBuffer bound = bind_argument(b, id, argument);
  SymbolicBuffer made{id, 0, {}, false};
  for (const DimView& d : bound.dims) made.dims.push_back({d.min, d.extent, d.stride, d.fold});
  scope_.exchange(id, std::move(made));
  const Spread spread = spread_of(bound.dims, b.element).value();
  const Place place = registers_.new_word();
  code().arguments.push_back(place);
  roots_[static_cast<size_t>(id)] = {.place = place, .low = spread.low, .high = spread.high};
}

const Expr& Binder::address_of(MemoryRoot& root) {
  if (!root.address) {
    const std::string symbol = str(kAddressPrefix, addresses_++);
    registers_.define(symbol, root.place, root.level);
    root.address = Expr::symbol(symbol);
  }
  return *root.address;
}

void Binder::use(BufferId root) {
  const MemoryRoot& r = roots_[static_cast<size_t>(root)];
  if (r.block < 0) return;
  result_.blocks[static_cast<size_t>(r.block)].use(step_, step_);
  for (size_t depth = r.depth; depth < loops_.size(); ++depth) loops_[depth].touched.push_back(r.block);
}

Result<void> Binder::with_buffer(BufferId id, SymbolicBuffer made, const Statement& inner) {
  auto before = scope_.exchange(id, std::move(made));
  auto result = emit(inner);
  scope_.exchange(id, std::move(before));
  return result;
}

// Statements ----------------------------------------------------------------------------------------------------

Result<void> Binder::emit_outermost() {
  const auto locals = locals_by_first_use(program_);
  for (size_t i = 0; i < locals.end.size(); ++i) {
    for (const Allocation* a : locals.of(i)) {
      TENON_TRY(made, make_allocation(*a), "local '", name(a->buffer), "'");
      scope_.exchange(a->buffer, std::move(made));
    }
    TENON_OK(emit(outermost(program_)[i]));
  }
  for (const Allocation* a : locals.all)
    if (!freed_[static_cast<size_t>(a->buffer)]) count_free(a->buffer);
  return {};
}

Result<void> Binder::emit(const Statement& s) {
  if (s.empty()) return {};
  ++step_;
  TENON_OK(s.visit([this](const auto& statement) { return emit(statement); }));
  return registers_.status();
}

Result<void> Binder::emit(const Block& block) {
  for (const Statement& s : block.statements) TENON_OK(emit(s));
  return {};
}

Result<void> Binder::emit(const Let& let) {
  scope_.define(let.symbol, resolved(let.value));
  auto result = emit(let.body);
  scope_.erase(let.symbol);
  return result;
}

Result<void> Binder::emit(const Slice& s) {
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

Result<void> Binder::emit(const Check& s) {
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

Result<BoundCode> bind_code(const Program& program, const Arguments& shapes, const BindOptions& options,
                            int64_t threads) {
  return Binder(program, shapes, options, threads).bind();
}

}  // namespace tenon::program::detail
