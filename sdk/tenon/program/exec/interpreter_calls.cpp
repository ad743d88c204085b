// Calls, copies and transfers of the interpreter.
#include <algorithm>

#include <tenon/program/exec/contract.hpp>
#include <tenon/program/exec/copy_reference_internal.hpp>
#include <tenon/program/exec/interpreter_internal.hpp>
#include <tenon/program/ir/labels.hpp>

namespace tenon::program::detail {

Result<void> ReadyCopy::run() const {
  const BufferView pad = padding ? padding->view() : BufferView{};
  return copy_reference(*copy, destination.view(), source.view(), padding ? &pad : nullptr, symbols);
}

Result<void> Interpreter::run(const Call& call) {
  auto result = run_call(call);
  TENON_OK(std::move(result), "call '", stage_of(call), "'");
  return {};
}

Result<void> Interpreter::run_call(const Call& call) {
  std::vector<BoundBuffer> operands;
  std::vector<std::string> written;
  int64_t elements = 0;
  bool empty = false;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const Operand& o = call.operands[i];
    if (o.access == Access::in) continue;
    TENON_TRY(buffer, resolve(o.region), operand_label(program_, call, i));
    if (written.empty()) elements = buffer.view().elements();
    empty |= buffer.view().empty();
    written.push_back(name_of(buffer.memory->root));
  }
  TENON_TRY(wanted, evaluate(call.predicate), "the predicate");
  StageStatistics& counts = counts_.call(stage_label(stage_of(call), written));
  if (empty || wanted == 0) {
    ++counts.skipped;
    return {};
  }
  for (size_t i = 0; i < call.operands.size(); ++i) {
    TENON_TRY(buffer, resolve(call.operands[i].region), operand_label(program_, call, i));
    make_linear(buffer);
    TENON_OK(check_folds(*call.kernel, buffer), operand_label(program_, call, i));
    operands.push_back(std::move(buffer));
  }
  ++counts.calls;
  counts.elements += elements;
  return tracer_ ? trace_call(call, operands) : run_kernel(call, operands);
}

Result<void> Interpreter::trace_call(const Call& call, const std::vector<BoundBuffer>& operands) {
  TENON_OK(tracer_->call(call, operands));
  for (const bool writes : {false, true})
    for (size_t i = 0; i < operands.size(); ++i) {
      const Access access = call.operands[i].access;
      if (access == (writes ? Access::in : Access::out)) continue;
      TENON_OK(tracer_->access(stage_of(call), operands[i], writes), operand_label(program_, call, i));
    }
  return {};
}

Result<void> Interpreter::check_folds(const Kernel& kernel, const BoundBuffer& buffer) {
  for (size_t d = 0; d < buffer.dims.size() && !kernel.takes_folded; ++d)
    if (const DimView& dim = buffer.dims[d]; dim.fold > 0)
      return error(Code::unsupported, "dim ", d, ": indices ", dim.min, " .. ", dim.max(), " wrap around a ring of ",
                   dim.fold, ", and kernel '", kernel.name, "' takes no folded buffers");
  return {};
}

Result<void> Interpreter::run_kernel(const Call& call, const std::vector<BoundBuffer>& operands) {
  std::vector<BufferView> views;
  for (const BoundBuffer& b : operands) views.push_back(b.view());
  std::vector<int64_t> scalars;
  for (const Expr& e : call.scalars) {
    TENON_TRY(value, evaluate(e), "scalar ", scalars.size());
    scalars.push_back(value);
  }
  CallContext context{views, scalars, stage_of(call), worker_};
  return options_.contract ? call_checked(program_, call, context) : call.kernel->run(context);
}

// Copies --------------------------------------------------------------------------------------------------------

Result<void> Interpreter::run(const Copy& copy) {
  TENON_TRY(ready, prepare(copy), "copy '", stage_of(copy), "'");
  if (!ready) return {};
  if (tracer_) return trace_copy(*ready);
  TENON_OK(ready->run(), "copy '", stage_of(copy), "'");
  return {};
}

Result<void> Interpreter::trace_copy(const ReadyCopy& ready) {
  TENON_OK(tracer_->copy(*ready.copy, ready.destination, ready.source, ready.symbols));
  for (const BoundBuffer& source : sources_of(ready)) TENON_OK(tracer_->access(stage_of(*ready.copy), source, false));
  return tracer_->access(stage_of(*ready.copy), ready.destination, true);
}

