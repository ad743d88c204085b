// The chain of blurs of pipeline_bench as loops by hand, without the runtime: what the machine allows.
#pragma once
#include <cstdint>
#include <vector>

namespace tenon::program::bench {

// `stages` times the mean of three rows, of floats. The source has `stages` more rows than the result above and below.
class BlursByHand {
 public:
  // In strips of so many rows with rings between stages; 0: stage by stage over all rows. With several threads, each of
  // them pinned to a processor, every one has a band of rows and rings of its own.
  BlursByHand(int stages, int64_t width, int64_t rows, int64_t strip, int threads);
  void run(const float* source, float* result);
  int64_t memory_bytes() const;

 private:
  // Rows of one stage: all of a band, or a ring.
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
