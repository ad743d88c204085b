// The integers of a type for which a condition holds, as long as there are few stretches of them.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include <tenon/support/name.hpp>
#include <tenon/tensor/element_type.hpp>

namespace tenon::x86 {

class WholeSet {
 public:
  // Those below the number of so many bits, it, and those above it.
  WholeSet(ElementType type, uint64_t bits, bool below, bool equal, bool above);

  WholeSet common(const WholeSet& other) const;
  WholeSet joined(const WholeSet& other) const { return others().common(other.others()).others(); }
  WholeSet others() const;
  // Its numbers as -x, x - y and x + y, modulo 2^bits.
  WholeSet negated() const;
  WholeSet less(uint64_t y) const { return more(uint64_t{0} - y); }
  WholeSet more(uint64_t y) const;
  bool is_empty() const { return stretches_.empty(); }
  size_t stretches() const { return stretches_.size(); }
  bool operator==(const WholeSet& other) const { return stretches_ == other.stretches_; }

  // x is of the set where `op` holds of x and the number of so many bits; without a number, of x and x.
  struct Comparison {
    Name op;
    std::optional<uint64_t> number = std::nullopt;
  };
  std::optional<Comparison> as_comparison() const;

 private:
  // As i64 has them in the same order: those of u64 less 2^63.
  struct Stretch {
    int64_t first, last;
    bool operator==(const Stretch&) const = default;
  };

  explicit WholeSet(ElementType type);  // none
  int64_t number_of(uint64_t bits) const;
  uint64_t bits_of(int64_t number) const;
  void add(const Stretch& next);
  WholeSet of(std::vector<Stretch> stretches) const;

  ElementType type_;
  Stretch all_;
  std::vector<Stretch> stretches_;  // ascending, others between
};

}  // namespace tenon::x86
