#include <tenon/program/exec/interpreter.hpp>

#include <algorithm>
#include <deque>
#include <numeric>
#include <random>
#include <unordered_map>

#include <tenon/program/exec/arguments_internal.hpp>
#include <tenon/program/exec/buffers_internal.hpp>
#include <tenon/program/exec/contract.hpp>
#include <tenon/program/exec/copy_reference_internal.hpp>
#include <tenon/program/exec/locals_internal.hpp>
#include <tenon/program/exec/statistics_internal.hpp>
#include <tenon/program/exec/tracer_internal.hpp>
#include <tenon/program/labels.hpp>

namespace tenon::program {
namespace {

using namespace detail;

// A copy with what its expressions and buffers were where it was reached.
struct ReadyCopy {
  const Copy* copy;
  BoundBuffer destination, source;
  std::optional<BoundBuffer> padding;
  SymbolValues symbols;

  Result<void> run() const {
    const BufferView pad = padding ? padding->view() : BufferView{};
    return copy_reference(*copy, destination.view(), source.view(), padding ? &pad : nullptr, symbols);
  }
};

struct Transfer {
  ReadyCopy copy;
  bool done = false;
};

class Interpreter {
 public:
  // With a tracer: kernels, copies and transfers are not run.
  Interpreter(const Program& program, const InterpretOptions& options, RunStatistics* statistics,
              Tracer* tracer = nullptr)
      : program_(program),
        options_(options),
        tracer_(tracer),
        counts_(statistics),
        random_(options.seed),
        buffers_(program.buffers.size()),
        queues_(program.tokens.size()) {}

  Result<void> run(const Arguments& arguments) {
    TENON_OK(check_arguments(program_, arguments));
    symbols_ = arguments.scalars;
    symbols_[std::string(kThreadsSymbol)] = std::max<int64_t>(options_.threads, 1);
    for (size_t id = 0; id < buffers_.size(); ++id) {
      const Buffer& declared = program_.buffers[id];
      if (declared.role != Role::local)
        buffers_[id] =
            bind_argument(declared, static_cast<BufferId>(id), arguments.buffers.find(declared.name)->second);
    }
    TENON_OK(run_outermost(), "program '", program_.name, "'");
    return check_queues_empty("the program");
  }

 private:
  using Saved = std::optional<BoundBuffer>;

  // Locals live from the statement that names them first.
  Result<void> run_outermost() {
    const auto locals = locals_by_first_use(program_);
    for (size_t i = 0; i < locals.size(); ++i) {
      for (const Allocation* a : locals[i]) {
        TENON_TRY(buffer, allocate(*a), "local '", name_of(a->buffer), "'");
        buffers_[static_cast<size_t>(a->buffer)] = std::move(buffer);
      }
      TENON_OK(run(outermost(program_)[i]));
    }
    for (const Allocation& a : program_.locals)
      if (const Saved& local = buffers_[static_cast<size_t>(a.buffer)]; local && !local->memory->freed)
        TENON_OK(free(*local->memory));
    return {};
  }

  Result<void> run(const Statement& statement) {
    if (statement.empty()) return {};
    TENON_OK(transfer_some());
    return statement.visit([this](const auto& s) { return run(s); });
  }

  // Expressions -----------------------------------------------------------------------------------------------

  Result<int64_t> evaluate(const Expr& e) {
    if (e.is_constant()) return e.constant();
    auto known = symbols_of_.find(e);
    if (known == symbols_of_.end()) known = symbols_of_.emplace(e, e.symbols()).first;
    TENON_TRY(values, values_of(known->second));
    return e.evaluate(values);
  }

  Result<SymbolValues> values_of(const std::vector<std::string>& names) {
    SymbolValues values;
    for (const std::string& name : names) {
      TENON_TRY(value, value_of(name));
      values.emplace(name, value);
    }
    return values;
  }

  Result<int64_t> value_of(const std::string& name) {
    if (const auto it = symbols_.find(name); it != symbols_.end()) return it->second;
    const auto meta = parse_meta(name);
    const auto id = meta ? program_.find_buffer(meta->buffer) : std::nullopt;
    if (!id) return error(Code::not_found, "the symbol ", name, " has no value here");
    TENON_TRY(buffer, lookup(*id));
    if (static_cast<size_t>(meta->dim) >= buffer->dims.size())
      return error(Code::invalid_argument, "the symbol ", name, ": the buffer has ", buffer->dims.size(), " dims");
    const DimView& d = buffer->dims[static_cast<size_t>(meta->dim)];
    switch (meta->meta) {
      case Meta::min: return d.min;
      case Meta::extent: return d.extent;
      case Meta::stride: return d.stride;
      case Meta::fold: return d.fold;
    }
    return error(Code::internal, "unknown metadata");
  }

