// Drops a Round to f16 or bf16 whose only reader is a store to that type: the store rounds in the same way.
#include "x86/passes/uses.hpp"

namespace tenon::x86 {

void leave_rounding_to_stores(LinearKernel& kernel) {
  static const Name kRound("Round");
  if (!has_any(kernel, {kRound})) return;
  const Uses uses(kernel);
  std::vector<char> gone(kernel.body.size(), 0);
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    const Instruction& round = kernel.body[i];
    if (round.op != kRound || !uses.is_for_one(round.out[0])) continue;
    Instruction* const store = reader_of(kernel, uses, i, round.out[0], round.in, false);
    if (!store || store->op != kStore) continue;
    const std::string* to = round.attributes.find("to")->get_if<std::string>();
    if (!to || ElementType::parse(*to).value_or(ElementType()) != store->memory->element ||
        kernel.registers[static_cast<size_t>(round.in[0])].element != kF32)
      continue;
    store->in[0] = round.in[0];
    gone[i] = 1;
  }
  erase_marked(kernel, gone);
}

}  // namespace tenon::x86
