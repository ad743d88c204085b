// Tokens between the units, for the simulator and the race check.
#pragma once
#include <array>
#include <optional>
#include <string>

#include "vta/instruction.hpp"

namespace tenon::vta {

// Queues of tokens: one for each pair of neighbours and direction.
enum class TokenQueue : uint8_t { load_to_compute, compute_to_load, compute_to_store, store_to_compute };
inline constexpr size_t kTokenQueues = 4;
std::string_view token_queue_name(TokenQueue queue);  // "load -> compute" ...

// The queues that an instruction pops and pushes; at most two each.
struct TokenUse {
  std::optional<TokenQueue> pops[2], pushes[2];
};
// An error for a token of a neighbour that the unit does not have, such as pop_prev of the load unit.
Result<TokenUse> tokens_of(const Instruction& instruction);

}  // namespace tenon::vta