  Result<RangeNumbers> evaluate(const Range& range) {
    TENON_TRY(min, evaluate(range.min));
    TENON_TRY(extent, evaluate(range.extent));
    return RangeNumbers{min, extent};
  }

  Result<std::vector<DimView>> evaluate(const std::vector<Dim>& dims, ElementType element) {
    std::vector<DimNumbers> numbers;
    for (const Dim& dim : dims) {
      DimNumbers& n = numbers.emplace_back();
      TENON_TRY(range, evaluate(Range{dim.min, dim.extent}));
      n.min = range.min;
      n.extent = range.extent;
      if (dim.stride) {
        TENON_TRY(stride, evaluate(*dim.stride));
        n.stride = stride;
      }
      if (dim.fold) {
        TENON_TRY(fold, evaluate(*dim.fold));
        n.fold = fold;
      }
    }
    return make_dims(numbers, element);
  }

  // Buffers ---------------------------------------------------------------------------------------------------

  Result<const BoundBuffer*> lookup(BufferId id) {
    const Saved& buffer = buffers_[static_cast<size_t>(id)];
    if (!buffer) return error(Code::invalid_argument, "buffer '", name_of(id), "' is not visible here");
    if (buffer->memory->freed) return error(Code::invalid_argument, "buffer '", name_of(id), "' is used after its end");
    return &*buffer;
  }

  // The box of a region, in the slot of the worker that is running.
  Result<BoundBuffer> resolve(const Region& region) {
    TENON_TRY(found, lookup(region.buffer));
    BoundBuffer buffer = *found;
    for (size_t d = 0; d < region.box.size(); ++d) {
      TENON_TRY(range, evaluate(region.box[d]));
      const DimView dim = buffer.dims[d];
      if (range.extent > 0 && (range.min < dim.min || range.min - dim.min > dim.extent - range.extent))
        return error(Code::invalid_argument, "dim ", d, ": the box has ", range.extent, " indices from ", range.min,
                     " on, the buffer '", name_of(region.buffer), "' has ", dim.extent, " from ", dim.min, " on");
      crop_dim(buffer, d, range);
    }
    if (buffer.memory->slots > 1) {
      if (worker_ >= buffer.memory->slots)
        return error(Code::invalid_argument, "worker ", worker_, " uses '", name_of(buffer.memory->root),
                     "', which has ", buffer.memory->slots, " slots");
      buffer.base += worker_ * buffer.memory->bytes;
    }
    TENON_OK(check_memory(region.buffer, buffer));
    return buffer;
  }

  // A general view may say anything: here it shows whether it stays in its memory.
  Result<void> check_memory(BufferId id, const BoundBuffer& buffer) {
    const Spread spread = spread_of_box(buffer.view());
    const MemoryBlock& memory = *buffer.memory;
    const int64_t base = buffer.base - memory.begin - (memory.slots > 1 ? worker_ * memory.bytes : 0);
    if (spread.bytes() == 0 || (base + spread.low >= 0 && base + spread.high <= memory.bytes)) return {};
    return error(Code::invalid_argument, "buffer '", name_of(id), "' reaches from byte ", base + spread.low, " to ",
                 base + spread.high, " of '", name_of(memory.root), "', which has ", memory.bytes);
  }

  const std::string& name_of(BufferId id) const { return program_.buffer(id).name; }

  Result<void> run_with(BufferId id, BoundBuffer buffer, const Statement& body) {
    Saved& place = buffers_[static_cast<size_t>(id)];
    Saved before = std::exchange(place, std::move(buffer));
    auto result = run(body);
    buffers_[static_cast<size_t>(id)] = std::move(before);
    return result;
  }

  // Statements ------------------------------------------------------------------------------------------------

  Result<void> run(const Block& block) {
    for (const Statement& s : block.statements) TENON_OK(run(s));
    return {};
  }

  Result<void> run(const Let& let) {
    TENON_TRY(value, evaluate(let.value), "let ", let.symbol);
    symbols_[let.symbol] = value;
    auto result = run(let.body);
    symbols_.erase(let.symbol);
    return result;
  }

