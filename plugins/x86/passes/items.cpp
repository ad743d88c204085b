// Staging of items: results are collected in a staging buffer, from which whole lines are stored non-temporally.
//
// This is for short columns of many items, as in a softmax over the middle of [items, rows, columns]. An item is in a
// near cache while all sweeps traverse it, so main memory would be neither read nor written meanwhile. The results of
// an item are therefore staged as the lines that they will form in memory, wherever the item begins. While a later item
// is processed, these lines are stored non-temporally, and the item after that one is prefetched.
//
//   for items
//     Q = staging buffer, as far into a line as the output is here   StageItem
//     for columns: sweeps, which store to Q; in the longest one:
//       for each vector, one line of the previous item is stored and one line of the next item is prefetched, both in
//       memory order, whatever the order of the sweep
//     the rest of the previous item; partial lines that this item shares with its neighbours   StageDone
//   the rest of the last item                                        StageRest
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "x86/names.hpp"
#include "x86/passes/internal.hpp"

namespace tenon::x86 {
namespace {

class ItemStager {
 public:
  ItemStager(LinearKernel& kernel, const Items& items)
      : kernel_(kernel), ports_(ports_of(kernel)), dim_(items.dim), output_(items.output), dense_(items.dense) {}

  bool run() {
    if (!find_items()) return false;
    find_sweeps();
    stage();
    return true;
  }

 private:
  // Positions [begin, end) of a loop's body.
  struct Range {
    size_t begin = 0, end = 0;
  };

  const Loop& of(int64_t id) const { return kernel_.loops[static_cast<size_t>(id)]; }
  const Instruction& at(size_t i) const { return kernel_.body[i]; }
  int port_of(RegisterId pointer) const { return ports_[static_cast<size_t>(pointer)]; }

  // Finds the loop over items, in which columns are traversed.
  bool find_items() {
    std::vector<size_t> open;
    std::set<size_t> around;
    for (size_t i = 0; i < kernel_.body.size(); ++i) {
      if (at(i).op == kLoopEnd || at(i).op == kTailEnd) {
        if (const size_t begin = open.back(); around.contains(begin)) items_ = {begin + 1, i};
        open.pop_back();
      }
      if (at(i).op != kLoopBegin && at(i).op != kTailBegin) continue;
      if (of(at(i).number).kind != Loop::Kind::scalar) {
        if (open.empty()) return false;
        around.insert(open.back()), columns_.push_back({i + 1, 0}), columns_dim_ = of(at(i).number).dim;
      }
      open.push_back(i);
    }
    if (around.size() != 1 || of(loop()).dim != dim_ || of(loop()).increment != 1) return false;
    const auto is_output = [&](const Loop::Shift& shift) { return port_of(shift.pointer) == output_; };
    const auto moved = std::ranges::find_if(of(loop()).shifts, is_output);
    if (moved == of(loop()).shifts.end() || moved->each < 0) return false;
    pointer_ = moved->pointer, bytes_ = moved->each;
    const auto stores = [&](const Instruction& one) { return one.memory && one.memory->base == pointer_; };
    const auto stored = std::ranges::find_if(kernel_.body, stores);
    if (stored == kernel_.body.end()) return false;
    element_ = stored->memory->element, label_ = stored->label;
    return true;
  }
  LoopId loop() const { return static_cast<LoopId>(at(items_.begin - 1).number); }

  // Finds, for each loop over columns, the longest innermost loop that reads items.
  void find_sweeps() {
    for (Range& column : columns_) {
      const Name end = at(column.begin - 1).op == kLoopBegin ? kLoopEnd : kTailEnd;
      column.end = column.begin;
      while (at(column.end).op != end || at(column.end).number != at(column.begin - 1).number) ++column.end;
      Range longest;
      for (size_t i = column.begin, begin = 0; i < column.end; ++i) {
        if (at(i).op == kLoopBegin) begin = i + 1;
        if (at(i).op != kLoopEnd || begin == 0) continue;
        const Range inner{std::exchange(begin, 0), i};
        if (inner.end - inner.begin > longest.end - longest.begin && !reads_of(inner).empty()) longest = inner;
      }
      if (longest.end > 0) sweeps_.push_back(longest);
    }
  }

  // What a sweep reads from tensors whose values differ between items, by pointer; each address once.
  std::map<RegisterId, std::vector<Memory>> reads_of(const Range& sweep) const {
    std::map<RegisterId, std::vector<Memory>> reads;
    std::set<std::tuple<RegisterId, RegisterId, int64_t>> seen;
    for (size_t i = sweep.begin; i < sweep.end; ++i) {
      if (!at(i).memory || !reads_memory(at(i))) continue;
      const Memory& memory = *at(i).memory;
      const auto moves = [&](const Loop::Shift& shift) { return shift.pointer == memory.base && shift.each >= 0; };
      if (port_of(memory.base) != output_ && std::ranges::any_of(of(loop()).shifts, moves) &&
          seen.emplace(memory.base, memory.index, memory.displacement_bytes).second)
        reads[memory.base].push_back(memory);
    }
    return reads;
  }

