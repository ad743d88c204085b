#include "x86/passes/uses.hpp"

#include "x86/names.hpp"

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

void Uses::Places::reserve() {
  size_t begin = 0;
  for (Range& one : ranges) {
    const size_t count = one.end;
    one.begin = one.end = begin;
    begin += count;
  }
  places.resize(begin);
}

Uses::Uses(const LinearKernel& kernel)
    : writers_{std::vector<Places::Range>(kernel.registers.size()), {}},
      readers_{std::vector<Places::Range>(kernel.registers.size()), {}} {
  static const Name kStore("Store");
  int borders = 0;
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    const Instruction& one = kernel.body[i];
    borders_.push_back(borders += is_border(one.op));
    if (one.op == kStore) stores_.push_back(i);
    for (const RegisterId id : one.out) writers_.count(id);
    for_each_read(one, [&](RegisterId id) { readers_.count(id); });
  }
  writers_.reserve(), readers_.reserve();
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    for (const RegisterId id : kernel.body[i].out) writers_.add(id, i);
    for_each_read(kernel.body[i], [&](RegisterId id) { readers_.add(id, i); });
  }
}

bool Uses::is_one_between(std::span<const size_t> places, size_t one, size_t other) {
  const auto next = std::ranges::upper_bound(places, one);
  return next != places.end() && *next < other;
}

Instruction* reader_of(LinearKernel& kernel, const Uses& uses, size_t at, RegisterId id,
                       std::span<const RegisterId> kept, bool stores) {
  const size_t reader = uses.readers(id)[0];
  if (reader <= at || !uses.in_one_stretch(at, reader) || (stores && uses.stores_between(at, reader))) return nullptr;
  const auto is_written = [&](RegisterId one) { return one >= 0 && uses.is_written_between(one, at, reader); };
  return std::ranges::any_of(kept, is_written) ? nullptr : &kernel.body[reader];
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
    const bool stays = one.memory && one.op != kLoad && one.op != kBroadcastLoad;
    if (stays || one.out.empty() || !std::ranges::all_of(one.out, is_unread)) continue;
    gone[i] = 1;
    for (const RegisterId id : one.in) --reads[static_cast<size_t>(id)];
  }
  erase_marked(kernel, gone);
}

}  // namespace tenon::x86
