// Parallel reductions in stages: a reduction that is long and has few results is divided, so that threads share it.
//
//   x less its mean over a long row   stages, each a body of its own
//     %1 = ReduceSum %0               parts   memory 0[parts] = ReduceSum %0 of each part
//     %2 = ReducedCount               joins   memory 1 = ReduceSum of memory 0
//     %3 = Div %1, %2                 rest    output 0 = %0 - memory 1 / memory 2, which is the count
//     %4 = Sub %0, %3
//
// Partial results are in memory between stages; other values are recomputed. A sum that depends on another reduction,
// as in softmax or a variance, is computed in the same stage, relative to the result of the part, and rescaled where
// parts are joined (moved_sums_internal.hpp). Each element is therefore read twice, not three times. Sums of floats
// differ in their last places from undivided ones. The caller decides how many parts there are.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include <tenon/snippet/body/body.hpp>
#include <tenon/support/export.hpp>
#include <tenon/tensor/shape.hpp>

namespace tenon::snippet {

struct FoldStage {
  enum class Kind : uint8_t {
    parts,  // reduces each part of the divided dim: one dim is BodyDim::parted
    joins,  // reduces the results of the parts; dim 0 is the parts. The last one computes outputs of reductions alone
    rest,   // everything else: elementwise
  };
  struct Port {
    bool in_memory = false;  // `index` is one of FoldStages::memories, else a port of the whole (inputs, then outputs)
    size_t index = 0;
    bool operator==(const Port&) const = default;
  };
  Kind kind = Kind::rest;
  Body body;
  // For each dim of `body` except the parts: the dims of the whole body that are joined in it.
  std::vector<DimSet> dims;
  std::vector<Port> ports;  // of `body`: inputs, then outputs

  // The extents of the body's dims, where the whole body has extents `whole` and the dim is divided into `parts`.
  TENON_API Dims extents(const Dims& whole, int64_t parts) const;
};

struct FoldStages {
  // Elements of type `element` over `dims` of the whole body; with `by_part`, that many for each part.
  struct Memory {
    ElementType element;
    DimSet dims = 0;
    bool by_part = false;
    bool counts = false;  // no stage writes it: the number of elements of a whole reduction (ReducedCount)

    // Where the whole body has extents `whole` and the dim is divided into `parts`.
    TENON_API size_t bytes(const Dims& whole, int64_t parts) const;
  };
  std::vector<Memory> memories;
  std::vector<FoldStage> stages;  // in the order in which they run
};

// The stages that divide dim `cut`, which is reduced while the dim before it is not. None where the stages would not
// compute the same: some reduction has an operand that does not vary over `cut`, or starts from another value than that
// of no elements; or an output varies over reduced dims other than `cut` alone.
TENON_API std::optional<FoldStages> make_fold_stages(const Body& whole, size_t cut);

}  // namespace tenon::snippet
