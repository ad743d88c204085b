#include <tenon-ext/quant/profile.hpp>

#include <algorithm>
#include <cmath>

#include <tenon-ext/quant/scales.hpp>

namespace tenon::quant {
namespace {

// The least e with |x| < 2^e.
int64_t exponent_above(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return exponent;
}

constexpr size_t kLevels = 128;

// The divergence of 128 levels over bins [0, end) from the measured distribution, with everything beyond in the last
// bin.
double divergence(const std::vector<uint64_t>& bins, size_t end) {
  std::vector<double> measured(bins.begin(), bins.begin() + static_cast<ptrdiff_t>(end));
  for (size_t i = end; i < bins.size(); ++i) measured[end - 1] += static_cast<double>(bins[i]);
  double total = 0, kept = 0;
  for (size_t i = 0; i < end; ++i) total += measured[i], kept += static_cast<double>(bins[i]);
  if (kept == 0) return INFINITY;
  const size_t width = end / kLevels;
  double sum = 0;
  for (size_t first = 0; first < end; first += width) {
    double level = 0, filled = 0;
    for (size_t i = first; i < first + width; ++i) {
      level += static_cast<double>(bins[i]);
      filled += measured[i] > 0 ? 1 : 0;
    }
    for (size_t i = first; i < first + width; ++i) {
      if (measured[i] == 0) continue;
      // Only if all measured values are beyond the end, the share is zero; a small one replaces it.
      const double share = level > 0 ? level / filled / kept : 1e-6;
      sum += measured[i] / total * std::log(measured[i] / total / share);
    }
  }
  return sum;
}

}  // namespace

void Histogram::reach(int64_t exponent) {
  if (bins_.empty()) {
    exponent_ = exponent;
    bins_.assign(kBins, 0);
  }
  for (; exponent_ < exponent; ++exponent_) {
    for (size_t i = 0; i < kBins / 2; ++i) bins_[i] = bins_[2 * i] + bins_[2 * i + 1];
    std::fill(bins_.begin() + kBins / 2, bins_.end(), 0);
  }
}

void Histogram::add(std::span<const float> numbers) {
  double most = 0;
  for (const float x : numbers) {
    if (std::isfinite(x)) most = std::max(most, std::abs(static_cast<double>(x)));
  }
  if (most == 0) return;
  reach(exponent_above(most));
  const double scale = std::ldexp(static_cast<double>(kBins), static_cast<int>(-exponent_));
  for (const float x : numbers) {
    if (x != 0 && std::isfinite(x)) ++bins_[static_cast<size_t>(std::abs(static_cast<double>(x)) * scale)];
  }
}

void Histogram::add(const Histogram& other) {
  if (other.empty()) return;
  reach(other.exponent_);
  Histogram widened = other;
  widened.reach(exponent_);
  for (size_t i = 0; i < kBins; ++i) bins_[i] += widened.bins_[i];
}

void ValueProfile::add(std::span<const float> numbers) {
  for (const float x : numbers) {
    if (!std::isfinite(x)) continue;
    least = std::min(least, static_cast<double>(x));
    greatest = std::max(greatest, static_cast<double>(x));
  }
  magnitudes.add(numbers);
}

double step_of(const ValueProfile& profile, Method method) {
  const double reach = std::max(-profile.least, profile.greatest);
  const double covering = reach > 0 ? reach / 127 : 1;
  if (method == Method::minmax || profile.magnitudes.empty()) return covering;
  double best = covering, least = INFINITY;
  const double bin = step_of(profile.magnitudes.exponent()) / static_cast<double>(Histogram::kBins);
  // All levels have the same number of bins.
  for (size_t end = Histogram::kBins; end > 0; end -= kLevels) {
    const double step = static_cast<double>(end / kLevels) * bin;
    if (step - bin >= covering) continue;
    const double lost = divergence(profile.magnitudes.bins(), end);
    if (lost < least) least = lost, best = std::min(step, covering);
  }
  return best;
}

}  // namespace tenon::quant
