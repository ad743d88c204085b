// What `tenon run --stats` and `tenon report` tell: where time and bytes went.
#pragma once
#include <vector>

#include "session.hpp"

namespace tenon::cli {

// Prints the times by operator of one run, the generated kernels, and memory; adds them to `document`.
void say_statistics(const CompiledModel& model, const std::vector<OpProfile>& profile, const Session& session,
                    Json& document);

// The generated kernels with what they took in one run: {"op", "label", "name", "target", "operators", "parameters",
// "results", "constants", "bytes_unfused", "bytes_fused", "predicted_us" (0: not known), "measured_us", ...}.
Json kernels_to_json(const CompiledModel& model, const std::vector<OpProfile>& profile);

// With so many digits behind the point.
std::string fixed(double value, int digits);

}  // namespace tenon::cli
