// Inside the room: the reference interpreter.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include <tenon/program/exec/buffers_internal.hpp>
#include <tenon/program/exec/interpreter.hpp>
#include <tenon/program/exec/statistics_internal.hpp>
#include <tenon/program/exec/tracer_internal.hpp>

namespace tenon::program::detail {

// A copy with the values of its expressions and buffers at the point where it was reached.
struct ReadyCopy {
  const Copy* copy;
  BoundBuffer destination, source;
  std::optional<BoundBuffer> padding;
  SymbolValues symbols;

  Result<void> run() const;
};

struct PendingTransfer {
  ReadyCopy copy;
  bool done = false;
};

class Interpreter {
 public:
  // With a tracer: kernels, copies and transfers are not run.
  Interpreter(const Program& program, const InterpretOptions& options, RunStatistics* statistics,
              Tracer* tracer = nullptr);
  Result<void> run(const Arguments& arguments);

 private:
  using Saved = std::optional<BoundBuffer>;
  // The contents of memory before it is written: the same in each run, so that a result that depends on it is at least
  // reproducible.
  static constexpr std::byte kUndefined{0xCB};

  // Locals are live from the statement that names them first.
  Result<void> run_outermost();
  Result<void> run(const Statement& statement);

  // Expressions -----------------------------------------------------------------------------------------------

  Result<int64_t> evaluate(const Expr& e);
  Result<SymbolValues> values_of(const std::vector<std::string>& names);
  Result<int64_t> value_of(const std::string& name);
  Result<RangeNumbers> evaluate(const Range& range);
  Result<std::vector<DimView>> evaluate(const std::vector<Dim>& dims, ElementType element);

  // Buffers ---------------------------------------------------------------------------------------------------

  Result<const BoundBuffer*> lookup(BufferId id);
  // The box of a region, in the slot of the current worker.
  Result<BoundBuffer> resolve(const Region& region);
  // A general view may address anything: this checks that it stays in its memory.
  Result<void> check_memory(BufferId id, const BoundBuffer& buffer);
  const std::string& name_of(BufferId id) const { return program_.buffer(id).name; }
  Result<void> run_with(BufferId id, BoundBuffer buffer, const Statement& body);

  // Statements ------------------------------------------------------------------------------------------------

  Result<void> run(const Block& block);
  Result<void> run(const Let& let);
  Result<void> run(const Allocate& allocate);
  Result<BoundBuffer> allocate(const Allocation& a);
  Result<BoundBuffer> make(const Allocation& a);
  Result<void> run(const Free& f);
  Result<void> free(MemoryBlock& memory);
  Result<void> run(const Crop& crop);
  Result<void> run(const Slice& slice);
  Result<void> run(const Transpose& transpose);
  Result<void> run(const View& view);
  Result<void> run(const Check& check);

  // Loops -----------------------------------------------------------------------------------------------------

  Result<void> run(const Loop& loop);
  Result<void> run_in_order(const Loop& loop, int64_t begin, int64_t step, int64_t iterations);
  Result<void> run_by_workers(const Loop& loop, int64_t begin, int64_t step, int64_t iterations, int64_t workers);
  std::vector<int64_t> worker_ranks(int64_t workers);
  Result<void> run_iteration(const Loop& loop, int64_t value);
  // Iterations run one at a time, in order where that matters, so all earlier stages are done.
  Result<void> run(const Signal& s);
  Result<void> run(const Await& s);
  // Whether signals matter: those of a pipelined loop with one worker order nothing, least of all iterations of its
  // outer loop.
  bool speaks_to_workers() const { return pipelined_ != nullptr && pipelined_ == of_workers_; }

  // Calls and copies ------------------------------------------------------------------------------------------

  Result<void> run(const Call& call);
  Result<void> run_call(const Call& call);
  Result<void> trace_call(const Call& call, const std::vector<BoundBuffer>& operands);
  static Result<void> check_folds(const Kernel& kernel, const BoundBuffer& buffer);
  Result<void> run_kernel(const Call& call, const std::vector<BoundBuffer>& operands);
  Result<void> run(const Copy& copy);
  Result<void> trace_copy(const ReadyCopy& ready);
  static std::vector<BoundBuffer> sources_of(const ReadyCopy& ready);
  // Empty when there is nothing to do.
  Result<std::optional<ReadyCopy>> prepare(const Copy& copy);
  Result<SymbolValues> free_symbols(const Copy& copy);

  // Transfers -------------------------------------------------------------------------------------------------

  Result<void> run(const DmaStart& start);
  Result<void> trace_start(TokenId token, PendingTransfer& transfer);
  Result<void> run(const DmaWait& wait);
  static Result<void> run(const Prefetch&) { return {}; }  // a hint
  Result<void> finish(PendingTransfer& transfer, TokenId token);
  // With a seed: before each statement any transfer may happen.
  Result<void> transfer_some();
  Result<void> check_queues_empty(const std::string& where);
  const std::string& token_of(TokenId token) const { return program_.tokens[static_cast<size_t>(token)]; }

  const Program& program_;
  const InterpretOptions& options_;
  Tracer* tracer_;
  StatisticsRecorder counts_;
  std::mt19937_64 random_;
  SymbolValues symbols_;
  std::vector<Saved> buffers_;
  std::vector<std::deque<PendingTransfer>> queues_;
  std::unordered_map<Expr, std::vector<std::string>> symbols_of_;
  std::unordered_map<const MemoryBlock*, bool> on_stack_;
  int64_t worker_ = 0;
  const Loop* of_workers_ = nullptr;  // the enclosing loop with several workers; null outside of one
  const Loop* pipelined_ = nullptr;   // the innermost pipelined loop
};

}  // namespace tenon::program::detail
