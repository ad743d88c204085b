// Which layouts a target's kernels take and produce; the pass assign-layouts chooses from these.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/ir/value_layout.hpp>

namespace tenon {

// What a kernel writes to the padding of its results.
enum class PadEffect : uint8_t {
  zero,   // writes zeros
  same,   // computed from the operands' padding: zero only if all of that is zero, otherwise dirty
  dirty,  // anything
};

// The text attribute that says how the reference runs an operator in layouts; any operator may have it. "padded": over
// the padded extents of its operands, as a blocked kernel does. Otherwise in logical indices.
inline constexpr std::string_view kLayoutKernelAttribute = "layout.kernel";
inline constexpr std::string_view kPaddedKernel = "padded";

// One way in which a target can run an operator.
struct LayoutKernel {
  struct Port {
    std::string layout;  // as Layout::parse reads it; empty: row-major
    std::string dims;    // names of the dims; empty: default_layout_dims()
    // Operands: the padding must be zero when the kernel starts.
    bool needs_zero_pad = false;
    bool operator==(const Port&) const = default;
  };
  std::vector<Port> operands, results;  // omitted ones are row-major
  // Time of the kernel without reorders of its operands, in the unit of TargetBackend::layout_costs().
  double cost = 0;
  PadEffect pad = PadEffect::zero;
  // For reports, such as "conv_nchw16c".
  std::string name;
};

}  // namespace tenon
