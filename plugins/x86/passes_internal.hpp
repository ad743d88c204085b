// What the passes for tensors beyond the caches share.
#pragma once
#include <vector>

#include "x86/passes.hpp"

namespace tenon::x86 {

// The port that each pointer register points into; -1: not a pointer that the call brings.
std::vector<int> ports_of(const snippet::LinearKernel& kernel);

bool writes_memory(Name op);
bool reads_memory(const snippet::Instruction& instruction);

// The cache lines that one iteration of a loop touches.
class Stretches {
 public:
  // What it touches through one pointer: the bytes from displacement `begin`.
  struct Touched {
    snippet::Memory memory;
    int64_t begin = 0, end = 0;
    bool written = false;
    // `op` on each line, `ahead_bytes` further on.
    void write(Name op, int64_t ahead_bytes, int label, std::vector<snippet::Instruction>& body) const;
  };
  void add(const snippet::LinearKernel& kernel, const snippet::Instruction& instruction);
  // In the order in which they are touched first, so that code does not depend on register numbers.
  const std::vector<Touched>& touched() const { return touched_; }
  void clear() { touched_.clear(); }

 private:
  std::vector<Touched> touched_;
};

}  // namespace tenon::x86