  Result<void> run(const Allocate& allocate) {
    const Allocation& a = allocate.allocation;
    TENON_TRY(buffer, this->allocate(a), "allocate '", name_of(a.buffer), "'");
    const std::shared_ptr<MemoryBlock> memory = buffer.memory;
    auto result = run_with(a.buffer, std::move(buffer), allocate.body);
    TENON_OK(std::move(result));
    if (!memory->freed) return free(*memory);
    return {};
  }

  Result<BoundBuffer> allocate(const Allocation& a) {
    TENON_TRY(buffer, make(a));
    const MemoryBlock& memory = *buffer.memory;
    const bool on_stack = is_on_stack(a.placement, memory.bytes * memory.slots, options_.stack_bytes);
    counts_.allocate(memory.bytes * memory.slots, on_stack);
    on_stack_[&memory] = on_stack;
    return buffer;
  }

  Result<BoundBuffer> make(const Allocation& a) {
    const ElementType element = program_.buffer(a.buffer).element;
    BoundBuffer buffer{nullptr, {}, element, std::make_shared<MemoryBlock>()};
    TENON_TRY(dims, evaluate(a.dims, element));
    TENON_TRY(spread, spread_of(dims, element));
    TENON_TRY(slots, evaluate(a.slots));
    const int64_t limit = static_cast<int64_t>(tensor_bytes_limit());
    if (slots < 1 || spread.bytes() > limit / slots)
      return error(Code::resource_exhausted, slots, " slots of ", spread.bytes(),
                   " bytes: at least one slot, and at most ", limit, " bytes (TENON_TENSOR_LIMIT)");
    const size_t bytes = static_cast<size_t>(spread.bytes() * slots);
    TENON_TRY(owned, allocate_aligned(bytes, a.align_bytes > 0 ? static_cast<size_t>(a.align_bytes) : kAlignBytes));
    if (!tracer_) std::fill_n(owned.get(), bytes, kUndefined);
    *buffer.memory = {std::move(owned), nullptr, spread.bytes(), slots, a.buffer, false};
    buffer.memory->begin = buffer.memory->owned.get();
    buffer.base = buffer.memory->begin - spread.low;
    buffer.dims = std::move(dims);
    return buffer;
  }

  Result<void> run(const Free& f) {
    TENON_TRY(buffer, lookup(f.buffer), "free '", name_of(f.buffer), "'");
    return free(*buffer->memory);
  }

  Result<void> free(MemoryBlock& memory) {
    for (size_t token = 0; token < queues_.size(); ++token)
      for (const Transfer& t : queues_[token])
        if (t.copy.destination.memory.get() == &memory || t.copy.source.memory.get() == &memory ||
            (t.copy.padding && t.copy.padding->memory.get() == &memory))
          return error(Code::invalid_argument, "'", name_of(memory.root), "' is freed while a transfer of token '",
                       program_.tokens[token], "' is under way: wait for it before");
    memory.freed = true;
    if (tracer_) memory.owned.reset();  // a tracer may keep the block, for its name
    counts_.free(memory.bytes * memory.slots, on_stack_[&memory]);
    on_stack_.erase(&memory);
    return {};
  }

  Result<void> run(const Crop& crop) {
    TENON_TRY(source, lookup(crop.source), "crop '", name_of(crop.buffer), "'");
    BoundBuffer buffer = *source;
    for (size_t d = 0; d < crop.box.size(); ++d) {
      if (!crop.box[d]) continue;
      TENON_TRY(range, evaluate(*crop.box[d]), "crop '", name_of(crop.buffer), "', dim ", d);
      crop_dim(buffer, d, range);
    }
    return run_with(crop.buffer, std::move(buffer), crop.body);
  }

  Result<void> run(const Slice& slice) {
    TENON_TRY(source, lookup(slice.source), "slice '", name_of(slice.buffer), "'");
    BoundBuffer buffer = *source;
    for (size_t d = slice.at.size(); d-- > 0;) {
      if (!slice.at[d]) continue;
      TENON_TRY(index, evaluate(*slice.at[d]), "slice '", name_of(slice.buffer), "', dim ", d);
      const DimView& dim = buffer.dims[d];
      if (index < dim.min || index > dim.max())
        return error(Code::invalid_argument, "slice '", name_of(slice.buffer), "', dim ", d, ": index ", index,
                     " is outside of ", dim.min, " .. ", dim.max(), " of '", name_of(slice.source), "'");
      slice_dim(buffer, d, index);
    }
    return run_with(slice.buffer, std::move(buffer), slice.body);
  }

