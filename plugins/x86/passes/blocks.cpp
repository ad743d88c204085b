// Blocks of columns beyond the caches: how many columns a block has, and what is prefetched. The first sweep over a
// block waits for memory, the later ones for arithmetic. While the second sweep runs, the lines of the next block are
// prefetched; where no second sweep reads them, while the first one runs.
#include <algorithm>
#include <map>
#include <set>

#include "x86/names.hpp"
#include "x86/passes/internal.hpp"

namespace tenon::x86 {
namespace {

class BlockFetcher {
 public:
  explicit BlockFetcher(LinearKernel& kernel) : kernel_(kernel), ports_(ports_of(kernel)) {}

  void run() {
    std::vector<Instruction> old = std::move(kernel_.body);
    walk(old, [](Instruction&) {});
    for (const auto& [port, sweeps] : std::exchange(sweeps_, {}))
      fetching_[port] = kernel_.blocks.inside ? std::min<size_t>(sweeps.size(), 2) : 2;
    kernel_.body.clear();
    kernel_.body.reserve(old.size() + 32);
    walk(old, [&](Instruction& one) { kernel_.body.push_back(std::move(one)); });
  }

 private:
  template <class Then>
  void walk(std::vector<Instruction>& body, Then then) {
    for (Instruction& one : body) {
      if (one.op == kLoopBegin) begin(static_cast<LoopId>(one.number));
      if (in_rows_ && one.memory && one.memory->index == counter_) see(one);
      if (one.op == kLoopEnd) end(one.label);
      then(one);
    }
  }

  const Loop& of(LoopId id) const { return kernel_.loops[static_cast<size_t>(id)]; }

  void begin(LoopId id) {
    open_.push_back(id);
    const bool row = open_.size() > 1 && of(id).kind == Loop::Kind::vector && of(open_[open_.size() - 2]).increment > 1;
    in_rows_ = row && of(open_[open_.size() - 2]).kind == Loop::Kind::scalar && goes_on();
    counter_ = of(id).counter;
    stretches_.clear();
  }

  // Whether there is a next block: the code after the loop over blocks is for the last one.
  bool goes_on() const {
    const auto is_of_blocks = [&](LoopId id) { return of(id).dim == kernel_.blocks.count(); };
    return !kernel_.blocks.inside || std::ranges::any_of(open_, is_of_blocks);
  }

  bool moves(const Loop& rows, int port) const {
    return std::ranges::any_of(
        rows.shifts, [&](const Loop::Shift& shift) { return ports_[static_cast<size_t>(shift.pointer)] == port; });
  }

  // A load of data that an earlier sweep has read.
  void see(const Instruction& one) {
    const int port = ports_[static_cast<size_t>(one.memory->base)];
    if (port < 0 || one.touched != Lanes::full || !reads_memory(one)) return;
    const LoopId sweep = open_[open_.size() - 2];
    if (!moves(of(sweep), port)) return;  // data shared by all rows stay in a near cache
    std::vector<LoopId>& sweeps = sweeps_[port];
    if (sweeps.empty() || sweeps.back() != sweep) sweeps.push_back(sweep);
    if (const auto at = fetching_.find(port); at != fetching_.end() && sweeps.size() == at->second)
      stretches_.add(kernel_, one);
  }

  void end(int label) {
    const int64_t ahead = kernel_.blocks.sizes.front().elements;
    for (const Stretches::Touched& touched : stretches_.touched())
      touched.write(kPrefetchRead, ahead * touched.memory.element.bits() / 8, label, kernel_.body);
    stretches_.clear();
    in_rows_ = false;
    open_.pop_back();
  }

  LinearKernel& kernel_;
  const std::vector<int> ports_;
  std::vector<LoopId> open_;
  bool in_rows_ = false;                       // the innermost loop traverses several rows of columns
  RegisterId counter_ = -1;                    // of it
  Stretches stretches_;                        // its accesses that are to be prefetched for the next block
  std::map<int, std::vector<LoopId>> sweeps_;  // the loops over rows that read each tensor, so far
  std::map<int, size_t> fetching_;             // the number of the sweep that prefetches, from 1
};

// For blocks whose rows are read once: prefetches the rows of two iterations later, through pointers of their own.
class RowsAheadFetcher {
 public:
  explicit RowsAheadFetcher(LinearKernel& kernel) : kernel_(kernel), ports_(ports_of(kernel)) {
    for (const Instruction& one : kernel.body)
      if (one.memory && writes_memory(one.op)) written_.insert(port_of(one));
  }

  void run() {
    std::vector<Instruction> old = std::move(kernel_.body);
    kernel_.body.clear();
    kernel_.body.reserve(old.size() + 32);
    for (Instruction& one : old) {
      if (one.op == kLoopEnd && reads(one)) fetch(one.label);
      kernel_.body.push_back(std::move(one));
      if (kernel_.body.back().op == kLoopBegin) begin(kernel_.loops[static_cast<size_t>(kernel_.body.back().number)]);
      if (const Instruction& last = kernel_.body.back(); vector_ && last.memory) see(last);
    }
  }

