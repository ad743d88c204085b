// Inside the room: non-temporal stores.
#pragma once
#include <cstddef>

namespace tenon::program::detail {

// Copies a row of bytes: whole lines by non-temporal stores, the parts of lines at its ends by ordinary ones.
// Non-temporal stores are not ordered with others until end_of_lines().
using MoveRow = void (*)(std::byte* to, const std::byte* from, size_t bytes);
MoveRow non_temporal_row();
void end_of_lines();

}  // namespace tenon::program::detail