  Result<void> run(const Transpose& transpose) {
    TENON_TRY(source, lookup(transpose.source), "transpose '", name_of(transpose.buffer), "'");
    BoundBuffer buffer = *source;
    buffer.dims.clear();
    std::vector<bool> taken(source->dims.size());
    for (const int d : transpose.order) {
      buffer.dims.push_back(source->dims[static_cast<size_t>(d)]);
      taken[static_cast<size_t>(d)] = true;
    }
    for (size_t d = 0; d < taken.size(); ++d)
      if (!taken[d]) buffer.base += source->dims[d].place(source->dims[d].min) * source->dims[d].stride;
    return run_with(transpose.buffer, std::move(buffer), transpose.body);
  }

  Result<void> run(const View& view) {
    TENON_TRY(source, lookup(view.source), "view '", name_of(view.buffer), "'");
    BoundBuffer buffer = *source;
    TENON_TRY(offset, evaluate(view.offset), "view '", name_of(view.buffer), "'");
    TENON_TRY(dims, evaluate(view.dims, program_.buffer(view.buffer).element), "view '", name_of(view.buffer), "'");
    buffer.base += offset;
    buffer.dims = std::move(dims);
    buffer.element = program_.buffer(view.buffer).element;
    return run_with(view.buffer, std::move(buffer), view.body);
  }

  Result<void> run(const Check& check) {
    TENON_TRY(holds, evaluate(check.condition), "a check");
    if (holds) return {};
    return error(Code::invalid_argument, check.message, " (", check.condition, " is 0)");
  }

  // Loops -----------------------------------------------------------------------------------------------------

  Result<void> run(const Loop& loop) {
    TENON_TRY(begin, evaluate(loop.begin), "the begin of loop ", loop.symbol);
    TENON_TRY(end, evaluate(loop.end), "the end of loop ", loop.symbol);
    TENON_TRY(step, evaluate(loop.step), "the step of loop ", loop.symbol);
    TENON_TRY(limit, evaluate(loop.workers), "the workers of loop ", loop.symbol);
    if (step < 1)
      return error(Code::invalid_argument, "loop ", loop.symbol, " has step ", step, ", at least 1 is needed");
    if (begin >= end) return {};
    const int64_t iterations = iteration_count(begin, end, step);
    const int64_t workers = workers_of(loop, limit, options_.threads, iterations, of_workers_ != nullptr);
    if (loop.kind != LoopKind::serial && limit > 1) counts_.enter_parallel();
    const Loop* const around = pipelined_;
    if (loop.kind == LoopKind::pipelined) pipelined_ = &loop;
    auto result = workers == 1 ? run_in_order(loop, begin, step, iterations)
                               : run_by_workers(loop, begin, step, iterations, workers);
    pipelined_ = around;
    return result;
  }

  Result<void> run_in_order(const Loop& loop, int64_t begin, int64_t step, int64_t iterations) {
    for (int64_t i = 0; i < iterations; ++i) TENON_OK(run_iteration(loop, begin + i * step));
    return {};
  }

  Result<void> run_by_workers(const Loop& loop, int64_t begin, int64_t step, int64_t iterations, int64_t workers) {
    std::vector<int64_t> order(static_cast<size_t>(iterations));
    std::iota(order.begin(), order.end(), 0);
    // Each worker takes iterations in ascending order; which worker takes how many is what chance decides.
    std::vector<int64_t> worker_of(order.size());
    for (size_t i = 0; i < order.size(); ++i) worker_of[i] = static_cast<int64_t>(i) % workers;
    if (options_.seed != 0 && loop.kind == LoopKind::parallel)
      std::stable_sort(order.begin(), order.end(), [&, rank = worker_ranks(workers)](int64_t a, int64_t b) {
        return rank[static_cast<size_t>(a % workers)] < rank[static_cast<size_t>(b % workers)];
      });
    of_workers_ = &loop;
    if (tracer_) tracer_->enter(loop, workers);
    Result<void> result;
    for (size_t i = 0; i < order.size() && result.ok(); ++i) {
      worker_ = worker_of[static_cast<size_t>(order[i])];
      auto outer_queues = std::exchange(queues_, std::vector<std::deque<Transfer>>(queues_.size()));
      if (tracer_) result = tracer_->begin(order[i], begin + order[i] * step);
      if (result.ok()) result = run_iteration(loop, begin + order[i] * step);
      if (result.ok() && tracer_) result = tracer_->end();
      if (result.ok()) result = check_queues_empty(str("the iteration ", loop.symbol, " = ", begin + order[i] * step));
      queues_ = std::move(outer_queues);
    }
    of_workers_ = nullptr;
    worker_ = 0;
    if (tracer_) tracer_->leave();
    return result;
  }

