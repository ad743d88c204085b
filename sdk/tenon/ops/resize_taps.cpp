#include <tenon/ops/resize_taps.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>

namespace tenon {
namespace {

double linear_weight(double x) { return std::max(0.0, 1 - std::abs(x)); }

// The index of an attribute's text in `names`; the verifier has checked that it is one of them.
template <class E, size_t N>
E choice(const Op& op, const char* attribute, const std::string_view (&names)[N]) {
  const auto text = op.attr<std::string>(attribute, std::string(names[0]));
  const auto found = std::find(std::begin(names), std::end(names), text);
  return static_cast<E>(found == std::end(names) ? 0 : found - std::begin(names));
}

// In the order of the enumerations; the first is the default.
constexpr std::string_view kCoordinates[] = {"half_pixel",        "half_pixel_symmetric", "pytorch_half_pixel",
                                             "align_corners",     "asymmetric",           "tf_half_pixel_for_nn",
                                             "tf_crop_and_resize"};
constexpr std::string_view kRoundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
constexpr std::string_view kModes[] = {"nearest", "linear", "cubic"};

}  // namespace

double cubic_weight(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

ResizeAxis::ResizeAxis(const Op& op, int64_t in, int64_t out, double scale, double start, double end)
    : coordinates_(choice<Coordinates>(op, "coordinate_transformation_mode", kCoordinates)),
      rounding_(choice<Rounding>(op, "nearest_mode", kRoundings)),
      mode_(choice<Mode>(op, "mode", kModes)),
      exclude_outside_(op.attr<int64_t>("exclude_outside", 0) != 0),
      antialias_(op.attr<int64_t>("antialias", 0) != 0),
      cubic_a_(op.attr<float>("cubic_coeff_a", -0.75f)),
      in_(in),
      out_(out),
      scale_(scale),
      start_(start),
      end_(end) {}

double ResizeAxis::coordinate(int64_t i) const {
  const auto x = static_cast<double>(i), in = static_cast<double>(in_), out = static_cast<double>(out_);
  switch (coordinates_) {
    case Coordinates::asymmetric: return x / scale_;
    case Coordinates::tf_half_pixel_for_nn: return (x + 0.5) / scale_;
    case Coordinates::align_corners: return out_ == 1 ? 0 : x * (in - 1) / (out - 1);
    case Coordinates::tf_crop_and_resize:
      if (out_ == 1) return 0.5 * (start_ + end_) * (in - 1);
      return start_ * (in - 1) + x * (end_ - start_) * (in - 1) / (out - 1);
    case Coordinates::pytorch_half_pixel:
      if (out_ == 1) return 0;
      break;
    // Moves the centre of the exact output to the centre of the rounded one.
    case Coordinates::half_pixel_symmetric: return in / 2 * (1 - out / (scale_ * in)) + (x + 0.5) / scale_ - 0.5;
    case Coordinates::half_pixel: break;
  }
  return (x + 0.5) / scale_ - 0.5;
}

bool ResizeAxis::by_scale_alone() const {
  return coordinates_ == Coordinates::half_pixel || coordinates_ == Coordinates::asymmetric ||
         coordinates_ == Coordinates::tf_half_pixel_for_nn;
}

bool ResizeAxis::keeps_unscaled() const {
  return coordinates_ != Coordinates::tf_half_pixel_for_nn && coordinates_ != Coordinates::tf_crop_and_resize &&
         mode_ != Mode::cubic;  // whose outer weights round to 0 only for some coefficients
}

int64_t ResizeAxis::reach() const {
  if (mode_ == Mode::nearest) return 1;
  const double width = antialias_ ? std::min(scale_, 1.0) : 1;
  return static_cast<int64_t>(std::ceil((mode_ == Mode::cubic ? 2 : 1) / width)) + 1;
}

// Neighbours of x and their weights: the kernel is centred at x, and a scale < 1 widens it.
std::vector<ResizeTap> ResizeAxis::neighbours(double x) const {
  const double width = antialias_ ? std::min(scale_, 1.0) : 1;
  // As many neighbours to the left as to the right of x, which counts as being in (left, left + 1].
  const auto left = static_cast<int64_t>(std::ceil(x)) - 1;
  const auto first = static_cast<int64_t>(std::floor(-(mode_ == Mode::cubic ? 2 : 1) / width)) + 1;
  std::vector<ResizeTap> taps;
  double sum = 0;
  for (int64_t i = first; i < 2 - first; ++i) {
    const double distance = (static_cast<double>(left + i) - x) * width;
    const bool outside = left + i < 0 || left + i >= in_;
    const double weight = exclude_outside_ && outside ? 0
                          : mode_ == Mode::cubic      ? cubic_weight(distance, cubic_a_)
                                                      : linear_weight(distance);
    sum += weight;
    if (weight != 0) taps.push_back({std::clamp<int64_t>(left + i, 0, in_ - 1), weight});
  }
  if (antialias_ || exclude_outside_) {
    for (ResizeTap& tap : taps) tap.weight /= sum;
  }
  return taps;
}

ResizeTaps ResizeAxis::taps(int64_t i) const {
  // Beyond twice the extent nothing changes, and all indices are far from overflow.
  const double x = std::clamp(coordinate(i), -2.0 * static_cast<double>(in_) - 8, 3.0 * static_cast<double>(in_) + 8);
  ResizeTaps out;
  out.outside = coordinates_ == Coordinates::tf_crop_and_resize && (x < 0 || x > static_cast<double>(in_ - 1));
  if (mode_ != Mode::nearest) {
    out.taps = neighbours(x);
    return out;
  }
  const double rounded = rounding_ == Rounding::floor               ? std::floor(x)
                         : rounding_ == Rounding::ceil              ? std::ceil(x)
                         : rounding_ == Rounding::round_prefer_ceil ? std::floor(x + 0.5)
                                                                    : std::ceil(x - 0.5);
  out.taps = {{std::clamp<int64_t>(static_cast<int64_t>(rounded), 0, in_ - 1), 1}};
  return out;
}

}  // namespace tenon
