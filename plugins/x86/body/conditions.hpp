// What is known of conditions: of which numbers they hold, and of numbers where they do or do not.
#pragma once
#include <optional>

#include "x86/body/numbers.hpp"

namespace tenon::x86 {

// Of a comparison of numbers of one type, f32 or 32-bit integers, by their ids; of And, Or, Not of conditions. `type`
// of either: of the value that both are of, if they are of one.
Numbers compared(Name op, ElementType type, snippet::ValueId a, snippet::ValueId b, const std::vector<Numbers>& all);
Numbers both(const Numbers& a, const Numbers& b);
Numbers either(const Numbers& a, const Numbers& b, ElementType type, const std::vector<Numbers>& all);
Numbers opposite(const Numbers& condition);

std::optional<bool> truth_of(const Numbers& condition);
// Of conditions of one value: does `b` hold wherever `a` does?
bool implies(const Numbers& a, const Numbers& b);
// And does it hold nowhere that `a` does?
bool excludes(const Numbers& a, const Numbers& b);

// Numbers `x`, those of value `id`, where the condition holds, and where it does not.
Numbers where_it_holds(Numbers x, snippet::ValueId id, const Numbers& condition);
Numbers where_it_does_not(Numbers x, snippet::ValueId id, ElementType type, const Numbers& condition);

}  // namespace tenon::x86