  std::vector<int64_t> worker_ranks(int64_t workers) {
    std::vector<int64_t> ranks(static_cast<size_t>(workers));
    std::iota(ranks.begin(), ranks.end(), 0);
    std::shuffle(ranks.begin(), ranks.end(), random_);
    return ranks;
  }

  Result<void> run_iteration(const Loop& loop, int64_t value) {
    counts_.iteration();
    symbols_[loop.symbol] = value;
    auto result = run(loop.body);
    symbols_.erase(loop.symbol);
    TENON_OK(std::move(result), "loop ", loop.symbol, " = ", value);
    return {};
  }

  // One iteration at a time, in order where that matters: all earlier stages are done.
  Result<void> run(const Signal& s) {
    if (tracer_ && speaks_to_workers()) tracer_->signal(s.stage);
    return {};
  }
  Result<void> run(const Await& s) {
    if (tracer_ && speaks_to_workers()) tracer_->await(s.stage);
    return {};
  }
  // Those of a pipelined loop that has one worker order nothing: least of all iterations of the loop around it.
  bool speaks_to_workers() const { return pipelined_ != nullptr && pipelined_ == of_workers_; }

  // Calls and copies ------------------------------------------------------------------------------------------

  Result<void> run(const Call& call) {
    auto result = run_call(call);
    TENON_OK(std::move(result), "call '", stage_of(call), "'");
    return {};
  }

