// Instructions of linear kernels that are no operators of a body, interned once: what passes of a plugin look for
// beside the rows of its emitter table.
#pragma once
#include <tenon/support/name.hpp>

namespace tenon::snippet {

inline const Name kAddParameter("AddParameter"), kHeadLanes("HeadLanes"), kLoopBegin("LoopBegin"), kLoopEnd("LoopEnd"),
    kReload("Reload"), kSpill("Spill"), kTailBegin("TailBegin"), kTailEnd("TailEnd"), kWhenBegin("WhenBegin"),
    kWhenEnd("WhenEnd");
inline const Name kHolds("holds");

// Does a loop, a tail or a when begin, or end?
inline bool begins_region(Name op) { return op == kLoopBegin || op == kTailBegin || op == kWhenBegin; }
inline bool ends_region(Name op) { return op == kLoopEnd || op == kTailEnd || op == kWhenEnd; }

}  // namespace tenon::snippet
