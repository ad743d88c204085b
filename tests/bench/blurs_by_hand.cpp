#include "blurs_by_hand.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <thread>

#include "pipeline_kernels.hpp"

namespace tenon::program::bench {

namespace {

void pin_to(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  // If the processor does not exist, the thread is not pinned.
  (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

}  // namespace

BlursByHand::BlursByHand(int stages, int64_t width, int64_t rows, int64_t strip, int threads)
    : stages_(stages), width_(width), strip_(strip) {
  for (int t = 0; t < threads; ++t) {
    Band band{rows * t / threads, rows * (t + 1) / threads, {}};
    // In the first strip a stage also computes what all later stages read beyond their rows.
    const int64_t all = band.last - band.first + 2 * stages;
    const int64_t places = strip > 0 ? std::min(strip + 2 + 2 * stages, all) : all;
    for (int s = 0; s + 1 < stages; ++s)
      band.between.push_back({std::vector<float>(static_cast<size_t>(places * width)), width, places});
    bands_.push_back(std::move(band));
  }
}

float* BlursByHand::Rows::row(int64_t r) { return memory.data() + (r % places) * width; }

void BlursByHand::run_band(Band& band, const float* source, float* result) const {
  // Row r of a stage, counted from the first row of the source that the band reads, is the mean of rows r - 1 to r + 1.
  const int64_t strip = strip_ > 0 ? strip_ : band.last - band.first, end = band.last - band.first + 2 * stages_;
  const float* from = source + band.first * width_;
  std::vector<int64_t> done(static_cast<size_t>(stages_));
  for (int s = 0; s < stages_; ++s) done[static_cast<size_t>(s)] = s + 1;
  for (int64_t y = stages_; y < end - stages_; y += strip)
    for (int s = 0; s < stages_; ++s) {
      int64_t& r = done[static_cast<size_t>(s)];
      const int64_t last = std::min(y + strip + stages_ - 1 - s, end - 1 - s);
      const auto row = [&](int64_t at) {
        return s == 0 ? from + at * width_ : band.between[static_cast<size_t>(s) - 1].row(at);
      };
      for (; r < last; ++r)
        mean_row(s + 1 == stages_ ? result + (band.first + r - stages_) * width_
                                  : band.between[static_cast<size_t>(s)].row(r),
                 row(r - 1), row(r), row(r + 1), width_);
    }
}

void BlursByHand::run(const float* source, float* result) {
  std::vector<std::thread> threads;
  for (size_t b = 1; b < bands_.size(); ++b)
    threads.emplace_back([this, b, source, result] {
      pin_to(static_cast<int>(b));
      run_band(bands_[b], source, result);
    });
  run_band(bands_[0], source, result);
  for (std::thread& thread : threads) thread.join();
}

int64_t BlursByHand::memory_bytes() const {
  int64_t bytes = 0;
  for (const Band& band : bands_)
    for (const Rows& rows : band.between) bytes += static_cast<int64_t>(rows.memory.size() * sizeof(float));
  return bytes;
}

}  // namespace tenon::program::bench
