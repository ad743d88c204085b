// Evaluators of the machine's operators (operators.hpp), over logical indices: the oracle of the simulator.
#pragma once
#include <tenon/reference/evaluator.hpp>

namespace tenon::nvdla {

Result<void> evaluate_conv(EvalContext& context);
Result<void> evaluate_sdp(EvalContext& context);
Result<void> evaluate_pdp(EvalContext& context);

}  // namespace tenon::nvdla
