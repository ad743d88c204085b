#include "x86/forms/assembly.hpp"

#include <algorithm>
#include <bitset>

#include <tenon/snippet/linear/emit.hpp>

#include "x86/passes/passes.hpp"

namespace tenon::x86 {
namespace {

using codegen::RegisterFile;
using Xbyak::util::rax;
using Xbyak::util::rsp;

constexpr int kStackPageBytes = 4096, kSlotBytes = 64;
constexpr size_t kMostVectors = 32;

bool callee_saves(int number) {
  using Xbyak::Operand;
  return number == Operand::RBX || number == Operand::RBP || (number >= Operand::R12 && number <= Operand::R15);
}

std::vector<int> general_registers(const snippet::LinearKernel& kernel) {
  std::vector<int> used;
  for (const codegen::PhysicalRegister& place : kernel.places)
    if (place.file == RegisterFile::general && place.number >= 0) used.push_back(place.number);
  for (const snippet::Instruction& instruction : kernel.body)
    used.insert(used.end(), instruction.generals.begin(), instruction.generals.end());
  return used;
}

// Vector registers of the target that no instruction uses.
Result<std::vector<int>> unused_vectors(const snippet::LinearKernel& kernel, const TargetDescription& target) {
  TENON_TRY(pool, register_pool(target));
  std::bitset<kMostVectors> used;
  for (const codegen::PhysicalRegister& place : kernel.places)
    if (place.file == RegisterFile::vector && place.number >= 0) used.set(static_cast<size_t>(place.number));
  for (const snippet::Instruction& instruction : kernel.body)
    for (const int number : instruction.vectors) used.set(static_cast<size_t>(number));
  std::vector<int> unused;
  for (const int number : pool.of(RegisterFile::vector))
    if (!used.test(static_cast<size_t>(number))) unused.push_back(number);
  return unused;
}

// The label in listings of code that belongs to no instruction.
constexpr std::string_view kFrameLabel = "frame";

Result<CodeObject> write(const snippet::LinearKernel& kernel, const codegen::JitterTable& table,
                         const TargetDescription& target) {
  const Isa isa = isa_of(target);
  codegen::ConstantPool constants(constant_copies(isa));
  X86Context context(isa, constants);
  const Frame frame(kernel.frame_slots, general_registers(kernel));
  context.mark(kFrameLabel, "enter");
  frame.enter(context);
  TENON_TRY(unused, unused_vectors(kernel, target));
  context.keep_constants_in(std::move(unused));
  TENON_OK(snippet::emit(kernel, table, target, context));
  if (has_streaming_stores(kernel)) {
    context.mark(kFrameLabel, "fence");
    context.gen().sfence();
  }
  context.mark(kFrameLabel, "leave");
  frame.leave(context);
  context.place_kept(kFrameLabel);
  return context.finish(kernel.name);
}

}  // namespace

Frame::Frame(int slots, std::vector<int> used) : slots_(slots), saved_(std::move(used)) {
  std::sort(saved_.begin(), saved_.end());
  saved_.erase(std::unique(saved_.begin(), saved_.end()), saved_.end());
  std::erase_if(saved_, [](int number) { return !callee_saves(number); });
}

// The caller's rsp is at the end of the slots.
void Frame::enter(X86Context& c) const {
  auto& g = c.gen();
  for (const int number : saved_) g.push(c.general(number));
  if (slots_ == 0) return;
  g.mov(rax, rsp);
  // Touches each page, so that a stack overflow hits the guard page.
  int bytes = (slots_ + 1) * kSlotBytes;
  for (; bytes > kStackPageBytes; bytes -= kStackPageBytes) {
    c.gen().sub(rsp, kStackPageBytes);
    c.gen().or_(g.dword[rsp], 0);
  }
  g.sub(rsp, bytes);
  g.and_(rsp, -kSlotBytes);
  g.mov(c.slot(slots_), rax);
}

void Frame::leave(X86Context& c) const {
  auto& g = c.gen();
  g.vzeroupper();
  if (slots_ > 0) g.mov(rsp, c.slot(slots_));
  for (auto number = saved_.rbegin(); number != saved_.rend(); ++number) g.pop(c.general(*number));
  g.ret();
}

Result<CodeObject> assemble(const snippet::LinearKernel& kernel, const codegen::JitterTable& table,
                            const TargetDescription& target) {
  try {
    return write(kernel, table, target);
  } catch (const Xbyak::Error& failure) {
    return error(Code::internal, "assembling kernel '", kernel.name, "': ", failure.what());
  }
}

}  // namespace tenon::x86
