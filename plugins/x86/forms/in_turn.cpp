// A function is a chain of instructions that wait for one another, and copies of a loop's body compute it of several
// vectors. One behind the other, a processor sees no more than three or four chains at once, of which most wait; an
// instruction of each in turn, it finds work in all of them (docs/performance/functions.md). They are one instruction
// of the kernel, so that each has registers of its own:
//
//   %3:f32 = Erf %1             %3:f32, %4:f32 = ErfInTurn2 %1, %2
//   %4:f32 = Erf %2
//
// Where the machine has no row for several, they stay as they are.
#include <algorithm>
#include <optional>

#include "x86/emitters/rows.hpp"
#include "x86/forms/forms.hpp"

namespace tenon::x86 {
namespace {

using snippet::Instruction;
using snippet::LinearKernel;
using snippet::RegisterId;
using snippet::RegisterIds;

bool meet(const RegisterIds& a, const RegisterIds& b) {
  return std::ranges::any_of(a, [&](RegisterId id) { return std::ranges::find(b, id) != b.end(); });
}

bool is_function(const Instruction& one) {
  return !one.memory && !one.in.empty() && one.out.size() == 1 && !meet(one.in, one.out);
}

bool are_alike(const LinearKernel& kernel, const Instruction& a, const Instruction& b) {
  const auto element = [&](RegisterId id) { return kernel.registers[static_cast<size_t>(id)].element; };
  return a.op == b.op && a.label == b.label && a.attributes == b.attributes && is_function(a) && is_function(b) &&
         std::ranges::equal(a.in, b.in, {}, element, element) && element(a.out[0]) == element(b.out[0]);
}

// The `vectors` instructions from `first` on as one, without its operator, if none of them writes what another reads or
// writes.
std::optional<Instruction> joined(const LinearKernel& kernel, size_t first, size_t vectors) {
  if (first + vectors > kernel.body.size()) return std::nullopt;
  Instruction all = kernel.body[first];
  for (size_t i = first + 1; i < first + vectors; ++i) {
    const Instruction& next = kernel.body[i];
    if (!are_alike(kernel, kernel.body[first], next) || meet(all.in, next.out) || meet(all.out, next.out) ||
        meet(all.out, next.in))
      return std::nullopt;
    for (const RegisterId id : next.in) all.in.push_back(id);
    all.out.push_back(next.out[0]);
  }
  return all;
}

}  // namespace

LinearKernel FormMaker::joined_functions(const LinearKernel& kernel, size_t most) const {
  const auto has_row = [&](const Instruction& one) {
    std::vector<ElementType> in, out;
    for (const RegisterId id : one.in) in.push_back(kernel.registers[static_cast<size_t>(id)].element);
    for (const RegisterId id : one.out) out.push_back(kernel.registers[static_cast<size_t>(id)].element);
    return table_.find({one.op, in, out, one.attributes}, target_) != nullptr;
  };
  LinearKernel made = kernel;
  made.body.clear();
  for (size_t i = 0; i < kernel.body.size();) {
    size_t taken = 1;
    Instruction next = kernel.body[i];
    for (size_t vectors = most; vectors > 1 && taken == 1; vectors /= 2) {
      std::optional<Instruction> all = joined(kernel, i, vectors);
      if (!all) continue;
      all->op = in_turn(all->op, vectors);
      if (has_row(*all)) next = *std::move(all), taken = vectors;
    }
    made.body.push_back(std::move(next));
    i += taken;
  }
  return made;
}

LinearKernel FormMaker::functions_in_turn(LinearKernel kernel) const {
  size_t before = 0;  // instructions of the last try
  for (const size_t most : {4, 2}) {
    LinearKernel made = joined_functions(kernel, most);
    if (made.body.size() == kernel.body.size() || made.body.size() == before) return kernel;
    before = made.body.size();
    // What gives way becomes further instructions.
    LinearKernel shifted = made;
    snippet::insert_shifts(shifted);
    const auto tried = allocated(shifted);
    if (tried.ok() && tried->body.size() == shifted.body.size()) return made;
  }
  return kernel;
}

}  // namespace tenon::x86