std::vector<BoundBuffer> Interpreter::sources_of(const ReadyCopy& ready) {
  std::vector<BoundBuffer> sources{ready.source};
  if (ready.padding) sources.push_back(*ready.padding);
  return sources;
}

Result<std::optional<ReadyCopy>> Interpreter::prepare(const Copy& copy) {
  TENON_TRY(destination, resolve(copy.destination), "the destination");
  TENON_TRY(wanted, evaluate(copy.predicate), "the predicate");
  StageStatistics& counts = counts_.copy(stage_label(stage_of(copy), {name_of(destination.memory->root)}));
  if (destination.view().empty() || wanted == 0) {
    ++counts.skipped;
    return std::optional<ReadyCopy>();
  }
  ReadyCopy ready{&copy, destination, {}, {}, {}};
  TENON_TRY(source, resolve(copy.source), "the source");
  ready.source = std::move(source);
  if (const Region* region = std::get_if<Region>(&copy.padding)) {
    TENON_TRY(padding, resolve(*region), "the padding");
    ready.padding = std::move(padding);
  }
  TENON_TRY(symbols, free_symbols(copy), "the map");
  ready.symbols = std::move(symbols);
  ++counts.calls;
  counts.elements += destination.view().elements();
  return std::optional<ReadyCopy>(std::move(ready));
}

Result<SymbolValues> Interpreter::free_symbols(const Copy& copy) {
  SymbolValues values;
  for (const Expr& e : copy.map)
    for (const std::string& name : e.symbols()) {
      if (std::find(copy.indices.begin(), copy.indices.end(), name) != copy.indices.end()) continue;
      TENON_TRY(value, value_of(name));
      values[name] = value;
    }
  return values;
}

// Transfers -----------------------------------------------------------------------------------------------------

Result<void> Interpreter::run(const DmaStart& start) {
  TENON_TRY(ready, prepare(start.copy), "dma '", token_of(start.token), "'");
  // An empty transfer still is one for its wait.
  PendingTransfer transfer{ready ? *std::move(ready) : ReadyCopy{}, !ready};
  if (tracer_) TENON_OK(trace_start(start.token, transfer), "dma '", token_of(start.token), "'");
  if (options_.seed == 0 && !transfer.done) {
    TENON_OK(transfer.copy.run(), "dma '", token_of(start.token), "'");
    transfer.done = true;
  }
  queues_[static_cast<size_t>(start.token)].push_back(std::move(transfer));
  return {};
}

Result<void> Interpreter::trace_start(TokenId token, PendingTransfer& transfer) {
  const bool empty = std::exchange(transfer.done, true);
  if (empty) return tracer_->start(token, BoundBuffer{}, {});
  return tracer_->start(token, transfer.copy.destination, sources_of(transfer.copy));
}

Result<void> Interpreter::run(const DmaWait& wait) {
  if (tracer_) tracer_->wait(wait.token);
  auto& queue = queues_[static_cast<size_t>(wait.token)];
  if (queue.empty())
    return error(Code::invalid_argument, "wait '", token_of(wait.token),
                 "': no transfer of this token is under way here");
  TENON_OK(finish(queue.front(), wait.token));
  queue.pop_front();
  return {};
}

Result<void> Interpreter::finish(PendingTransfer& transfer, TokenId token) {
  if (std::exchange(transfer.done, true)) return {};
  TENON_OK(transfer.copy.run(), "dma '", token_of(token), "'");
  return {};
}

Result<void> Interpreter::transfer_some() {
  if (options_.seed == 0) return {};
  for (size_t token = 0; token < queues_.size(); ++token)
    for (PendingTransfer& t : queues_[token])
      if (!t.done && random_() % 4 == 0) TENON_OK(finish(t, static_cast<TokenId>(token)));
  return {};
}

Result<void> Interpreter::check_queues_empty(const std::string& where) {
  for (size_t token = 0; token < queues_.size(); ++token)
    if (!queues_[token].empty())
      return error(Code::invalid_argument, "at the end of ", where, ", ", queues_[token].size(),
                   " transfers of token '", program_.tokens[token], "' have not been waited for");
  return {};
}

}  // namespace tenon::program::detail
