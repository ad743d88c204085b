// Inside of the room: what goes past the caches.
#pragma once
#include <cstddef>

namespace tenon::program::detail {

// A row of bytes: whole lines past the caches, what is left of lines that others share as usual. Such stores are in no
// order with others until end_of_lines().
using MoveRow = void (*)(std::byte* to, const std::byte* from, size_t bytes);
MoveRow row_past_caches();
void end_of_lines();

}  // namespace tenon::program::detail
