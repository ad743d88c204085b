// The statistics of `tenon run --stats` and `tenon report`: where time and bytes went.
#pragma once
#include <vector>

#include "session.hpp"

namespace tenon::cli {

// Prints one run's times by operator, the generated kernels, and memory; adds them to `document`.
void say_statistics(const CompiledModel& model, const std::vector<OpProfile>& profile, const Session& session,
                    Json& document);

// The generated kernels with their times in one run: {"op", "label", "name", "target", "operators", "parameters",
// "results", "constants", "bytes_unfused", "bytes_fused", "predicted_us" (0: not known), "measured_us", ...}.
Json kernels_to_json(const CompiledModel& model, const std::vector<OpProfile>& profile);

// With `digits` digits after the decimal point.
std::string fixed(double value, int digits);

}  // namespace tenon::cli
