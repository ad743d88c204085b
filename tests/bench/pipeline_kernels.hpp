// Kernels and pipelines shared by benchmarks of pipelines. Rows are computed in the widest vectors of the machine, as
// in a target's kernels.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenon/program/pipeline/pipeline.hpp>
#include <tenon/support/memory.hpp>

namespace tenon::program::bench {

inline const Expr x = Expr::symbol("x"), y = Expr::symbol("y");

// All of rank 1 or 2, of f32 but for move_bytes; those that say `rings` take rings of rows, and fail for
// rings across them.
KernelHandle scale();           // 1.0001 in + 0.5
KernelHandle blur(bool rings);  // mean of rows y - 1, y, y + 1
KernelHandle box(bool rings);   // mean of 3 x 3
KernelHandle halve();           // mean of 2 x 2 at (2 x, 2 y)
KernelHandle twice();           // in(x / 2, y / 2)
KernelHandle combine();         // a - 0.25 b
KernelHandle move_bytes();

// Called by blur() for each row.
void mean_row(float* __restrict to, const float* __restrict a, const float* __restrict b, const float* __restrict c,
              int64_t n);

// `count` floats of 1, aligned to a cache line like tensors. Kernels with other alignments of rows take up to 1.4 times
// as long.
class AlignedFloats {
 public:
  explicit AlignedFloats(int64_t count);
  float* data() { return reinterpret_cast<float*>(bytes_.get()); }

 private:
  AlignedBytes bytes_;
};

struct Pair {
  Pipeline pipeline;
  BufferRef source, result;
  StageRef last;
  std::vector<StageRef> stages;
};
// Stages of one kernel, each of which reads `windows` of the previous one.
Pair chain(int stages, const KernelHandle& kernel, ElementType element, int rank, const Windows& windows);
Pair scales(int stages, int rank = 1);
Pair blurs(int stages = 6, bool rings = true);

}  // namespace tenon::program::bench
