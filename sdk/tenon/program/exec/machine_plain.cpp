// Loops whose bodies consist only of calls on the plain path, with or without hints: an iteration looks nothing up.
#include <array>
#include <tuple>
#include <type_traits>
#include <utility>

#include <tenon/program/exec/arithmetic_internal.hpp>
#include <tenon/program/exec/compute_internal.hpp>
#include <tenon/program/exec/machine_internal.hpp>
#include <tenon/program/exec/prefetch_internal.hpp>

namespace tenon::program::detail {

namespace {

// A register that a loop steps, by address.
struct Stepped {
  int64_t* at;
  int64_t by;

  Stepped() = default;
  Stepped(std::byte* frame, const Step& step) : at(reinterpret_cast<int64_t*>(frame + step.place)), by(step.by) {}
  void operator()() const { *at = add(*at, by); }
};

// A call with its data preloaded.
struct Ready {
  Result<void> (*plain)(CallContext&);
  CallContext* context;

  Ready() = default;
  Ready(std::byte* frame, const PlainCall& call)
      : plain(call.plain), context(reinterpret_cast<CallContext*>(frame + call.context)) {}
};

}  // namespace

bool Machine::run_plain(Worker& worker, const LoopCode& loop) {
  if (hints_ && loop.has_hinted_calls()) return run_hinted(worker, loop);
  if (loop.plain != loop.body) return run_many(worker, loop);
  const int32_t calls = loop.last_plain - loop.first_plain;
  const int32_t steps = loop.steps_by_numbers() && !loop.has_turns() ? loop.last_step - loop.first_step : -1;
  const auto with_steps = [&]<int kCalls>(std::integral_constant<int, kCalls>) {
    switch (steps) {
      case 1: return run_few<kCalls, 1>(worker, loop);
      case 2: return run_few<kCalls, 2>(worker, loop);
      case 3: return run_few<kCalls, 3>(worker, loop);
      case 4: return run_few<kCalls, 4>(worker, loop);
      case 5: return run_few<kCalls, 5>(worker, loop);
      default: return run_many(worker, loop);
    }
  };
  if (calls == 1) return with_steps(std::integral_constant<int, 1>());
  if (calls == 2) return with_steps(std::integral_constant<int, 2>());
  return run_many(worker, loop);
}

// The data of calls and steps stays in processor registers, as far as they suffice.
template <int kCalls, int kSteps>
bool Machine::run_few(Worker& worker, const LoopCode& loop) {
  Frame& f = worker.frame;
  const PlainCall* const first = code_.plain_calls.data() + loop.first_plain;
  std::array<Ready, kCalls> calls;
  for (size_t i = 0; i < calls.size(); ++i) calls[i] = Ready(f.data(), first[i]);
  std::array<Stepped, kSteps> steps;
  for (size_t i = 0; i < steps.size(); ++i)
    steps[i] = Stepped(f.data(), code_.steps[static_cast<size_t>(loop.first_step) + i]);
  for (int64_t left = f.at(loop.left);;) {
    for (const Ready& call : calls)
      if (Result<void> result = call.plain(*call.context); !result.ok()) [[unlikely]]
        return fail_plain(worker, loop, left, first[&call - calls.data()], std::move(result).error());
    if (--left == 0) return true;
    std::apply([](const auto&... step) { (step(), ...); }, steps);  // unrolled
  }
}

// All iterations: `run(left)` makes the calls of one; `left` counts the remaining iterations including this one.
template <class Run>
bool Machine::for_iterations(Worker& worker, const LoopCode& loop, const Run& run) {
  Frame& f = worker.frame;
  if (loop.plain == loop.body && loop.steps_by_numbers()) {
    std::byte* const frame = f.data();
    const Step *const first = code_.steps.data() + loop.first_step, *const last = code_.steps.data() + loop.last_step;
    int64_t number = loop.first_turn, to_turn = loop.to_first_turn;  // never 0 where there is none
    for (int64_t left = f.at(loop.left);;) {
      if (!run(left)) return false;
      if (--left == 0) return true;
      add_each(frame, first, last);
      if (--to_turn == 0) {
        to_turn = code_.turns[static_cast<size_t>(number)].next;
        number = turn(frame, code_, loop, number);
      }
    }
  }
  if (loop.plain == loop.body) {
    for (int64_t left = f.at(loop.left);; step_registers(f, code_, loop)) {
      if (!run(left)) return false;
      if (--left == 0) return true;
    }
  }
  const Instr *const begin = code_.instrs.data() + loop.body, *const end = code_.instrs.data() + loop.plain;
  do {
    for (const Instr* i = begin; i != end; ++i) compute(f, code_, *i);
    if (!run(f.at(loop.left))) return false;
  } while (next_iteration(f, code_, loop));
  return true;
}

bool Machine::run_many(Worker& worker, const LoopCode& loop) {
  std::byte* const frame = worker.frame.data();
  const PlainCall* const first = code_.plain_calls.data() + loop.first_plain;
  const PlainCall* const last = code_.plain_calls.data() + loop.last_plain;
  return for_iterations(worker, loop, [&](int64_t left) {
    for (const PlainCall* i = first; i != last; ++i)
      if (Result<void> result = i->plain(*reinterpret_cast<CallContext*>(frame + i->context)); !result.ok())
          [[unlikely]]
        return fail_plain(worker, loop, left, *i, std::move(result).error());
    return true;
  });
}

bool Machine::run_hinted(Worker& worker, const LoopCode& loop) {
  Frame& f = worker.frame;
  std::byte* const frame = f.data();
  const HintedCall* const first = code_.hinted_calls.data() + loop.first_hinted;
  const HintedCall* const last = code_.hinted_calls.data() + loop.last_hinted;
  return for_iterations(worker, loop, [&](int64_t left) {
    for (const HintedCall* i = first; i != last; ++i) {
      if (i->lines > 0) {
        const auto address = static_cast<uint64_t>(add(f.at(i->address), i->offset));
        if (i->writes)
          write_lines_soon(address, i->lines, i->rows, i->stride);
        else
          read_lines_soon(address, i->lines, i->rows, i->stride);
      }
      if (!i->call.plain) continue;
      if (Result<void> result = i->call.plain(*reinterpret_cast<CallContext*>(frame + i->call.context)); !result.ok())
          [[unlikely]]
        return fail_plain(worker, loop, left, i->call, std::move(result).error());
    }
    return true;
  });
}

bool Machine::fail_plain(Worker& worker, const LoopCode& loop, int64_t left, const PlainCall& call, Error e) {
  Frame& f = worker.frame;
  f.at(loop.value) += (f.at(loop.left) - left) * f.get(loop.step);
  const Instr& instr = code_.instrs[static_cast<size_t>(call.instr)];
  return fail_call(worker, code_.sites[static_cast<size_t>(instr.index)], std::move(e));
}

}  // namespace tenon::program::detail
