// Which instructions of a stream are done when one begins, by tokens and the order within units alone.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include <tenon/support/result.hpp>

#include "vta/tokens.hpp"

namespace tenon::vta {

// Of each unit, how many of its instructions are known to be done.
using Clock = std::array<uint32_t, kUnits>;

struct StreamOrder {
  struct Entry {
    UnitId unit = UnitId::compute;
    uint32_t place = 0;  // in its unit
    Clock before{};      // when it begins
  };
  std::vector<Entry> entries;  // by instruction
  // Instructions that never begin, by unit the first one: it waits for a token that nobody pushes.
  std::vector<uint32_t> stuck;
  std::vector<uint32_t> left_over;  // instructions whose token nobody pops

  // Is `first` done when `second` begins?
  bool ordered(uint32_t first, uint32_t second) const {
    const Entry& a = entries[first];
    return entries[second].before[static_cast<size_t>(a.unit)] > a.place;
  }
};

Result<StreamOrder> order_of(const std::vector<Instruction>& stream);

}  // namespace tenon::vta
