// Evaluators of the machine's operators (operators.hpp) over logical indices; tests compare the simulator with them.
#pragma once
#include <tenon/reference/evaluator.hpp>

namespace tenon::nvdla {

Result<void> evaluate_conv(EvalContext& context);
Result<void> evaluate_sdp(EvalContext& context);
Result<void> evaluate_pdp(EvalContext& context);

}  // namespace tenon::nvdla
