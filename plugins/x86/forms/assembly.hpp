// From a linear kernel to machine code.
//
//   TENON_OK(snippet::allocate(kernel, register_pool(isa), snippet::needs_of(table, target)));
//   TENON_TRY(object, assemble(kernel, table, target));
//   TENON_TRY(code, JitMemory::shared().add(object));        // jit_memory.hpp
//   code->function()(params);
//
// The code:   save callee-saved registers; a frame of 64-byte slots, if there is one
//             the instructions, each by the emitter of its row
//             vzeroupper; restore; return
//             constants, 64-byte aligned
//
// It is position independent. The params' address stays in rdi. Code may have any length.
#pragma once
#include <tenon/codegen/jitter_table.hpp>
#include <tenon/snippet/linear/linear.hpp>
#include <tenon/target/description.hpp>

#include "x86/assembly/context.hpp"
#include "x86/code/code_object.hpp"

namespace tenon::x86 {

// `kernel` must be allocated with the registers of register_pool(isa_of(target)). An error names the instruction that
// has no row, or that cannot be encoded.
Result<CodeObject> assemble(const snippet::LinearKernel& kernel, const codegen::JitterTable& table,
                            const TargetDescription& target);

// The number of copies of each constant that code for `isa` needs in its pool (ConstantPool).
constexpr int constant_copies(Isa isa) { return isa == Isa::avx512 ? 1 : 8; }

// The prologue and epilogue that assemble() writes, for kernels that are made in other ways.
class Frame {
 public:
  // `slots` of 64 bytes; `used`: numbers of the general registers that the code writes.
  Frame(int slots, std::vector<int> used);
  void enter(X86Context& context) const;
  void leave(X86Context& context) const;  // including the return

 private:
  int slots_;
  std::vector<int> saved_;
};

}  // namespace tenon::x86