  Result<void> run_call(const Call& call) {
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

  Result<void> trace_call(const Call& call, const std::vector<BoundBuffer>& operands) {
    for (const bool writes : {false, true})
      for (size_t i = 0; i < operands.size(); ++i) {
        const Access access = call.operands[i].access;
        if (access == (writes ? Access::in : Access::out)) continue;
        TENON_OK(tracer_->access(stage_of(call), operands[i], writes), operand_label(program_, call, i));
      }
    return {};
  }

  static Result<void> check_folds(const Kernel& kernel, const BoundBuffer& buffer) {
    for (size_t d = 0; d < buffer.dims.size() && !kernel.takes_folded; ++d)
      if (const DimView& dim = buffer.dims[d]; dim.fold > 0)
        return error(Code::unsupported, "dim ", d, ": indices ", dim.min, " .. ", dim.max(), " wrap around a ring of ",
                     dim.fold, ", and kernel '", kernel.name, "' takes no folded buffers");
    return {};
  }

  Result<void> run_kernel(const Call& call, const std::vector<BoundBuffer>& operands) {
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

  Result<void> run(const Copy& copy) {
    TENON_TRY(ready, prepare(copy), "copy '", stage_of(copy), "'");
    if (!ready) return {};
    if (tracer_) return trace_copy(*ready);
    TENON_OK(ready->run(), "copy '", stage_of(copy), "'");
    return {};
  }

  Result<void> trace_copy(const ReadyCopy& ready) {
    for (const BoundBuffer& source : sources_of(ready)) TENON_OK(tracer_->access(stage_of(*ready.copy), source, false));
    return tracer_->access(stage_of(*ready.copy), ready.destination, true);
  }
  static std::vector<BoundBuffer> sources_of(const ReadyCopy& ready) {
    std::vector<BoundBuffer> sources{ready.source};
    if (ready.padding) sources.push_back(*ready.padding);
    return sources;
  }

  // Nothing when there is nothing to do.
  Result<std::optional<ReadyCopy>> prepare(const Copy& copy) {
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

  Result<SymbolValues> free_symbols(const Copy& copy) {
    SymbolValues values;
    for (const Expr& e : copy.map)
      for (const std::string& name : e.symbols()) {
        if (std::find(copy.indices.begin(), copy.indices.end(), name) != copy.indices.end()) continue;
        TENON_TRY(value, value_of(name));
        values[name] = value;
      }
    return values;
  }

  // Transfers -------------------------------------------------------------------------------------------------

  Result<void> run(const DmaStart& start) {
    TENON_TRY(ready, prepare(start.copy), "dma '", token_of(start.token), "'");
    // A transfer of nothing is still one that the wait ends.
    Transfer transfer{ready ? *std::move(ready) : ReadyCopy{}, !ready};
    if (tracer_) TENON_OK(trace_start(start.token, transfer), "dma '", token_of(start.token), "'");
    if (options_.seed == 0 && !transfer.done) {
      TENON_OK(transfer.copy.run(), "dma '", token_of(start.token), "'");
      transfer.done = true;
    }
    queues_[static_cast<size_t>(start.token)].push_back(std::move(transfer));
    return {};
  }

  Result<void> trace_start(TokenId token, Transfer& transfer) {
    const bool empty = std::exchange(transfer.done, true);
    if (empty) return tracer_->start(token, BoundBuffer{}, {});
    return tracer_->start(token, transfer.copy.destination, sources_of(transfer.copy));
  }

  Result<void> run(const DmaWait& wait) {
    if (tracer_) tracer_->wait(wait.token);
    auto& queue = queues_[static_cast<size_t>(wait.token)];
    if (queue.empty())
      return error(Code::invalid_argument, "wait '", token_of(wait.token),
                   "': no transfer of this token is under way here");
    TENON_OK(finish(queue.front(), wait.token));
    queue.pop_front();
    return {};
  }

  Result<void> finish(Transfer& transfer, TokenId token) {
    if (std::exchange(transfer.done, true)) return {};
    TENON_OK(transfer.copy.run(), "dma '", token_of(token), "'");
    return {};
  }

  // With a seed: before each statement any transfer may happen.
  Result<void> transfer_some() {
    if (options_.seed == 0) return {};
    for (size_t token = 0; token < queues_.size(); ++token)
      for (Transfer& t : queues_[token])
        if (!t.done && random_() % 4 == 0) TENON_OK(finish(t, static_cast<TokenId>(token)));
    return {};
  }

  Result<void> check_queues_empty(const std::string& where) {
    for (size_t token = 0; token < queues_.size(); ++token)
      if (!queues_[token].empty())
        return error(Code::invalid_argument, "at the end of ", where, ", ", queues_[token].size(),
                     " transfers of token '", program_.tokens[token], "' have not been waited for");
    return {};
  }

  const std::string& token_of(TokenId token) const { return program_.tokens[static_cast<size_t>(token)]; }

  // What memory holds before it is written: the same in each run, so that a result that depends on it is at least
  // reproducible.
  static constexpr std::byte kUndefined{0xCB};

  const Program& program_;
  const InterpretOptions& options_;
  Tracer* tracer_;
  StatisticsRecorder counts_;
  std::mt19937_64 random_;
  SymbolValues symbols_;
  std::vector<Saved> buffers_;
  std::vector<std::deque<Transfer>> queues_;
  std::unordered_map<Expr, std::vector<std::string>> symbols_of_;
  std::unordered_map<const MemoryBlock*, bool> on_stack_;
  int64_t worker_ = 0;
  const Loop* of_workers_ = nullptr;  // the loop that has several; null outside of one
  const Loop* pipelined_ = nullptr;   // the innermost pipelined loop
};

}  // namespace

Result<void> interpret(const Program& program, const Arguments& arguments, const InterpretOptions& options,
                       RunStatistics* statistics) {
  return Interpreter(program, options, statistics).run(arguments);
}

namespace detail {

Result<void> trace(const Program& program, const Arguments& shapes, int64_t threads, Tracer& tracer) {
  TENON_OK(check_shapes(program, shapes));
  // Memory that nobody touches, so that addresses are what they would be.
  Arguments arguments = shapes;
  std::vector<AlignedBytes> memory;
  for (const Buffer& declared : program.buffers) {
    if (declared.role == Role::local) continue;
    BufferArgument& argument = arguments.buffers.find(declared.name)->second;
    TENON_TRY(spread, spread_of(argument.dims, declared.element));
    TENON_TRY(bytes, allocate_aligned(static_cast<size_t>(spread.bytes())), "buffer '", declared.name, "'");
    argument.data = bytes.get() - spread.low;
    memory.push_back(std::move(bytes));
  }
  InterpretOptions options;
  options.threads = threads;
  return Interpreter(program, options, nullptr, &tracer).run(arguments);
}

}  // namespace detail
}  // namespace tenon::program
