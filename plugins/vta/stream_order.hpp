// The happens-before order of a stream's instructions, by tokens and the order within units alone.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include <tenon/support/result.hpp>

#include "vta/tokens.hpp"

namespace tenon::vta {

// For each unit, how many of its instructions are known to be complete.
using Clock = std::array<uint32_t, kUnits>;

struct StreamOrder {
  struct Entry {
    UnitId unit = UnitId::compute;
    uint32_t place = 0;  // position in its unit
    Clock before{};      // when it begins
  };
  std::vector<Entry> entries;  // by instruction
  // The first instruction of each unit that never begins, because it waits for a token that is never pushed.
  std::vector<uint32_t> stuck;
  std::vector<uint32_t> left_over;  // instructions whose token is never popped

  // Whether `first` is complete when `second` begins.
  bool ordered(uint32_t first, uint32_t second) const {
    const Entry& a = entries[first];
    return entries[second].before[static_cast<size_t>(a.unit)] > a.place;
  }
};

Result<StreamOrder> order_of(const std::vector<Instruction>& stream);

}  // namespace tenon::vta
