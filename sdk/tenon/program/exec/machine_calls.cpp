// Execution of calls, copies and transfers.
#include <chrono>

#include <tenon/program/exec/compute_internal.hpp>
#include <tenon/program/exec/machine_internal.hpp>
#include <tenon/program/ir/labels.hpp>

namespace tenon::program::detail {

// Calls and copies ----------------------------------------------------------------------------------------------

bool Machine::call(Worker& worker, const Site& site) {
  bool skip = false;
  if (!prepare(worker, site, skip) || skip) return skip;
  CallContext& context = worker.frame.as<CallContext>(site.context);
  Result<void> result = site.plain ? site.plain(context) : site.call->kernel->run(context);
  if (result.ok()) [[likely]]
    return true;
  return fail_call(worker, site, std::move(result).error());
}

bool Machine::observed(Worker& worker, const Instr& instr) {
  const Site& site = code_.sites[static_cast<size_t>(instr.index)];
  const auto begin = std::chrono::steady_clock::now();
  const bool ok = site.call || site.plain ? call(worker, site) : copy(worker, site);
  const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
  const std::lock_guard lock(counts_mutex_);
  if (ok) observer_->ran(site.call ? stage_of(*site.call) : stage_of(*site.copy), taken.count(), site.loop >= 0);
  return ok;
}

bool Machine::fail_call(Worker& worker, const Site& site, Error e) {
  return fail(worker, std::move(e).with_frame(str("call '", stage_of(*site.call), "'")), site.loop, site.ahead);
}

bool Machine::copy(Worker& worker, const Site& site) {
  bool skip = false;
  if (!site.plain_path && (!prepare(worker, site, skip) || skip)) return skip;
  return copy_now(worker, site);
}

bool Machine::copy_now(Worker& worker, const Site& site) {
  Frame& f = worker.frame;
  const BufferView* padding = site.operands.size() > 2 ? &f.as<BufferView>(site.operands[2].view) : nullptr;
  const size_t parameters = site.plan->parameters().size();
  const std::span<const int64_t> values{parameters > 0 ? &f.at(site.parameters) : nullptr, parameters};
  Result<void> result =
      site.plan->run(f.as<BufferView>(site.operands[0].view), f.as<BufferView>(site.operands[1].view), padding, values);
  if (result.ok()) [[likely]]
    return true;
  return fail(worker, std::move(result).error().with_frame(str("copy '", stage_of(*site.copy), "'")), site.loop,
              site.ahead);
}

bool Machine::prepare(Worker& worker, const Site& site, bool& skip) {
  Frame& f = worker.frame;
  skip = f.get(site.predicate) == 0;
  for (const Value& extent : site.extents) skip |= f.get(extent) <= 0;
  if (counts_) count(worker, site, skip);
  if (skip) return true;
  for (const Guard& g : site.guards)
    if (f.get(g.value) < 0)
      return fail(worker, error(Code::invalid_argument, code_.messages[static_cast<size_t>(g.message)]), site.loop,
                  site.ahead);
  for (const OperandCode& o : site.operands)
    if (!o.rings.folds.empty() && !place_unfolded(worker, site, o)) return false;
  return true;
}

bool Machine::place_unfolded(Worker& worker, const Site& site, const OperandCode& operand) {
  const DimView* const wraps = place_view(worker.frame, operand.rings);
  if (!wraps) return true;
  return fail(worker,
              error(Code::unsupported, "indices ", wraps->min, " .. ", wraps->max(), " wrap around a ring of ",
                    wraps->fold, ", and kernel '", site.call->kernel->name, "' takes no folded buffers")
                  .with_frame(operand.label),
              site.loop, site.ahead);
}

void Machine::count(Worker& worker, const Site& site, bool skipped) {
  const std::lock_guard lock(counts_mutex_);
  StageStatistics& counts = site.call ? counts_->call(site.label) : counts_->copy(site.label);
  if (skipped) {
    ++counts.skipped;
    return;
  }
  int64_t elements = 1;
  for (const Value& extent : site.counted) elements *= worker.frame.get(extent);
  ++counts.calls;
  counts.elements += elements;
}

// Transfers and memory ------------------------------------------------------------------------------------------

bool Machine::wait(Worker& worker, const Instr& instr) {
  int64_t& under_way = worker.frame.at(code_.tokens[static_cast<size_t>(instr.index)]);
  if (--under_way >= 0) {
    auto result = worker.transfers.wait(static_cast<TokenId>(instr.index));
    if (result.ok()) [[likely]]
      return true;
    return fail(
        worker,
        std::move(result).error().with_frame(str("dma '", program_.tokens[static_cast<size_t>(instr.index)], "'")),
        static_cast<int32_t>(instr.number));
  }
  return fail(worker,
              error(Code::invalid_argument, "wait '", program_.tokens[static_cast<size_t>(instr.index)],
                    "': no transfer of this token is under way here"),
              static_cast<int32_t>(instr.number));
}

bool Machine::start(Worker& worker, const Site& site) {
  ++worker.frame.at(code_.tokens[static_cast<size_t>(site.token)]);
  bool skip = false;
  if (!site.plain_path && !prepare(worker, site, skip)) return false;
  const BufferView& to = worker.frame.as<BufferView>(site.operands[0].view);
  const bool beside = engine_ && !skip && to.elements() * to.element_bytes() >= options_.beside_bytes;
  if (beside && worker.transfers.push(site, worker.frame)) {
    engine_->wake();
    return true;
  }
  worker.transfers.done_at_once(site.token);
  return skip || copy_now(worker, site);
}

bool Machine::grow(Worker& worker, const Instr& instr) {
  Frame& f = worker.frame;
  const auto block = static_cast<size_t>(instr.index);
  const int64_t bytes = f.get(instr.a);
  if (f.grown().size() <= block) {
    f.grown().resize(code_.grow_align.size());
    f.grown_bytes().resize(code_.grow_align.size(), -1);
  }
  if (f.grown_bytes()[block] < bytes) {
    auto made =
        bytes <= static_cast<int64_t>(tensor_bytes_limit())
            ? allocate_aligned(static_cast<size_t>(bytes), code_.grow_align[block])
            : Result<AlignedBytes>(error(Code::resource_exhausted, "an allocation of ", bytes, " bytes, and at most ",
                                         tensor_bytes_limit(), " are allowed (TENON_TENSOR_LIMIT)"));
    if (!made.ok()) return fail(worker, std::move(made).error(), -1);
    f.grown()[block] = *std::move(made);
    f.grown_bytes()[block] = bytes;
  }
  f.at(instr.to) = address_of(f.grown()[block].get());
  return true;
}

}  // namespace tenon::program::detail
