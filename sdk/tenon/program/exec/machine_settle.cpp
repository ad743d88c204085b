#include <tenon/program/exec/machine_internal.hpp>

namespace tenon::program::detail {

Result<std::vector<SettledCall>> Machine::settle(std::span<std::byte* const> buffers, const RunWith& with) {
  std::vector<SettledCall> calls;
  if (options_.statistics || with.observer) return calls;
  TENON_OK(set_memory(buffers, with), "program '", program_.name, "'");
  for (const Instr& instr : code_.instrs) {
    if (instr.op == Op::end) return calls;
    if (instr.op != Op::call_plain) break;
    const CallContext& context = main_.frame.as<CallContext>(instr.to);
    if (const auto move = settled_move(instr.plain)) {
      calls.push_back({move, context.scalars.data()});
      continue;
    }
    auto* const settling = dynamic_cast<SettlingState*>(context.state);
    if (!settling) break;
    TENON_TRY(settled, settling->settle(context, calls), "program '", program_.name, "'");
    if (!settled) break;
  }
  return std::vector<SettledCall>();
}

}  // namespace tenon::program::detail