  // Inserts one store and one prefetch of a line for each vector, evenly among the instructions of the sweep.
  // Prefetches go into L2: into L1 they would delay what sweeps read from L2, and evict the item.
  void spread(const Range& sweep) {
    const auto reads = reads_of(sweep);
    size_t most = 0;
    for (const auto& [pointer, read] : reads) most = std::max(most, read.size());
    const auto put = [&](size_t number, Instruction one) {
      one.label = label_;
      made_[sweep.begin + number * (sweep.end - sweep.begin) / most].push_back(std::move(one));
    };
    for (const auto& [pointer, read] : reads) {
      if (std::ranges::binary_search(dense_, port_of(pointer))) {
        const RegisterId next = next_of(pointer);
        const int64_t bytes = int64_t{kernel_.lanes} * read.front().element.bits() / 8;
        for (size_t i = 0; i < read.size(); ++i)
          put(i, {.op = "FetchOn",
                  .attributes = {{"bytes", bytes}},
                  .out = {next},
                  .memory = Memory{.element = read[i].element, .base = next}});
        continue;
      }
      const RegisterId next = kernel_.add_general();
      put(0, step_to_next(pointer, next));
      for (size_t i = 0; i < read.size(); ++i) {
        Memory ahead = read[i];
        ahead.base = next;
        put(i, {.op = kPrefetchRead, .attributes = {{"second", int64_t{1}}}, .memory = ahead});
      }
    }
    for (size_t i = 0; i < most; ++i) put(i, stage_op("StageLine"));
  }

  Instruction step_to_next(RegisterId pointer, RegisterId next) const {
    const auto shift = std::ranges::find(of(loop()).shifts, pointer, &Loop::Shift::pointer);
    return {.op = kAddParameter, .in = {pointer}, .out = {next}, .number = shift->each, .label = label_};
  }

  // The pointer at which the next unfetched lines of the following item are prefetched, if all of it is contiguous.
  // Main memory and hardware prefetchers, which look for consecutive lines, serve them fastest in memory order, and
  // this spreads them evenly over the sweeps of all columns. Prefetching each line as a sweep over some columns reaches
  // it would make the first of these sweeps fetch most lines of the item.
  RegisterId next_of(RegisterId pointer) {
    const auto [found, is_new] = next_.try_emplace(pointer, -1);
    if (is_new) {
      found->second = kernel_.add_general();
      made_[items_.begin].push_back(step_to_next(pointer, found->second));
    }
    return found->second;
  }

  // `state`, `bytes`: params for the place of the staging buffer and for the size of an item.
  Instruction stage_op(const char* op, bool of_item = false) const {
    Instruction one{.op = op, .attributes = {{"bytes", int64_t{bytes_}}, {"state", int64_t{state_}}}, .label = label_};
    if (of_item) one.memory = Memory{.element = element_, .base = pointer_};
    return one;
  }

  void stage() {
    constexpr int64_t kStageState = 64, kSlack = 126;  // for each of two items: before it, and up to whole lines
    uint32_t dims = 0;
    for (int dim = dim_ + 1; dim <= columns_dim_; ++dim) dims |= uint32_t{1} << dim;
    const int port = static_cast<int>(static_cast<size_t>(output_) + 1 + kernel_.scratch.size());
    kernel_.scratch.push_back({element_, dims, 2, kStageState + 2 * kSlack});
    kernel_.whole |= uint32_t{1} << columns_dim_;
    state_ = kernel_.add_param({.kind = Param::Kind::pointer, .port = port});
    const RegisterId staged = kernel_.add_general();
    for (const Range& sweep : sweeps_) spread(sweep);
    Instruction item = stage_op("StageItem", true);
    item.out = {staged};
    const Instruction done = stage_op("StageDone", true);
    for (size_t i = items_.begin; i < items_.end; ++i) put_on_stage(kernel_.body[i], staged);
    made_[items_.begin].insert(made_[items_.begin].begin(), item);
    made_[items_.end].push_back(done);
    std::vector<Instruction> body{stage_op("StageBegin")};
    for (size_t i = 0; i < kernel_.body.size(); ++i) {
      if (const auto made = made_.find(i); made != made_.end())
        std::ranges::move(made->second, std::back_inserter(body));
      body.push_back(std::move(kernel_.body[i]));
    }
    body.push_back(stage_op("StageRest"));
    kernel_.body = std::move(body);
  }

  void put_on_stage(Instruction& one, RegisterId staged) {
    for (snippet::RegisterIds* ids : {&one.in, &one.out}) std::ranges::replace(*ids, pointer_, staged);
    if (one.memory && one.memory->base == pointer_) one.memory->base = staged;
    if (one.op != kLoopBegin) return;
    for (Loop::Shift& shift : kernel_.loops[static_cast<size_t>(one.number)].shifts)
      if (shift.pointer == pointer_) shift.pointer = staged;
  }

  LinearKernel& kernel_;
  const std::vector<int> ports_;
  const int dim_, output_;
  const std::vector<int> dense_;
  Range items_;                 // the body of the loop over items
  std::vector<Range> columns_;  // the bodies of the loops over columns in it
  std::vector<Range> sweeps_;   // the bodies of the longest sweeps in these
  int columns_dim_ = -1;
  RegisterId pointer_ = -1;  // to the current item of the output
  ElementType element_;
  int label_ = -1;
  snippet::ParamId bytes_ = -1, state_ = -1;         // size of an item; place of the staging buffer
  std::map<RegisterId, RegisterId> next_;            // where the next item is prefetched, by pointer to this one
  std::map<size_t, std::vector<Instruction>> made_;  // to be inserted before these instructions
};

}  // namespace

bool stage_items(LinearKernel& kernel, const Items& items) { return ItemStager(kernel, items).run(); }

}  // namespace tenon::x86
