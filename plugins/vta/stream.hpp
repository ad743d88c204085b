// Stream: instructions whose DRAM addresses are not known yet, and StreamBuilder, which makes them from tasks.
//
// A task is a row of instructions of one unit that reads and writes resources: halves of the buffers, and what lies in
// DRAM. From these follow the tokens: a task that needs another unit's work waits for a token of it, unless what it has
// waited for before says as much. So each token is needed, and a stream has neither a race nor a token too many.
//
//   StreamBuilder out(hardware);
//   out.task(UnitId::load, {}, {kInpSlot});
//   out.load({.memory = Memory::inp, ...}, segment);
//   out.task(UnitId::compute, {kInpSlot}, {kAccSlot});
//   TENON_OK(out.gemm({{dst, src, wgt}}, {.iter_out = rows}));
//   TENON_TRY(stream, out.finish());
#pragma once
#include <map>
#include <optional>
#include <span>
#include <vector>

#include <tenon/support/result.hpp>

#include "vta/instruction.hpp"
#include "vta/layer.hpp"
#include "vta/ranges.hpp"

namespace tenon::vta {

// What a transfer's dram_base counts from: a buffer that has its address when the stream is bound.
using Segment = uint32_t;
inline constexpr Segment kMicroOpSegment = 0;  // the stream's own micro-ops
inline constexpr Segment kWeightSegment = 1, kBiasSegment = 2, kOutputSegment = 3;
inline constexpr Segment kOperandSegment = 4;  // operand i: 4 + i

struct Command {
  Instruction instruction;
  Segment segment = kMicroOpSegment;  // of a transfer
};

struct Stream {
  std::vector<Command> commands;
  std::vector<uint32_t> micro_ops;  // encoded, as they lie in their segment
  // The instructions with addresses: those of segments in bytes, each a multiple of the elements that are in it.
  Result<std::vector<Instruction>> bound(std::span<const uint64_t> segment_addresses, const Hardware& hardware) const;
};

// Two loops with factors for each: `out` iterations of the outer, `in` of the inner. Factors of a loop that runs once
// do not matter, may not fit their fields, and are 0.
struct Factors {
  int64_t out = 0, in = 0;
};
Steps loops(int64_t out, int64_t in, Factors dst, Factors src, Factors wgt = {});

using Resource = uint32_t;  // a number, better a small one

class StreamBuilder {
 public:
  explicit StreamBuilder(const Hardware& hardware) : hardware_(hardware) {}

  // Begins a task; instructions that follow are its, and run on its unit.
  void task(UnitId unit, std::vector<Resource> reads, std::vector<Resource> writes);
  void load(const Transfer& transfer, Segment segment) { transfer_of(Opcode::load, transfer, segment); }
  void store(const Transfer& transfer, Segment segment) { transfer_of(Opcode::store, transfer, segment); }
  // `steps` without uop_begin and uop_end: the micro-ops are put into the buffer when they are not there.
  Result<void> gemm(const std::vector<MicroOp>& ops, Steps steps);
  Result<void> alu(AluOp op, const std::vector<MicroOp>& ops, Steps steps, std::optional<int64_t> imm = {});

  // Waits for what the tasks wrote to `last`, and ends the stream.
  Result<Stream> finish(Resource last);

 private:
  struct Task {
    UnitId unit = UnitId::compute;
    std::vector<Resource> reads, writes;
    size_t first = 0, end = 0;  // commands
  };
  // Micro-ops of a kernel in the buffer: page p of the segment fills it from 0 on.
  struct Place {
    size_t page = 0;
    uint32_t begin = 0, end = 0;
  };
  void transfer_of(Opcode opcode, const Transfer& transfer, Segment segment);
  Result<Place> place(const std::vector<MicroOp>& ops);
  void make_resident(size_t page);
  Result<void> steps_of(Instruction instruction, const std::vector<MicroOp>& ops);
  void order_tasks();

  const Hardware& hardware_;
  Stream stream_;
  std::vector<Task> tasks_;
  std::map<std::vector<uint32_t>, Place> kernels_;
  std::vector<uint32_t> page_sizes_;
  std::vector<std::pair<size_t, size_t>> page_loads_;  // command, page
  std::optional<size_t> resident_;
};

// Stores from ACC, where blocks, rows and columns follow each other without a gap, to their place in `image`.
void store_planes(StreamBuilder& out, const Image& image, int64_t batch, const Range& blocks, const Range& rows,
                  const Range& cols, int64_t sram);

}  // namespace tenon::vta
