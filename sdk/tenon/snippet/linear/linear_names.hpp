// Instructions of linear kernels that are no operators of a body, interned once: what passes of a plugin look for
// beside the rows of its emitter table.
#pragma once
#include <tenon/support/name.hpp>

namespace tenon::snippet {

inline const Name kAddParameter("AddParameter"), kHeadLanes("HeadLanes"), kLoopBegin("LoopBegin"), kLoopEnd("LoopEnd"),
    kReload("Reload"), kSpill("Spill"), kTailBegin("TailBegin"), kTailEnd("TailEnd");

}  // namespace tenon::snippet
