// The chain of blurs of pipeline_bench as hand-written loops, without the runtime: a lower bound for the machine.
#pragma once
#include <cstdint>
#include <vector>

namespace tenon::program::bench {

// `stages` times the mean of three rows, of floats. The source has `stages` more rows than the result above and below.
class BlursByHand {
 public:
  // In strips of `strip` rows with ring buffers between stages; 0: stage by stage over all rows. Several threads are
  // each pinned to a processor, with a band of rows and ring buffers of their own.
  BlursByHand(int stages, int64_t width, int64_t rows, int64_t strip, int threads);
  void run(const float* source, float* result);
  int64_t memory_bytes() const;

 private:
  // Rows of one stage: all rows of a band, or a ring buffer.
  struct Rows {
    std::vector<float> memory;
    int64_t width = 0, places = 0;
    float* row(int64_t r);
  };
  struct Band {
    int64_t first = 0, last = 0;  // rows of the result
    std::vector<Rows> between;
  };
  void run_band(Band& band, const float* source, float* result) const;

  int stages_;
  int64_t width_, strip_;
  std::vector<Band> bands_;
};

}  // namespace tenon::program::bench
