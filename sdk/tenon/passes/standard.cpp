#include <tenon/passes/standard.hpp>

namespace tenon {

Result<PassManager> standard_passes() {
  PassManager passes("standard passes");
  TENON_OK(passes.add_all({
      "infer-types",
      "remove-identity",
      "simplify-algebra",
      "fold-transpose",
      "fold-reshape",
      "fold-constants",
      "infer-types",  // folded constants tell shapes
      "share-common",
      "remove-dead",
  }));
  return passes;
}

}  // namespace tenon
