#include "vta/tokens.hpp"

namespace tenon::vta {
namespace {

// By unit: the queues that its prev and next pops and pushes refer to. None at the ends.
struct Neighbours {
  std::optional<TokenQueue> from_prev, from_next, to_prev, to_next;
};
Neighbours neighbours_of(UnitId unit) {
  switch (unit) {
    case UnitId::load: return {{}, TokenQueue::compute_to_load, {}, TokenQueue::load_to_compute};
    case UnitId::store: return {TokenQueue::compute_to_store, {}, TokenQueue::store_to_compute, {}};
    case UnitId::compute: break;
  }
  return {TokenQueue::load_to_compute, TokenQueue::store_to_compute, TokenQueue::compute_to_load,
          TokenQueue::compute_to_store};
}

}  // namespace

std::string_view token_queue_name(TokenQueue queue) {
  constexpr std::string_view kNames[] = {"load -> compute", "compute -> load", "compute -> store", "store -> compute"};
  return kNames[static_cast<size_t>(queue)];
}

Result<TokenUse> tokens_of(const Instruction& i) {
  const Neighbours at = neighbours_of(i.unit());
  TokenUse use;
  const auto take = [&](bool wanted, const std::optional<TokenQueue>& queue, std::optional<TokenQueue>& into,
                        std::string_view field) -> Result<void> {
    if (!wanted) return {};
    if (!queue)
      return error(Code::invalid_argument, field, ": the ", unit_name(i.unit()), " unit has no such neighbour");
    into = queue;
    return {};
  };
  TENON_OK(take(i.pop_prev, at.from_prev, use.pops[0], "pop_prev"));
  TENON_OK(take(i.pop_next, at.from_next, use.pops[1], "pop_next"));
  TENON_OK(take(i.push_prev, at.to_prev, use.pushes[0], "push_prev"));
  TENON_OK(take(i.push_next, at.to_next, use.pushes[1], "push_next"));
  return use;
}

}  // namespace tenon::vta
