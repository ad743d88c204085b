// Folds in stages: a body whose folds are cut, so that threads share one that is long and has few results.
//
//   x less its mean over a long row   stages, each a body of its own
//     %1 = ReduceSum %0               parts   memory 0[parts] = ReduceSum %0 of each part
//     %2 = ReducedCount               joins   memory 1 = ReduceSum of memory 0
//     %3 = Div %1, %2                 rest    output 0 = %0 - memory 1 / memory 2, which is the count
//     %4 = Sub %0, %3
//
// What is folded lies in memory between stages, other values are made again. A sum by what another fold comes to, as
// that of softmax or a variance, is one of the same stage, by what the part comes to, and moved where parts are joined
// (moved_sums_internal.hpp): so each element is read twice, not three times. Sums of floats differ in their last places
// from those that are not cut. How many parts there are is the caller's to say.
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
    parts,  // folds each part of the dim that is cut: one dim is BodyDim::parted
    joins,  // folds what the parts came to; dim 0 is the parts. The last one makes outputs that are made of folds alone
    rest,   // what is left: elementwise
  };
  struct Port {
    bool in_memory = false;  // `index` is one of FoldStages::memories, else a port of the whole (inputs, then outputs)
    size_t index = 0;
    bool operator==(const Port&) const = default;
  };
  Kind kind = Kind::rest;
  Body body;
  // By dim of `body`, but the parts: those of the whole that it is, joined.
  std::vector<DimSet> dims;
  std::vector<Port> ports;  // of `body`: inputs, then outputs

  // Of the body's dims, where the whole has `whole` and the dim is cut in `parts`.
  TENON_API Dims extents(const Dims& whole, int64_t parts) const;
};

struct FoldStages {
  // Elements of type `element` over `dims` of the whole; where `by_part`, so many for each part.
  struct Memory {
    ElementType element;
    DimSet dims = 0;
    bool by_part = false;
    bool counts = false;  // no stage writes it: it holds how many elements a fold of the whole has (ReducedCount)

    // Where the whole has `whole` and the dim is cut in `parts`.
    TENON_API size_t bytes(const Dims& whole, int64_t parts) const;
  };
  std::vector<Memory> memories;
  std::vector<FoldStage> stages;  // in the order in which they run
};

// With dim `cut`, which is reduced while the dim before it is not. None where stages would not compute the same: where
// some fold is of what does not vary over `cut`, or begins with another value than that of no elements; or where an
// output varies over folded dims other than `cut` alone.
TENON_API std::optional<FoldStages> make_fold_stages(const Body& whole, size_t cut);

}  // namespace tenon::snippet
