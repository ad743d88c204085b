// Machine: what the instructions of one VTA compute, one after another. It knows no time; the simulator does.
#pragma once
#include <cstdint>
#include <vector>

#include <tenon/support/result.hpp>

#include "vta/dram.hpp"
#include "vta/hardware.hpp"
#include "vta/instruction.hpp"

namespace tenon::vta {

// The memories on the chip. They keep what they hold from run to run; reading what was never written is an error, as
// is every address outside of a memory or buffer. Arithmetic wraps around in 32 bits; a shift by 32 or more gives 0, or
// the sign.
class Machine {
 public:
  explicit Machine(const Hardware& hardware);

  // Errors name addresses and limits; the caller adds which instruction it was. After an error the contents of memories
  // are those before it or partly new.
  Result<void> execute(const Instruction& instruction, Dram& dram);

  // For tests and dumps: values of an element.
  std::vector<int32_t> element(Memory memory, int64_t index) const;

 private:
  struct Sram {
    std::vector<int32_t> values;  // elements one after another; micro-ops as their bits
    std::vector<char> written;    // by element
    int64_t width = 1;            // values of an element
  };
  Sram& sram(Memory memory);
  const Sram& sram(Memory memory) const { return const_cast<Machine*>(this)->sram(memory); }

  Result<void> load(const Transfer& transfer, Dram& dram);
  Result<void> load_row(const Transfer& transfer, int64_t row, int64_t at, Dram& dram);
  Result<void> store(const Transfer& transfer, Dram& dram);
  Result<void> gemm(const Steps& steps);
  Result<void> alu(const Instruction& instruction);
  Result<MicroOp> micro_op(int64_t index) const;
  // The first value of element `index`, which has been written.
  Result<int32_t*> read(Memory memory, int64_t index);
  Result<int32_t*> write(Memory memory, int64_t index);

  Hardware hardware_;
  Sram uop_, wgt_, inp_, acc_;
};

// One value of the ALU.
int32_t alu_value(AluOp op, int32_t a, int32_t b);

}  // namespace tenon::vta
