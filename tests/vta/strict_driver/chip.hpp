// The on-chip memories and the effects of instructions, in order. Nothing survives a run: a stream must write what it
// reads.
#pragma once
#include <cstdint>
#include <vector>

#include "instruction.hpp"
#include "memory.hpp"

namespace strict {

class Chip {
 public:
  Chip(const Machine& machine, Memory& dram);
  void execute(const Instruction& i);

 private:
  struct Sram {
    uint32_t width = 1;  // log2 of values of an element
    std::vector<int32_t> values;
    std::vector<bool> known;
    const char* name = "";

    int32_t* write(uint64_t index);
    const int32_t* read(uint64_t index);
  };
  Sram& memory(uint32_t id);
  void load(const Instruction& i);
  void store(const Instruction& i);
  void gemm(const Instruction& i);
  void alu(const Instruction& i);
  template <class Step>
  void each_step(const Instruction& i, const Step& step);

  const Machine machine_;
  Memory& dram_;
  Sram uop_, inp_, wgt_, acc_;
};

}  // namespace strict
