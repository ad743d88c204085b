#include "instruction.hpp"

#include <algorithm>

namespace strict {
namespace {

// Takes fields from two halves in turn.
class Fields {
 public:
  explicit Fields(const uint8_t* bytes) {
    for (int half = 0; half < 2; ++half)
      for (int i = 7; i >= 0; --i) halves_[half] = halves_[half] << 8 | bytes[half * 8 + i];
  }

  uint32_t take(uint32_t bits) {
    if (used_ + bits > 64) {
      want_empty();
      ++half_;
      used_ = 0;
      if (half_ > 1) throw Fault("fields of more than 128 bits");
    }
    const uint64_t field = halves_[half_] & ((uint64_t{1} << bits) - 1);
    halves_[half_] >>= bits;
    used_ += bits;
    return static_cast<uint32_t>(field);
  }
  bool flag() { return take(1) != 0; }

  void finish() {
    for (; half_ < 2; ++half_) want_empty();
  }

 private:
  void want_empty() const {
    if (halves_[half_] != 0) throw Fault("bits are set that belong to no field");
  }

  uint64_t halves_[2] = {0, 0};  // what has not been taken
  uint32_t used_ = 0;
  int half_ = 0;
};

void take_transfer(Fields& fields, Instruction& i) {
  i.memory = fields.take(3);
  i.sram_base = fields.take(16);
  i.dram_base = fields.take(32);
  i.y_size = fields.take(16);
  i.x_size = fields.take(16);
  i.x_stride = fields.take(16);
  i.y_pad_0 = fields.take(4), i.y_pad_1 = fields.take(4);
  i.x_pad_0 = fields.take(4), i.x_pad_1 = fields.take(4);
  if (i.memory > kAcc8) throw Fault("a memory that is none");
  if (i.opcode == kLoad && i.memory == kOut) throw Fault("OUT is loaded");
  if (i.opcode == kStore && i.memory != kOut) throw Fault("something but OUT is stored");
  if (i.opcode == kStore && (i.y_pad_0 || i.y_pad_1 || i.x_pad_0 || i.x_pad_1)) throw Fault("a store with padding");
}

void take_loops(Fields& fields, Instruction& i, const Machine& machine) {
  i.reset = fields.flag();
  i.uop_begin = fields.take(machine.uop_depth);
  i.uop_end = fields.take(machine.uop_depth + 1);
  i.iter_out = fields.take(14), i.iter_in = fields.take(14);
  i.dst_out = fields.take(machine.acc_depth), i.dst_in = fields.take(machine.acc_depth);
  const uint32_t src = i.opcode == kGemm ? machine.inp_depth : machine.acc_depth;
  i.src_out = fields.take(src), i.src_in = fields.take(src);
  if (i.uop_begin >= i.uop_end) throw Fault("no micro-op is named");
  if (i.iter_out == 0 || i.iter_in == 0) throw Fault("a loop of no iterations");
}

void take_alu(Fields& fields, Instruction& i) {
  i.alu = fields.take(3);
  i.use_imm = fields.flag();
  i.imm = static_cast<int16_t>(fields.take(16));
  if (i.alu > kMul) throw Fault("an ALU operation that is none");
  if (i.reset) throw Fault("the ALU has no reset");
  if (!i.use_imm && i.imm != 0) throw Fault("an immediate that is not used");
}

}  // namespace

// Element bytes: batch * block * 4 of ACC, batch * block of INP, block * block of WGT, 4 of UOP.
Machine::Machine(const Options& options)
    : batch(options["batch"]),
      block(options["block"]),
      uop_depth(options["uop"] - 2),
      inp_depth(options["inp"] - lanes()),
      wgt_depth(options["wgt"] - 2 * block),
      acc_depth(options["acc"] - lanes() - 2) {}

Unit Instruction::unit() const {
  if (opcode == kStore) return kStoreUnit;
  return opcode == kLoad && (memory == kInp || memory == kWgt) ? kLoadUnit : kComputeUnit;
}

Instruction decode_instruction(const uint8_t* bytes, const Machine& machine) {
  Fields fields(bytes);
  Instruction i{};
  i.opcode = fields.take(3);
  i.pop_prev = fields.flag(), i.pop_next = fields.flag();
  i.push_prev = fields.flag(), i.push_next = fields.flag();
  switch (i.opcode) {
    case kLoad:
    case kStore: take_transfer(fields, i); break;
    case kGemm:
      take_loops(fields, i, machine);
      i.wgt_out = fields.take(machine.wgt_depth), i.wgt_in = fields.take(machine.wgt_depth);
      break;
    case kAlu:
      take_loops(fields, i, machine);
      take_alu(fields, i);
      break;
    case kFinish: break;
    default: throw Fault("opcode " + std::to_string(i.opcode));
  }
  fields.finish();
  if (i.unit() == kLoadUnit && (i.pop_prev || i.push_prev)) throw Fault("the load unit has no unit before it");
  if (i.unit() == kStoreUnit && (i.pop_next || i.push_next)) throw Fault("the store unit has no unit behind it");
  return i;
}

MicroOp decode_micro_op(uint32_t word, const Machine& machine) {
  const auto take = [&](uint32_t bits) {
    const uint32_t field = word & ((uint32_t{1} << bits) - 1);
    word >>= bits;
    return field;
  };
  MicroOp op{};
  op.dst = take(machine.acc_depth);
  op.src = take(std::max(machine.acc_depth, machine.inp_depth));
  op.wgt = take(machine.wgt_depth);
  if (word != 0) throw Fault("a micro-op with bits that belong to no field");
  return op;
}

}  // namespace strict
