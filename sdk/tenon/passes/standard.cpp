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
      "remove-dead",  // a value with a dead user is not used once
      "fold-transpose",
      "fold-reshape",
      "fold-batch-norm",  // after the Transposes between it and its convolution are gone
      "fold-pad",
      // Of Transposes and Reshapes of weights.
      "fold-constants",
  }));
  // What one of these finds the others may build on: operands that are one value now cancel, what is left of that is
  // known, and so is a branch on it. The folds above move work rather than find what is known, and do it in one walk.
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
