// Names of linear-kernel instructions that are no operators of a body, interned once: for passes of a plugin that
// search for them, beside the rows of its emitter table.
#pragma once
#include <tenon/support/name.hpp>

namespace tenon::snippet {

inline const Name kAddParameter("AddParameter"), kHeadLanes("HeadLanes"), kLoopBegin("LoopBegin"), kLoopEnd("LoopEnd"),
    kReload("Reload"), kSpill("Spill"), kTailBegin("TailBegin"), kTailEnd("TailEnd"), kWhenBegin("WhenBegin"),
    kWhenEnd("WhenEnd");
inline const Name kHolds("holds");

// Whether the instruction begins, or ends, a loop, a tail or a when.
inline bool begins_region(Name op) { return op == kLoopBegin || op == kTailBegin || op == kWhenBegin; }
inline bool ends_region(Name op) { return op == kLoopEnd || op == kTailEnd || op == kWhenEnd; }

}  // namespace tenon::snippet
