// Memory for values that one step of a run makes and later ones read: one arena for all, planned by lifetime, so that
// runs after the first allocate nothing for them.
//
//   const ValuePlan plan({{kF32, {64, 112, 112}, 0, 2}, ...});
//   TENON_TRY(places, plan.places());       // one for each concurrent run; steps write there
#pragma once
#include <cstddef>
#include <vector>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon {

// A value of known extents, made at step `first` and last read at step `last`.
struct PassedValue {
  ElementType element;  // invalid, strings or packed bits: gets no place
  Dims dims;
  size_t first = 0, last = 0;
};

// Immutable; thread-safe.
class TENON_API ValuePlan {
 public:
  explicit ValuePlan(std::vector<PassedValue> values);

  size_t bytes() const { return bytes_; }
  size_t lower_bound_bytes() const { return lower_bound_bytes_; }  // of any plan
  // An uninitialised tensor for each value, absent for those without a place. Their bytes live as long as any of them.
  Result<std::vector<Datum>> places() const;

 private:
  std::vector<PassedValue> values_;
  std::vector<size_t> offsets_;
  size_t bytes_ = 0, lower_bound_bytes_ = 0;
};

// Whether `datum` holds a tensor of this type, so that a value of this type may be written there.
TENON_API bool is_place_for(const Datum& datum, ElementType element, const Dims& dims);
// Copies the value into the bytes of `to` where it is a place for it, else into new ones.
TENON_API Result<void> copy_value(const Datum& from, Datum& to);

}  // namespace tenon
