// Value ranges of conditions: for which numbers they hold, and the ranges of numbers where they do or do not hold.
#pragma once
#include <optional>

#include "x86/body/numbers.hpp"

namespace tenon::x86 {

// The condition of a comparison of numbers of one type, f32 or 32-bit integers, given by their ids; of And, Or, Not of
// conditions. `type` of either: the type of the value that both conditions are about, if it is the same.
Numbers compared(Name op, ElementType type, snippet::ValueId a, snippet::ValueId b, const std::vector<Numbers>& all);
Numbers both(const Numbers& a, const Numbers& b);
Numbers either(const Numbers& a, const Numbers& b, ElementType type, const std::vector<Numbers>& all);
Numbers opposite(const Numbers& condition);

std::optional<bool> truth_of(const Numbers& condition);
// For conditions about one value: whether `b` holds wherever `a` does.
bool implies(const Numbers& a, const Numbers& b);
// Whether `b` holds nowhere that `a` does.
bool excludes(const Numbers& a, const Numbers& b);

// The range of `x`, value `id`, where the condition holds, and where it does not.
Numbers where_it_holds(Numbers x, snippet::ValueId id, const Numbers& condition);
Numbers where_it_does_not(Numbers x, snippet::ValueId id, ElementType type, const Numbers& condition);

}  // namespace tenon::x86
