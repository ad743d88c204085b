// Pointers that are a known step from another one, such as those of rows processed side by side: the step becomes part
// of the displacement in addresses, and the AddParameter disappears.
#include <algorithm>
#include <cstdint>
#include <ranges>
#include <set>

#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

class StepFolder {
 public:
  explicit StepFolder(LinearKernel& kernel) : kernel_(kernel), uses_(kernel), gone_(kernel.body.size(), 0) {
    for (const Loop& loop : kernel.loops)
      for (const Loop::Shift& shift : loop.shifts) moved_.insert(shift.pointer);
  }

  // From the last step to the first, so that a step from another step's result still finds that.
  void run() {
    for (size_t i = kernel_.body.size(); i-- > 0;) gone_[i] = fold(i);
    erase_marked(kernel_, gone_);
  }

 private:
  bool is_written_once(RegisterId id) const { return uses_.once(id) && !moved_.contains(id); }

  // The readers of the pointer, including those of pointers whose step has been folded.
  std::vector<size_t> readers_of(RegisterId pointer) const {
    const auto own = uses_.readers(pointer);
    std::vector<size_t> all;
    std::ranges::copy_if(own, std::back_inserter(all), [&](size_t reader) { return !gone_[reader]; });
    if (const auto taken = taken_.find(pointer); taken != taken_.end())
      all.insert(all.end(), taken->second.begin(), taken->second.end());
    return all;
  }

  // Folds the step at `at` into the addresses that use it, if nothing else reads it.
  bool fold(size_t at) {
    const Instruction& step = kernel_.body[at];
    if (step.op != kAddParameter) return false;
    const auto bytes = kernel_.params[static_cast<size_t>(step.number)].known;
    const RegisterId from = step.in[0], made = step.out[0];
    if (!bytes || !is_written_once(made)) return false;
    const std::vector<size_t> readers = readers_of(made);
    const auto may_have_it = [&](size_t reader) {
      const Instruction& one = kernel_.body[reader];
      return std::ranges::count(one.in, made) == 0 && one.memory->index != made &&
             fits(one.memory->displacement_bytes + *bytes);
    };
    if (!std::ranges::all_of(readers, may_have_it)) return false;
    if (!stays(from, at, readers.empty() ? at : std::ranges::max(readers))) return false;
    for (const size_t reader : readers) {
      kernel_.body[reader].memory->base = from;
      kernel_.body[reader].memory->displacement_bytes += *bytes;
    }
    std::ranges::copy(readers, std::back_inserter(taken_[from]));
    return true;
  }

  static bool fits(int64_t displacement_bytes) {
    return displacement_bytes == static_cast<int32_t>(displacement_bytes);
  }

  // Whether `pointer` is unchanged between `from` and `to`. Loops advance pointers at their ends.
  bool stays(RegisterId pointer, size_t from, size_t to) const {
    int depth = 0;
    for (size_t i = from + 1; i <= to; ++i) {
      const Instruction& one = kernel_.body[i];
      if (!gone_[i] && std::ranges::count(one.out, pointer) > 0) return false;
      if (one.op == kLoopBegin) {
        ++depth;
        const Loop& loop = kernel_.loops[static_cast<size_t>(one.number)];
        if (std::ranges::count(loop.shifts, pointer, &Loop::Shift::pointer) > 0) return false;
      }
      if (one.op == kLoopEnd && --depth < 0) return false;
    }
    return true;
  }

  LinearKernel& kernel_;
  const Uses uses_;
  std::vector<char> gone_;
  std::map<RegisterId, std::vector<size_t>> taken_;  // readers, by the pointer from which they now start
  std::set<RegisterId> moved_;
};

}  // namespace

void fold_steps(LinearKernel& kernel) {
  if (has_any(kernel, {kAddParameter})) StepFolder(kernel).run();
}

}  // namespace tenon::x86
