// Instructions of 128 bits and micro-ops of 32, as the machine reads them. The widths of addresses follow from the
// Hardware.
//
//   TENON_TRY(words, encode(instruction, hardware));     // an error names the field that is too small for its value
//   TENON_TRY(instruction, decode(words, hardware));
//
// Units and tokens. The load unit runs transfers of INP and WGT, the store unit stores, the compute unit everything
// else. Tokens are the only synchronisation between units:
//
//   load <-> compute <-> store      prev and next of a unit are its left and right neighbours
//
// An instruction pops the tokens that it requests before it runs, and pushes tokens when it is done.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include <tenon/support/result.hpp>

#include "vta/hardware.hpp"

namespace tenon::vta {

enum class Opcode : uint8_t { load, store, gemm, finish, alu };  // values as encoded in instructions
enum class AluOp : uint8_t { min, max, add, shr, mul };
enum class UnitId : uint8_t { load, compute, store };
inline constexpr size_t kUnits = 3;
inline constexpr int64_t kInstructionBytes = 16;

// Moves rows of elements from DRAM to a memory, or back. Sizes, addresses and strides are in elements.
struct Transfer {
  Memory memory = Memory::inp;
  uint32_t sram_base = 0, dram_base = 0;
  uint32_t y_size = 0, x_size = 0, x_stride = 0;
  uint32_t y_pad_0 = 0, y_pad_1 = 0, x_pad_0 = 0, x_pad_1 = 0;  // rows and elements of zero padding, for loads
  // Elements of the memory that it accesses.
  int64_t elements() const {
    return x_size == 0 ? 0 : int64_t{y_pad_0 + y_size + y_pad_1} * (x_pad_0 + x_size + x_pad_1);
  }
  bool operator==(const Transfer&) const = default;
};

// For i in [0, iter_out), j in [0, iter_in), and u in [uop_begin, uop_end): executes micro-op u, with each of its
// addresses advanced by i * factor_out + j * factor_in.
struct Steps {
  bool reset = false;  // GEMM: 0 instead of a product
  uint32_t uop_begin = 0, uop_end = 0;
  uint32_t iter_out = 1, iter_in = 1;
  uint32_t dst_factor_out = 0, dst_factor_in = 0, src_factor_out = 0, src_factor_in = 0;
  uint32_t wgt_factor_out = 0, wgt_factor_in = 0;  // of GEMM
  int64_t count() const { return int64_t{iter_out} * iter_in * (uop_end > uop_begin ? uop_end - uop_begin : 0); }
  bool operator==(const Steps&) const = default;
};

struct Instruction {
  Opcode opcode = Opcode::finish;
  bool pop_prev = false, pop_next = false, push_prev = false, push_next = false;
  Transfer transfer = {};  // of load and store
  Steps steps = {};        // of gemm and alu
  AluOp alu = AluOp::min;
  bool use_imm = false;
  int32_t imm = 0;  // 16 bits, signed

  UnitId unit() const;
  bool operator==(const Instruction&) const = default;
};

struct MicroOp {
  uint32_t dst = 0, src = 0, wgt = 0;
  bool operator==(const MicroOp&) const = default;
};

using Words = std::array<uint64_t, 2>;  // 16 bytes, the lower half first
Result<Words> encode(const Instruction& instruction, const Hardware& hardware);
// An error for an unknown opcode, memory or ALU operation.
Result<Instruction> decode(const Words& words, const Hardware& hardware);
Result<uint32_t> encode(const MicroOp& op, const Hardware& hardware);
MicroOp decode_micro_op(uint32_t word, const Hardware& hardware);

// An error where the fields of instructions and micro-ops do not fit their words, with the sum and the excess.
Result<void> check_encodable(const Hardware& hardware);

// "GEMM pop_prev push_next uop [0,8) iter 14 x 2 dst 16,1 src 32,2 wgt 0,4".
std::string print(const Instruction& instruction);
std::string_view unit_name(UnitId unit);  // "load" ...

}  // namespace tenon::vta
