// Inside the room: how many threads this process may use.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace tenon::detail {

constexpr int kMostThreads = 4096;

// The minimum of hardware processors, the affinity mask and the quotas of control groups; 1 to kMostThreads.
int usable_threads();

// A decimal number, optionally surrounded by blanks; nullopt: it is not one.
std::optional<int64_t> read_number(std::string_view text);

}  // namespace tenon::detail
