// Prefetches among the stores of a loop.
#include <ranges>

#include "x86/names.hpp"
#include "x86/passes/internal.hpp"

namespace tenon::x86 {
namespace {

bool is_streaming(const Instruction& one) { return is_past_caches(one.op); }

// Of one iteration, whose instructions come in the order `body`.
std::vector<Instruction> spread(std::vector<Instruction> body) {
  std::vector<Instruction> fetches, made;
  for (const Instruction& one : body)
    if (is_prefetch(one.op)) fetches.push_back(one);
  const auto stores = static_cast<size_t>(std::ranges::count_if(body, is_streaming));
  if (fetches.empty() || stores < 2) return body;
  size_t fetched = 0, stored = 0;
  for (Instruction& one : body) {
    if (is_prefetch(one.op)) continue;
    if (is_streaming(one))
      for (++stored; fetched * stores < stored * fetches.size(); ++fetched) made.push_back(std::move(fetches[fetched]));
    made.push_back(std::move(one));
  }
  return made;
}

}  // namespace

void spread_prefetches(LinearKernel& kernel) {
  for_each_stretch(kernel, [](std::vector<Instruction>& stretch, Name border) {
    if (border == kLoopEnd) stretch = spread(std::move(stretch));
  });
}

}  // namespace tenon::x86
