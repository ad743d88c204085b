// Stream: instructions whose DRAM addresses are not yet known, and StreamBuilder, which builds streams from tasks.
//
// A task is a sequence of instructions of one unit that reads and writes resources: slots of the buffers, and data in
// DRAM. The tokens follow from these: a task that depends on another unit's work waits for a token of it, unless the
// ordering already follows from earlier tokens. So a stream has no races and no redundant tokens.
//
//   StreamBuilder out;
//   out.task(UnitId::load, {}, kInpSlot);
//   out.transfer(Opcode::load, {.memory = Memory::inp, ...}, segment);
//   out.task(UnitId::compute, {kInpSlot}, kAccSlot);
//   out.steps(instruction);
//   Stream stream = out.finish(kOutput);
#pragma once
#include <initializer_list>
#include <span>
#include <vector>

#include <tenon/support/result.hpp>

#include "vta/commands.hpp"
#include "vta/instruction.hpp"

namespace tenon::vta {

struct StreamEntry {
  Instruction instruction;
  Segment segment = 0;  // of a transfer
};

struct Stream {
  std::vector<StreamEntry> entries;
  std::vector<uint32_t> micro_ops;  // encoded, as stored in `micro_op_segment`
  Segment micro_op_segment = 0;
  // The instructions with addresses. Those of segments are in bytes, each a multiple of the sizes of its elements.
  Result<std::vector<Instruction>> bound(std::span<const uint64_t> segment_addresses, const Hardware& hardware) const;
};

// The instruction with its segment's byte address added to its own address.
Result<Instruction> bound(const StreamEntry& entry, uint64_t segment_address, const Hardware& hardware);

// Address factors for two nested loops: `out` iterations of the outer, `in` of the inner. Factors of a loop that runs
// once have no effect, might not fit their fields, and are set to 0.
struct Factors {
  int64_t out = 0, in = 0;
};
Steps loops(int64_t out, int64_t in, Factors dst, Factors src, Factors wgt = {});

using Resource = uint32_t;  // a number, preferably small
inline constexpr Resource kNoResource = UINT32_MAX;

class StreamBuilder {
 public:
  // Begins a task, which reads at most three resources. The instructions that follow belong to it and run on its unit.
  void task(UnitId unit, std::initializer_list<Resource> reads, Resource write);
  void transfer(Opcode opcode, const Transfer& transfer, Segment segment);
  void steps(const Instruction& instruction) { stream_.entries.push_back({instruction, 0}); }
  size_t size() const { return stream_.entries.size(); }
  Instruction& at(size_t entry) { return stream_.entries[entry].instruction; }

  // Waits for the tasks that wrote `last`, and ends the stream. Micro-ops are not yet set.
  Stream finish(Resource last);

 private:
  struct Task {
    UnitId unit = UnitId::compute;
    std::array<Resource, 3> reads{kNoResource, kNoResource, kNoResource};
    Resource write = kNoResource;
    size_t first = 0, end = 0;  // entries
  };
  void order_tasks();

  Stream stream_;
  std::vector<Task> tasks_;
};

}  // namespace tenon::vta
