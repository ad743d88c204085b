// Distributes the prefetches of a loop evenly before its non-temporal stores, if it has at least two of these.
#include <ranges>

#include "x86/names.hpp"
#include "x86/passes/internal.hpp"

namespace tenon::x86 {
namespace {

bool is_streaming(const Instruction& one) { return is_non_temporal(one.op); }

// Reorders the instructions `body` of one iteration.
void spread(std::span<Instruction> body) {
  const auto stores = static_cast<size_t>(std::ranges::count_if(body, is_streaming));
  if (stores < 2) return;
  std::vector<Instruction> fetches, made;
  for (Instruction& one : body)
    if (is_prefetch(one.op)) fetches.push_back(std::move(one));
  if (fetches.empty()) return;
  made.reserve(body.size());
  size_t fetched = 0, stored = 0;
  for (Instruction& one : body) {
    if (is_prefetch(one.op)) continue;
    if (is_streaming(one))
      for (++stored; fetched * stores < stored * fetches.size(); ++fetched) made.push_back(std::move(fetches[fetched]));
    made.push_back(std::move(one));
  }
  std::ranges::move(made, body.begin());
}

}  // namespace

void spread_prefetches(LinearKernel& kernel) {
  if (!has_streaming_stores(kernel) || std::ranges::none_of(kernel.body, is_prefetch, &Instruction::op)) return;
  for_each_stretch(kernel, [](std::span<Instruction> stretch, Name border) {
    if (border == kLoopEnd) spread(stretch);
  });
}

}  // namespace tenon::x86
