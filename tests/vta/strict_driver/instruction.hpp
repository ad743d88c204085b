// Instructions of 128 bits as in the accelerator's documentation: fields packed from bit 0; one that would cross the
// middle starts the second half. Bits outside fields must be 0.
#pragma once
#include <cstdint>

#include "options.hpp"

namespace strict {

// All sizes are powers of two; these are the logarithms.
struct Machine {
  explicit Machine(const Options& options);
  uint32_t batch, block;                                // values
  uint32_t uop_depth, inp_depth, wgt_depth, acc_depth;  // elements
  // Bytes of an element: of a memory in DRAM (acc), of INP and OUT, of WGT.
  uint32_t lanes() const { return batch + block; }
};

enum Opcode : uint32_t { kLoad = 0, kStore = 1, kGemm = 2, kFinish = 3, kAlu = 4 };
enum MemoryId : uint32_t { kUop = 0, kWgt = 1, kInp = 2, kAcc = 3, kOut = 4, kAcc8 = 5 };
enum AluOp : uint32_t { kMin = 0, kMax = 1, kAdd = 2, kShr = 3, kMul = 4 };
enum Unit { kLoadUnit, kComputeUnit, kStoreUnit };

struct Instruction {
  uint32_t opcode;
  bool pop_prev, pop_next, push_prev, push_next;
  // LOAD, STORE
  uint32_t memory, sram_base, dram_base, y_size, x_size, x_stride, y_pad_0, y_pad_1, x_pad_0, x_pad_1;
  // GEMM, ALU
  bool reset;
  uint32_t uop_begin, uop_end, iter_out, iter_in;
  uint32_t dst_out, dst_in, src_out, src_in, wgt_out, wgt_in;
  // ALU
  uint32_t alu;
  bool use_imm;
  int32_t imm;

  Unit unit() const;
};

// Throws a Fault for invalid numbers, and for bits that are set outside fields.
Instruction decode_instruction(const uint8_t* bytes, const Machine& machine);

struct MicroOp {
  uint32_t dst, src, wgt;
};
MicroOp decode_micro_op(uint32_t word, const Machine& machine);

}  // namespace strict
