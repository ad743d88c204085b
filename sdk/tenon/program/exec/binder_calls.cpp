// The code of calls, copies and transfers.
#include <algorithm>
#include <cstddef>
#include <functional>

#include <tenon/program/exec/binder_internal.hpp>
#include <tenon/program/ir/labels.hpp>
#include <tenon/program/ir/walk.hpp>

namespace tenon::program::detail {

void Binder::push_site(Op op, Site site, const Expr& predicate) {
  site.predicate = registers_.value(resolved(predicate));
  const bool looks_at_rings =
      std::ranges::any_of(site.operands, [](const OperandCode& o) { return !o.rings.folds.empty(); });
  site.plain_path = site.extents.empty() && site.guards.empty() && !looks_at_rings && site.predicate == Value{1, -1} &&
                    !options_.statistics;
  if (options_.statistics) site.label = label_of(site, program_);
  site.loop = innermost();
  site.ahead = ahead_in_loop();
  if (site.plain_path && site.plain) op = Op::call_plain;
  if (site.plain_path && op == Op::call) op = Op::call_function;
  Instr instr{op};
  instr.index = static_cast<int32_t>(code().sites.size());
  instr.to = site.context;
  instr.plain = site.plain;
  code().sites.push_back(std::move(site));
  body().push_back(instr);
}

int64_t Binder::ahead_in_loop() const {
  if (once_ >= 0 || loops_.empty() || loops_.back().shown.empty()) return 0;
  const OpenLoop& loop = loops_.back();
  return scope_.simplified(scope_.resolve(Expr::symbol(loop.shown)) - scope_.resolve(Expr::symbol(loop.symbol)))
      .constant();
}

bool Binder::may_be_unfinished() const {
  return !loops_.empty() && code().loops[static_cast<size_t>(loops_.back().number)].workers == 1 &&
         program_.tokens.empty();
}

// With statistics, omitted calls are counted as well.
bool Binder::does_nothing(const Expr& predicate, const SymbolicBuffer& written) const {
  const auto never_above_0 = [this](const Expr& e) {
    return e.is_constant() ? e.constant() <= 0 : prove_le(e, 0, scope_.assumptions());
  };
  return resolved(predicate).is_constant(0) || std::ranges::any_of(written.dims, never_above_0, &SymbolicDim::extent);
}

Result<void> Binder::emit(const Call& s) {
  const auto leaves_out = [&](const Operand& o) {
    return o.access != Access::in && does_nothing(s.predicate, scope_.region(o.region));
  };
  if (may_be_left_out() && std::ranges::any_of(s.operands, leaves_out)) return {};
  Site site;
  site.call = &s;
  if (const auto* plain = s.kernel->run.target<Result<void> (*)(CallContext&)>()) site.plain = *plain;
  if (s.kernel->make_state && s.kernel->run_in_state) site.plain = s.kernel->run_in_state;
  if (s.kernel->run_unfinished && may_be_unfinished()) {
    site.plain = s.kernel->run_unfinished;
    loops_.back().finishes.insert(s.kernel->finish);
  }
  constexpr auto kViewWords = sizeof(BufferView) / sizeof(int64_t);
  site.context = registers_.new_words(sizeof(CallContext) / sizeof(int64_t));
  const Place views = registers_.new_words(s.operands.size() * kViewWords);
  site.operands.reserve(s.operands.size());
  for (size_t i = 0; i < s.operands.size(); ++i) {
    const Operand& o = s.operands[i];
    const auto name_it = [&] { return operand_label(program_, s, i); };
    const Label label = std::cref(name_it);
    SymbolicBuffer made_box;
    const SymbolicBuffer& box = box_of(o.region, made_box);
    guard(o.region, box, label, site);
    if (o.access != Access::in) written(box, site);
    const Place view = views + static_cast<Place>(i * sizeof(BufferView));
    site.operands.push_back(operand(box, program_.buffer(o.region.buffer).element, view, site, label));
  }
  const Place scalars = registers_.new_words(s.scalars.size());
  for (size_t i = 0; i < s.scalars.size(); ++i)
    registers_.into(resolved(s.scalars[i]), scalars + static_cast<Place>(i) * kWord);
  code().contexts.push_back({site.context, views, scalars, static_cast<int32_t>(s.operands.size()),
                             static_cast<int32_t>(s.scalars.size()), stage_of(s), state_of(s)});
  if (!worker_loops_.empty())
    registers_.into(worker(), site.context + static_cast<Place>(offsetof(CallContext, worker)));
  push_site(Op::call, std::move(site), s.predicate);
  return {};
}

int32_t Binder::state_of(const Call& s) {
  const auto number = static_cast<int32_t>(code().states.size());
  if (innermost() >= 0) {
    const auto [it, added] = states_.try_emplace(&s, number);
    if (!added) return it->second;
  }
  code().states.push_back(s.kernel.get());
  return number;
}

Result<void> Binder::emit(const DmaStart& s) {
  Site site;
  site.copy = &s.copy;
  const CopiedBoxes boxes = boxes_of(s.copy, site);
  TENON_OK(plan_copy(boxes, site));
  site.token = s.token;
  auto& roots = in_transfer_[static_cast<size_t>(s.token)];
  for_each_buffer(Statement(s.copy), [&](BufferId id, Access) { roots.push_back(scope_.find(id)->root); });
  push_site(Op::start, std::move(site), s.copy.predicate);
  return {};
}

Result<void> Binder::emit(const DmaWait& s) {
  // The memory of a transfer is in use until its end. Which transfer ends here is not known: all that were started.
  for (const BufferId root : in_transfer_[static_cast<size_t>(s.token)])
    if (roots_[static_cast<size_t>(root)].depth <= loops_.size()) use(root);
  Instr instr{Op::wait};
  instr.index = s.token;
  instr.number = innermost();
  body().push_back(instr);
  return {};
}

Result<void> Binder::emit_stage(Op op, int stage) {
  const auto around = std::find_if(loops_.rbegin(), loops_.rend(), [](const OpenLoop& l) { return l.pipelined; });
  LoopCode& loop = code().loops[static_cast<size_t>(around->number)];
  if (loop.kind != LoopKind::pipelined) return {};  // with one worker it is serial: nobody waits
  loop.stages = std::max(loop.stages, stage + 1);
  Instr instr{op};
  instr.number = stage;
  instr.index = around->number;
  body().push_back(instr);
  return {};
}

}  // namespace tenon::program::detail
