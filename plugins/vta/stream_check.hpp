// The race check: verifies that tokens order every two accesses to one element of which at least one is a write.
//
//   TENON_TRY(findings, check_stream(stream, hardware, micro_ops));
//   for (const Finding& finding : findings) std::puts(finding.to_string(stream).c_str());
//
// There is no timing: the happens-before order follows from tokens and the order within each unit alone. A stream
// without findings therefore has one result on any machine, however fast its units are. Instructions are visited in the
// order of the stream, which defines the intended values. The order is represented by vector clocks of the three units.
// Each element of the memories on the chip, and each interval of DRAM, stores its last writer and each unit's last read
// since.
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
    deadlock,     // `second` waits for a token that is never pushed
    left_over,    // a token of `first` is never popped
    not_written,  // `second` reads what was never written
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
  // The micro-op at an element of DRAM, as a load of UOP brings it. Required for streams with such loads, because the
  // addresses of GEMM and ALU depend on it.
  std::function<Result<uint32_t>(int64_t dram_element)> micro_op;
  size_t most_findings = 16;
};

// An error for a stream that cannot be followed: a micro-op that was not loaded, an address outside its memory.
Result<std::vector<Finding>> check_stream(const std::vector<Instruction>& stream, const Hardware& hardware,
                                          const CheckOptions& options);

}  // namespace tenon::vta
