// The operators' verifiers.
#pragma once
#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>

namespace tenon::vta {

Result<void> verify_kernel(const Op& op);
Result<void> verify_zero(const Op& op);
Result<void> verify_gemm(const Op& op);
Result<void> verify_alu(const Op& op);
Result<void> verify_max(const Op& op);
Result<void> verify_narrow(const Op& op);
Result<void> verify_view(const Op& op);
Result<void> verify_stream(const Op& op);

}  // namespace tenon::vta
