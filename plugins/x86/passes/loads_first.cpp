// Moves loads of inputs before the non-temporal stores of another row in the same iteration, so that they do not wait
// for these by 4 KB aliasing. Right because no such load reads a port that the kernel writes.
#include <algorithm>
#include <ranges>
#include <set>

#include "x86/passes/internal.hpp"

namespace tenon::x86 {
namespace {

bool shares(const auto& some, const auto& others) { return std::ranges::find_first_of(some, others) != some.end(); }

// Whether the order of the two matters because of their registers.
bool depend(const Instruction& one, const Instruction& other) {
  const auto addressed = [](const Instruction& by, const Instruction& of) {
    return of.memory &&
           std::ranges::any_of(by.out, [&](RegisterId id) { return id == of.memory->base || id == of.memory->index; });
  };
  return shares(one.out, other.in) || shares(one.in, other.out) || shares(one.out, other.out) ||
         addressed(one, other) || addressed(other, one);
}

class LoadsFirst {
 public:
  explicit LoadsFirst(const LinearKernel& kernel) : ports_(ports_of(kernel)), most_(kernel.lanes >= 16 ? 8 : 4) {
    for (const Instruction& one : kernel.body)
      if (writes_memory(one.op) || is_non_temporal(one.op)) written_.insert(port_of(one));
  }

  // Reorders the instructions `body` of an iteration.
  void order(std::span<Instruction> body) const {
    const auto stores = [](const Instruction& one) { return is_non_temporal(one.op); };
    const auto first = std::ranges::find_if(body, stores);
    if (first == body.end()) return;
    auto place = first - body.begin();
    int moved = 0;
    for (auto i = place + 1; i < std::ssize(body) && moved < most_; ++i) {
      const Instruction& one = body[static_cast<size_t>(i)];
      const auto before = std::ranges::subrange(body.begin() + place, body.begin() + i);
      if (!reads_input(one) ||
          std::ranges::any_of(before, [&](const Instruction& other) { return depend(one, other); }))
        continue;
      std::rotate(body.begin() + place, body.begin() + i, body.begin() + i + 1);
      ++place, ++moved;
    }
  }

 private:
  int port_of(const Instruction& one) const { return ports_[static_cast<size_t>(one.memory->base)]; }
  // An output that coincides with an input is another port; where it does, the rows read differ from the rows stored.
  bool reads_input(const Instruction& one) const {
    return reads_memory(one) && port_of(one) >= 0 && !written_.contains(port_of(one));
  }

  std::vector<int> ports_;
  std::set<int> written_;
  int most_;  // maximum number of loads that are moved, since their results occupy registers
};

}  // namespace

void loads_before_stores(LinearKernel& kernel) {
  const LoadsFirst loads(kernel);
  for_each_stretch(kernel, [&](std::span<Instruction> stretch, Name) { loads.order(stretch); });
}

}  // namespace tenon::x86
