// What `tenon run --stats` tells: where time and bytes went.
#pragma once
#include <vector>

#include "session.hpp"

namespace tenon::cli {

// Prints the times by operator of one run, the generated kernels, and memory; adds them to `document`.
void say_statistics(const CompiledModel& model, const std::vector<OpProfile>& profile, const Session& session,
                    Json& document);

// With so many digits behind the point.
std::string fixed(double value, int digits);

}  // namespace tenon::cli
