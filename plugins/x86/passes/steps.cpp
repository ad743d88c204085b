// Pointers that lie a known step behind another, as those of rows that go side by side: the step becomes part of the
// addresses.
#include <algorithm>
#include <cstdint>
#include <ranges>
#include <set>

#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

class StepFolder {
 public:
  explicit StepFolder(LinearKernel& kernel) : kernel_(kernel), uses_(kernel) {
    for (const Loop& loop : kernel.loops)
      for (const Loop::Shift& shift : loop.shifts) moved_.insert(shift.pointer);
  }

  // From the last, so that a step from another step's end finds that still there.
  void run() {
    for (size_t i = kernel_.body.size(); i-- > 0;)
      if (fold(i)) kernel_.body.erase(kernel_.body.begin() + static_cast<std::ptrdiff_t>(i));
  }

 private:
  bool is_written_once(RegisterId id) const { return uses_.once(id) && !moved_.contains(id); }

  // The step at `at` into the addresses that have it, if that is all that reads it.
  bool fold(size_t at) {
    static const Name kAdd("AddParameter");
    const Instruction& step = kernel_.body[at];
    if (step.op != kAdd) return false;
    const auto bytes = kernel_.params[static_cast<size_t>(step.number)].known;
    const RegisterId from = step.in[0], made = step.out[0];
    if (!bytes || !is_written_once(made)) return false;
    size_t last = at;
    for (size_t i = 0; i < kernel_.body.size(); ++i) {
      const Instruction& one = kernel_.body[i];
      if (std::ranges::count(one.in, made) > 0 || (one.memory && one.memory->index == made)) return false;
      if (!one.memory || one.memory->base != made) continue;
      if (!fits(one.memory->displacement_bytes + *bytes)) return false;
      last = i;
    }
    if (!stays(from, at, last)) return false;
    for (Instruction& one : kernel_.body) {
      if (!one.memory || one.memory->base != made) continue;
      one.memory->base = from;
      one.memory->displacement_bytes += *bytes;
    }
    return true;
  }

  static bool fits(int64_t displacement_bytes) {
    return displacement_bytes == static_cast<int32_t>(displacement_bytes);
  }

  // Does `pointer` stand where it stood at `from`, up to `to`? Loops move pointers at their ends.
  bool stays(RegisterId pointer, size_t from, size_t to) const {
    int depth = 0;
    for (size_t i = from + 1; i <= to; ++i) {
      const Instruction& one = kernel_.body[i];
      if (std::ranges::count(one.out, pointer) > 0) return false;
      if (one.op == "LoopBegin") {
        ++depth;
        const Loop& loop = kernel_.loops[static_cast<size_t>(one.number)];
        if (std::ranges::count(loop.shifts, pointer, &Loop::Shift::pointer) > 0) return false;
      }
      if (one.op == "LoopEnd" && --depth < 0) return false;
    }
    return true;
  }

  LinearKernel& kernel_;
  const Uses uses_;
  std::set<RegisterId> moved_;
};

}  // namespace

void fold_steps(LinearKernel& kernel) {
  if (has_any(kernel, {kAddParameter})) StepFolder(kernel).run();
}

}  // namespace tenon::x86
