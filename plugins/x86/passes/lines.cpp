// Rows that begin anywhere, stored by whole lines. Main memory takes whole lines stored non-temporally three times as
// fast as partial lines, which must be read first. Each vector is rotated so that the line in which it begins starts at
// lane 0, and each line combines what one vector leaves over with the beginning of the next. The first and the last
// line of a traversal of a row are shared with other traversals: they are stored through the caches, which hold them by
// then or prefetch them.
//
//   index, mask, left = from the address, from the address, 0
//   for vectors                      turned = value, its lanes rotated by `index`
//     the line here                  in `mask`: turned, elsewhere: left;   left = turned
//   the line after the last          outside `mask`: left
#include <map>

#include "x86/names.hpp"
#include "x86/passes/internal.hpp"

namespace tenon::x86 {
namespace {

class LineStores {
 public:
  explicit LineStores(LinearKernel& kernel) : kernel_(kernel) {
    for (const Instruction& one : kernel.body) {
      follow(one);
      if (one.op == kLoopEnd) ++walks_[one.in[0]].loops;
      if (is_of_walk(one)) note(one);
    }
  }

  void run() {
    std::vector<Instruction> old = std::exchange(kernel_.body, {});
    kernel_.body.reserve(old.size() + 64);
    for (Instruction& one : old) {
      follow(one);
      Walk* walk = one.op == kLoopBegin || one.op == kLoopEnd ? &walks_[one.in[0]] : nullptr;
      if (one.op == kLoopBegin && walk->begun++ == 0) begin(*walk);
      if (one.op == kLoopBegin) open_.push_back(static_cast<LoopId>(one.number));
      if (one.op == kLoopEnd) open_.pop_back();
      if (is_of_walk(one)) {
        store(std::move(one));
        continue;
      }
      // Stores outside a traversal, as in a tile whose rows are inside its columns, go through the caches.
      if (one.op == kStoreStreaming) one.op = "Store";
      const bool last = one.op == kLoopEnd && --walk->loops == 0;
      kernel_.body.push_back(std::move(one));
      if (last) end(*walk);
    }
  }

 private:
  // A row of an output that one traversal stores.
  struct Row {
    Memory memory;
    ElementType lane;
    int label = -1;
    RegisterId index = -1, mask = -1, left = -1;
  };
  // A traversal by loops that share a counter: over several vectors at once, and then over single ones.
  struct Walk {
    int loops = 0, begun = 0;
    std::vector<Row> rows = {};
  };

  void follow(const Instruction& one) {
    if (one.op == kLoopBegin) counter_ = one.in[0];
    if (one.op == kLoopEnd) counter_ = -1;
  }
  bool is_of_walk(const Instruction& one) const {
    return one.op == kStoreStreaming && counter_ >= 0 && one.memory->index == counter_;
  }

  static Row* find(Walk& walk, RegisterId base) {
    const auto found = std::ranges::find(walk.rows, base, [](const Row& row) { return row.memory.base; });
    return found == walk.rows.end() ? nullptr : &*found;
  }

  void note(const Instruction& store) {
    Walk& walk = walks_[store.memory->index];
    if (Row* row = find(walk, store.memory->base)) {
      row->memory.displacement_bytes = std::min(row->memory.displacement_bytes, store.memory->displacement_bytes);
      return;
    }
    const ElementType lane = kernel_.registers[static_cast<size_t>(store.in[0])].element;
    walk.rows.push_back({.memory = *store.memory, .lane = lane, .label = store.label});
  }

  void begin(Walk& walk) {
    for (Row& row : walk.rows) {
      row.index = kernel_.add_lanes(row.lane.bits() == 64 ? kI64 : kI32);
      row.mask = kernel_.add_lanes(kBool);
      row.left = kernel_.add_lanes(row.lane);
      Memory first = row.memory;
      first.index = -1;
      write({.op = "LineIndex", .out = {row.index}, .memory = first, .label = row.label});
      write({.op = "LineMask", .out = {row.mask}, .memory = first, .label = row.label});
      write({.op = "Scalar", .attributes = {{"bits", int64_t{0}}}, .out = {row.left}, .label = row.label});
      if (kernel_.blocks.dim < 0) fetch_edge(first, row.label);
      if (!kernel_.blocks.inside || kernel_.blocks.sizes.empty()) continue;
      // Prefetches the line where the next block ends; the one where it begins is where this block ends.
      first.displacement_bytes += 2 * kernel_.blocks.sizes.front().elements * row.lane.bits() / 8;
      write({.op = "PrefetchWrite", .memory = first, .label = row.label});
    }
  }

  // For rows that are stored one after the other: prefetches the line that a later row and the row before it share.
  // Stores to partial lines that are not in the cache would delay the stores after them.
  void fetch_edge(Memory memory, int label) {
    constexpr int kRowsAhead = 4;
    if (open_.empty()) return;
    const auto& shifts = kernel_.loops[static_cast<size_t>(open_.back())].shifts;
    const auto shift = std::ranges::find(shifts, memory.base, &Loop::Shift::pointer);
    if (shift == shifts.end() || shift->each < 0) return;
    for (int row = 0; row < kRowsAhead; ++row) {
      const RegisterId next = kernel_.add_general();
      write({.op = "AddParameter", .in = {memory.base}, .out = {next}, .number = shift->each});
      memory.base = next;
    }
    write({.op = "PrefetchWrite", .memory = memory, .label = label});
  }

  void store(Instruction store) {
    const Row& row = *find(walks_[store.memory->index], store.memory->base);
    const RegisterId turned = kernel_.add_lanes(row.lane);
    write({.op = "TurnLanes", .in = {store.in[0], row.index}, .out = {turned}, .label = store.label});
    const bool first = store.memory->displacement_bytes == row.memory.displacement_bytes;
    write({.op = "StoreLine",
           .attributes = {{"first", int64_t{first}}},
           .in = {turned, row.left, row.mask},
           .memory = store.memory,
           .label = store.label});
    write({.op = "Copy", .in = {turned}, .out = {row.left}, .label = store.label});
  }

  void end(const Walk& walk) {
    for (const Row& row : walk.rows)
      write({.op = "StoreLineRest", .in = {row.left, row.mask}, .memory = row.memory, .label = row.label});
  }

  void write(Instruction one) { kernel_.body.push_back(std::move(one)); }

  LinearKernel& kernel_;
  std::map<RegisterId, Walk> walks_;  // by their counters
  RegisterId counter_ = -1;           // of the innermost loop; -1: outside it
  std::vector<LoopId> open_;
};

}  // namespace

void store_lines(LinearKernel& kernel) { LineStores(kernel).run(); }

}  // namespace tenon::x86
