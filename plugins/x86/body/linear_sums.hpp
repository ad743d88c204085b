// Integers as linear sums: values times constants plus a constant, modulo a power of two.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include <tenon/snippet/body/body.hpp>

namespace tenon::x86 {

// constant + the sum of each value times its factor, modulo 2^bits.
struct LinearSum {
  static constexpr size_t kMostTerms = 4;

  std::vector<std::pair<snippet::ValueId, uint64_t>> terms = {};  // by value, ascending; no factor is 0
  uint64_t constant = 0;
  int bits = 64;

  static LinearSum of(snippet::ValueId value, int bits) { return {.terms = {{value, 1}}, .bits = bits}; }
  // Factors and constant reduced to `count` low bits, or fewer if the sum has fewer.
  LinearSum of_bits(int count) const;
  LinearSum times(uint64_t factor) const;
  auto operator<=>(const LinearSum&) const = default;
};

// Has the smaller number of bits of the two.
LinearSum sum_of(const LinearSum& a, const LinearSum& b);

}  // namespace tenon::x86
