// Inside of the room: how many threads this process may use.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace tenon::detail {

constexpr int kMostThreads = 4096;

// Processors of the hardware, the affinity mask and the quotas of control groups; 1 to kMostThreads.
int usable_threads();

// A number in decimal, with blanks around it or not; nullopt: it is none.
std::optional<int64_t> read_number(std::string_view text);

}  // namespace tenon::detail
