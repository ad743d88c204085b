#include <tenon/passes/standard.hpp>

namespace tenon {

Result<PassManager> standard_passes() {
  PassManager passes("standard passes");
  TENON_OK(passes.add_all({
      "infer-types",
      "remove-identity",
      "simplify-algebra",
      "fold-constants",
      "inline-branch",
      "infer-types",  // folded constants and branches tell shapes
      "fold-transpose",
      "fold-reshape",
      "fold-batch-norm",  // after the Transposes between it and its convolution are gone
      "fold-pad",
      "fold-constants",    // of Transposes and Reshapes of weights
      "share-common",      // last, since most folds want values that are used once
      "simplify-algebra",  // of what is one value now
      "fold-constants",    // of what rules know without its operands, as x - x
      "simplify-algebra",  // of what is a constant now
      "remove-identity",   // as a Cast back to where it came from
      "remove-dead",
  }));
  return passes;
}

}  // namespace tenon
