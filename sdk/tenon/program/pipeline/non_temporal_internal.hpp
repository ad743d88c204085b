// Inside the room: what is stored non-temporally.
#pragma once
#include <cstddef>

namespace tenon::program::detail {

// A row of bytes: whole lines by non-temporal stores, what is left of lines that others share as usual. Such stores are
// in no order with others until end_of_lines().
using MoveRow = void (*)(std::byte* to, const std::byte* from, size_t bytes);
MoveRow non_temporal_row();
void end_of_lines();

}  // namespace tenon::program::detail
