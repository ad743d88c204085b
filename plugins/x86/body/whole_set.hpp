// The set of integers of a type for which a condition holds, as a small number of intervals.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include <tenon/support/name.hpp>
#include <tenon/tensor/element_type.hpp>

namespace tenon::x86 {

class WholeSet {
 public:
  // With these flags: the integers below the number with the bits `bits`, that number, and the integers above it.
  WholeSet(ElementType type, uint64_t bits, bool below, bool equal, bool above);

  WholeSet common(const WholeSet& other) const;
  WholeSet joined(const WholeSet& other) const { return others().common(other.others()).others(); }
  WholeSet others() const;
  // The sets of -x, x - y and x + y for x in this set, modulo 2^bits.
  WholeSet negated() const;
  WholeSet less(uint64_t y) const { return more(uint64_t{0} - y); }
  WholeSet more(uint64_t y) const;
  bool is_empty() const { return stretches_.empty(); }
  size_t stretches() const { return stretches_.size(); }
  bool operator==(const WholeSet& other) const { return stretches_ == other.stretches_; }

  // The comparison that holds exactly for x in the set: `op` of x and a number, given by its bits, or of x and x.
  struct Comparison {
    Name op;
    std::optional<uint64_t> number = std::nullopt;
  };
  std::optional<Comparison> as_comparison() const;

 private:
  // Bounds as i64 in the same order: for u64, minus 2^63.
  struct Stretch {
    int64_t first, last;
    bool operator==(const Stretch&) const = default;
  };

  explicit WholeSet(ElementType type);  // the empty set
  int64_t number_of(uint64_t bits) const;
  uint64_t bits_of(int64_t number) const;
  void add(const Stretch& next);
  WholeSet of(std::vector<Stretch> stretches) const;

  ElementType type_;
  Stretch all_;
  std::vector<Stretch> stretches_;  // ascending, not adjacent
};

}  // namespace tenon::x86
