#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

template <class Read>
void for_each_read(const Instruction& one, Read&& read) {
  for (const RegisterId id : one.in) read(id);
  if (one.memory)
    for (const RegisterId id : {one.memory->base, one.memory->index})
      if (id >= 0) read(id);
}

}  // namespace

Uses::Uses(const LinearKernel& kernel) : registers_(kernel.registers.size()), borders_(kernel.body.size()) {
  int borders = 0;
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    const Instruction& one = kernel.body[i];
    borders_[i] = borders += is_border(one.op);
    for (const RegisterId id : one.out) {
      Register& written = registers_[static_cast<size_t>(id)];
      ++written.writes, written.maker = i;
    }
    for_each_read(one, [&](RegisterId id) { ++registers_[static_cast<size_t>(id)].readers_end; });
  }
  size_t begin = 0;
  for (Register& one : registers_) {
    const size_t count = one.readers_end;
    one.readers_begin = one.readers_end = begin;
    begin += count;
  }
  readers_.resize(begin);
  for (size_t i = 0; i < kernel.body.size(); ++i)
    for_each_read(kernel.body[i],
                  [&](RegisterId id) { readers_[registers_[static_cast<size_t>(id)].readers_end++] = i; });
}

Instruction* reader_of(LinearKernel& kernel, const Uses& uses, size_t at, RegisterId id,
                       std::span<const RegisterId> kept, bool stores) {
  static const Name kStore("Store");
  const size_t reader = uses.readers(id)[0];
  if (reader <= at || !uses.in_one_stretch(at, reader)) return nullptr;
  for (size_t i = at + 1; i < reader; ++i) {
    const Instruction& between = kernel.body[i];
    if (stores && between.op == kStore) return nullptr;
    if (std::ranges::find_first_of(between.out, kept) != between.out.end()) return nullptr;
  }
  return &kernel.body[reader];
}

void erase_marked(LinearKernel& kernel, const std::vector<char>& gone) {
  size_t i = 0;
  std::erase_if(kernel.body, [&](const Instruction&) { return gone[i++] != 0; });
}

void drop_unread(LinearKernel& kernel, const Uses& before) {
  std::vector<int> reads(kernel.registers.size(), 0);
  for (const Instruction& one : kernel.body)
    for_each_read(one, [&](RegisterId id) { ++reads[static_cast<size_t>(id)]; });
  const auto is_unread = [&](RegisterId id) {
    return kernel.registers[static_cast<size_t>(id)].file != codegen::RegisterFile::general &&
           reads[static_cast<size_t>(id)] == 0 && before.is_read(id);
  };
  std::vector<char> gone(kernel.body.size(), 0);
  for (size_t i = kernel.body.size(); i-- > 0;) {
    const Instruction& one = kernel.body[i];
    if (one.memory || one.out.empty() || !std::ranges::all_of(one.out, is_unread)) continue;
    gone[i] = 1;
    for (const RegisterId id : one.in) --reads[static_cast<size_t>(id)];
  }
  erase_marked(kernel, gone);
}

}  // namespace tenon::x86
