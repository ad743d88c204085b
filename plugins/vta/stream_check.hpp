// The race check: is every pair of accesses to one element, of which one writes, ordered by tokens?
//
//   TENON_TRY(findings, check_stream(stream, hardware, micro_ops));
//   for (const Finding& finding : findings) std::puts(finding.to_string(stream).c_str());
//
// Nothing is timed: what is ordered is what tokens and the order within each unit say, so a stream without findings has
// one result on any machine, however fast its units are. Instructions are taken in the order of the stream, which is
// what each of them was written to see. The order is a vector clock of the three units; each element of the memories on
// the chip, and each interval of DRAM, remembers who wrote it last and which unit has read it since.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include <tenon/support/result.hpp>

#include "vta/instruction.hpp"

namespace tenon::vta {

struct Finding {
  enum class Kind : uint8_t {
    read_after_write,  // `first` writes what `second` reads, and may come later
    write_after_read,
    write_after_write,
    deadlock,     // `second` waits for a token that nobody pushes
    left_over,    // nobody pops a token of `first`
    not_written,  // `second` reads what nothing has written
    unfinished,   // `second` is FINISH, and `first` may still run
  };
  Kind kind = Kind::read_after_write;
  int64_t first = -1, second = -1;  // instructions, in the order of the stream; -1: none
  bool in_dram = false;
  Memory memory = Memory::inp;
  int64_t at = 0;  // element of the memory, or byte of DRAM
  // "write after read: GEMM (#7) may still read INP[12] when LOAD (#9) writes it".
  std::string to_string(const std::vector<Instruction>& stream) const;
};

struct CheckOptions {
  // The micro-op at an element of DRAM: what a load of UOP brings. Without it, loads of UOP hide which addresses GEMM
  // and ALU reach, so it must be there for streams that have such loads.
  std::function<Result<uint32_t>(int64_t dram_element)> micro_op;
  size_t most_findings = 16;
};

// An error for a stream that cannot be followed: a micro-op that nothing has loaded, an address outside of its memory.
Result<std::vector<Finding>> check_stream(const std::vector<Instruction>& stream, const Hardware& hardware,
                                          const CheckOptions& options);

}  // namespace tenon::vta
