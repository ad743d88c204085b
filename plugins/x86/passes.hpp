// Passes of this plugin on linear kernels, before registers are given out.
//
// They make instructions of the plugin's own, with rows in the jitter table (structure.hpp):
//
//   Fma a, b, c   a * b + c      Fms a, b, c   a * b - c      Fnma a, b, c   c - a * b       rounded once
//   AddMemory SubMemory MulMemory DivMemory  [memory], a       a op memory
//   FmaMemory [memory], a, c     a * memory + c   (attribute `place` 1)
//   FmaMemory [memory], a, b     a * b + memory   (attribute `place` 2)
//   PrefetchWrite [memory]       the cache line there will be written; an address that is not mapped does no harm
//
// Attribute `broadcast` 1: memory is one element, for all lanes (avx512).
#pragma once
#include <tenon/snippet/linear.hpp>
#include <tenon/support/result.hpp>

#include "x86/isa.hpp"

namespace tenon::x86 {

struct PassOptions {
  Isa isa = Isa::avx2;
  // A product that is only added becomes one operation: faster, and rounded once instead of twice, so results may
  // differ in their last place from those of the operators one by one. The only pass that changes bits.
  bool contract = true;
  // Loads with one use become operands of the instruction that uses them.
  bool memory_operands = true;
  // How many cache lines ahead of each store in a vector loop its line is fetched for writing; 0: not at all. For
  // kernels whose tensors exceed the caches: kStreamingLines. Where all lies in the caches it only costs.
  int prefetch_lines = 0;
};
inline constexpr int kStreamingLines = 48;

// All of them, in the order below; then the verifier.
Result<void> optimise(snippet::LinearKernel& kernel, const PassOptions& options);

void contract_multiply_add(snippet::LinearKernel& kernel);
void fold_loads(snippet::LinearKernel& kernel, Isa isa);
void prefetch_writes(snippet::LinearKernel& kernel, int lines);

}  // namespace tenon::x86
