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
      "infer-types",  // folded constants and branches determine shapes
      "remove-dead",  // a value with a dead user does not have a single use
      "fold-transpose",
      "fold-reshape",
      "fold-batch-norm",  // after the Transposes between it and its convolution have been removed
      "fold-pad",
      // Folds Transposes and Reshapes of weights.
      "fold-constants",
  }));
  // The passes of this group enable one another: operands that became one value cancel, the remainder is then known,
  // and so is a branch on it. The folds above move work instead, and need only one traversal.
  TENON_OK(passes.add_until_unchanged({
      "narrow-constants",
      "share-common",
      "simplify-algebra",
      "fold-constants",
      "inline-branch",
      "remove-identity",
      "remove-dead",
  }));
  return passes;
}

}  // namespace tenon
