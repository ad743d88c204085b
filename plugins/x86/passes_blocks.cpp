// Blocks of columns beyond the caches: how many columns, and what is fetched. The first sweep over a block waits for
// memory, the later ones for arithmetic: while the second runs, the next block's lines are fetched.
#include <algorithm>
#include <map>

#include "x86/passes_internal.hpp"

namespace tenon::x86 {
namespace {

const Name kBegin("LoopBegin"), kEnd("LoopEnd"), kFetch("PrefetchRead");

class BlockFetcher {
 public:
  explicit BlockFetcher(LinearKernel& kernel) : kernel_(kernel), ports_(ports_of(kernel)) {}

  void run() {
    std::vector<Instruction> old = std::move(kernel_.body);
    kernel_.body.clear();
    kernel_.body.reserve(old.size() + 32);
    for (Instruction& one : old) {
      if (one.op == kBegin) begin(static_cast<LoopId>(one.number));
      if (in_rows_ && one.memory && one.memory->index == counter_) see(one);
      if (one.op == kEnd) end(one.label);
      kernel_.body.push_back(std::move(one));
    }
  }

 private:
  const Loop& of(LoopId id) const { return kernel_.loops[static_cast<size_t>(id)]; }

  void begin(LoopId id) {
    open_.push_back(id);
    const bool row = open_.size() > 1 && of(id).kind == Loop::Kind::vector && of(open_[open_.size() - 2]).increment > 1;
    in_rows_ = row && of(open_[open_.size() - 2]).kind == Loop::Kind::scalar;
    counter_ = of(id).counter;
    stretches_.clear();
  }

  bool moves(const Loop& rows, int port) const {
    return std::ranges::any_of(
        rows.shifts, [&](const Loop::Shift& shift) { return ports_[static_cast<size_t>(shift.pointer)] == port; });
  }

  // A load of what an earlier sweep has read.
  void see(const Instruction& one) {
    const int port = ports_[static_cast<size_t>(one.memory->base)];
    if (port < 0 || one.touched != Lanes::full || !reads_memory(one)) return;
    const LoopId sweep = open_[open_.size() - 2];
    if (!moves(of(sweep), port)) return;  // what is the same for all rows stays near
    std::vector<LoopId>& sweeps = sweeps_[port];
    if (sweeps.empty() || sweeps.back() != sweep) sweeps.push_back(sweep);
    if (sweeps.size() == 2) stretches_.add(kernel_, one);
  }

  void end(int label) {
    const int64_t ahead = kernel_.blocks.sizes.front().elements;
    for (const Stretches::Touched& touched : stretches_.touched())
      touched.write(kFetch, ahead * touched.memory.element.bits() / 8, label, kernel_.body);
    stretches_.clear();
    in_rows_ = false;
    open_.pop_back();
  }

  LinearKernel& kernel_;
  const std::vector<int> ports_;
  std::vector<LoopId> open_;
  bool in_rows_ = false;                       // the innermost loop walks several rows of columns
  RegisterId counter_ = -1;                    // of it
  Stretches stretches_;                        // what it touches that is to be fetched for the next block
  std::map<int, std::vector<LoopId>> sweeps_;  // of tensors: the loops over rows that read them, so far
};

}  // namespace

// Of rows that are walked again: 512 columns, or 256, as long as all of their rows take half of the cache. Else, and of
// rows that are walked once, so many that the scratch rows take a sixteenth of it; where each row has scratch memory of
// its own, as few as a tile has.
void size_blocks(LinearKernel& kernel, int64_t cache_bytes) {
  constexpr int64_t kMost = 512, kLeast = 256;
  std::vector<LinearKernel::Blocks::Size>& sizes = kernel.blocks.sizes;
  sizes.clear();
  for (int64_t columns = kMost; kernel.blocks.again && columns >= kLeast; columns /= 2)
    sizes.push_back({columns, kernel.blocks.inside ? cache_bytes / 8 * 5 : cache_bytes / 2});
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

}  // namespace tenon::x86
