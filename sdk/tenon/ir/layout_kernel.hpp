// Which layouts a target's kernels take and give: what the pass assign-layouts chooses from.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/ir/value_layout.hpp>

namespace tenon {

// What a kernel leaves in the padding of its results.
enum class PadEffect : uint8_t {
  zero,   // writes zeros
  same,   // what the operands' padding gives: zero only where all are zero, dirty otherwise
  dirty,  // anything
};

// The attribute (a text) by which an operator says how the reference is to run it in layouts; any operator may have it.
// "padded": over the padded extents of its operands, as a blocked kernel does. Otherwise in logical indices.
inline constexpr std::string_view kLayoutKernelAttribute = "layout.kernel";
inline constexpr std::string_view kPaddedKernel = "padded";

// One way in which a target runs an operator.
struct LayoutKernel {
  struct Port {
    std::string layout;  // as Layout::parse reads it; empty: row-major
    std::string dims;    // names of the dims; empty: default_layout_dims()
    // Operands: the padding must be zero when the kernel starts.
    bool needs_zero_pad = false;
    bool operator==(const Port&) const = default;
  };
  std::vector<Port> operands, results;  // those that are left out are row-major
  // In the unit of TargetBackend::layout_costs(): the time of the kernel, without reorders of its operands.
  double cost = 0;
  PadEffect pad = PadEffect::zero;
  // For reports: "conv_nchw16c".
  std::string name;
};

}  // namespace tenon