 private:
  int port_of(const Instruction& one) const { return ports_[static_cast<size_t>(one.memory->base)]; }
  bool reads(const Instruction& end) const { return vector_ && end.in[0] == vector_->counter; }

  void begin(const Loop& loop) {
    const bool inside = rows_ && loop.kind == Loop::Kind::vector;
    if (!inside) rows_ = loop.kind == Loop::Kind::scalar && loop.increment > 1 ? &loop : nullptr;
    if (inside && !vector_) at_ = kernel_.body.size() - 1;
    vector_ = inside ? &loop : nullptr;
    stretches_.clear();
  }

  void see(const Instruction& one) {
    if (reads_memory(one) && one.touched == Lanes::full && one.memory->index == vector_->counter &&
        step_of(port_of(one)) >= 0 && !written_.contains(port_of(one)))
      stretches_.add(kernel_, one);
  }

  // The param by which the loop over rows advances pointers into `port`; -1: it does not.
  snippet::ParamId step_of(int port) const {
    const auto moves = [&](const Loop::Shift& shift) { return ports_[static_cast<size_t>(shift.pointer)] == port; };
    const auto found = std::ranges::find_if(rows_->shifts, moves);
    return port < 0 || found == rows_->shifts.end() ? -1 : found->each;
  }

  void fetch(int label) {
    std::vector<Instruction> steps;
    for (Stretches::Touched touched : stretches_.touched()) {
      const RegisterId row = touched.memory.base, ahead = kernel_.add_general();
      const snippet::ParamId step = step_of(ports_[static_cast<size_t>(row)]);
      steps.push_back({.op = "AddParameter", .in = {row}, .out = {ahead}, .number = step});
      steps.push_back({.op = "AddParameter", .in = {ahead}, .out = {ahead}, .number = step});
      touched.memory.base = ahead;
      touched.write(kPrefetchRead, 0, label, kernel_.body);
    }
    kernel_.body.insert(kernel_.body.begin() + static_cast<std::ptrdiff_t>(at_), steps.begin(), steps.end());
    vector_ = nullptr;
  }

  LinearKernel& kernel_;
  const std::vector<int> ports_;
  std::set<int> written_;
  const Loop *rows_ = nullptr, *vector_ = nullptr;  // the loop over several rows, and the vector loop in it
  size_t at_ = 0;                                   // where the latter begins
  Stretches stretches_;                             // its reads of tensors
};

}  // namespace

// Sets the block sizes of the options. For blocks that are sequential in the kernel and rows that are read again: 512
// columns, or 256, as long as all of their rows take half of the cache. Otherwise, and for rows that are read once, as
// many columns as scratch rows of a sixteenth of the cache hold; where each row has scratch memory of its own, as few
// as a tile has. What is read once and stored one block behind leaves half of the last-level cache to others; with
// fewer than 256 columns it is slower than reading again.
void size_blocks(LinearKernel& kernel, const PassOptions& options) {
  const int64_t cache_bytes = options.block_cache_bytes, last_cache_bytes = options.last_cache_bytes;
  constexpr int64_t kMost = 512, kLeast = 256;
  const bool once = kernel.blocks.inside && kernel.merged;
  std::vector<LinearKernel::Blocks::Size>& sizes = kernel.blocks.sizes;
  sizes.clear();
  if (options.block_columns > 0 && kernel.blocks.again && kernel.blocks.inside && !once) {
    sizes = {{options.block_columns, cache_bytes / 8 * 5}, {options.block_columns}};
    return;
  }
  for (int64_t columns = kMost; kernel.blocks.again && columns >= (once ? kMost : kLeast); columns /= 2)
    sizes.push_back({columns, kernel.blocks.inside ? cache_bytes / 8 * 5 : cache_bytes / 2});
  if (once && last_cache_bytes > 0) sizes.push_back({kLeast, last_cache_bytes / 2});
  int64_t column_bytes = 0;
  bool of_each_row = false;
  for (const LinearKernel::Scratch& scratch : kernel.scratch) {
    of_each_row |= (scratch.dims & ~(uint32_t{1} << kernel.blocks.dim)) != 0;
    column_bytes += scratch.element.bits() / 8;
  }
  const int64_t held = cache_bytes / 16 / std::max<int64_t>(column_bytes, 1) / snippet::kLineElements;
  sizes.push_back({of_each_row ? kLeast : std::max(kMost, held * snippet::kLineElements)});
}

void prefetch_blocks(LinearKernel& kernel) {
  if (kernel.blocks.again) BlockFetcher(kernel).run();
}

void fetch_rows_ahead(LinearKernel& kernel) { RowsAheadFetcher(kernel).run(); }

}  // namespace tenon::x86
