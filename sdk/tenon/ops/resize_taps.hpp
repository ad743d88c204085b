// Which elements of one axis an output of Resize reads, and their weights: for its evaluator and its bounds rule.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/support/export.hpp>

namespace tenon {

struct ResizeTap {
  int64_t index;
  double weight;  // never 0
};
struct ResizeTaps {
  std::vector<ResizeTap> taps;
  bool outside = false;  // the region of interest is outside X here: extrapolation_value, nothing is read
};

// How a Resize with these modes maps one axis of extent `in` to `out`. `start`, `end`: region of interest, as
// fractions.
class TENON_API ResizeAxis {
 public:
  enum class Coordinates : uint8_t {
    half_pixel,
    half_pixel_symmetric,
    pytorch_half_pixel,
    align_corners,
    asymmetric,
    tf_half_pixel_for_nn,
    tf_crop_and_resize
  };
  enum class Rounding : uint8_t { round_prefer_floor, round_prefer_ceil, floor, ceil };
  enum class Mode : uint8_t { nearest, linear, cubic };

  ResizeAxis(const Op& op, int64_t in, int64_t out, double scale, double start = 0, double end = 1);

  // The position of output i among the inputs: affine in i.
  double coordinate(int64_t i) const;
  ResizeTaps taps(int64_t i) const;
  // Every tap of output i has an index in [coordinate(i) - reach(), coordinate(i) + reach()], before it is clamped to
  // the axis.
  int64_t reach() const;
  // Whether coordinate() depends on the scale alone, not on the extents.
  bool by_scale_alone() const;
  // Whether output i is input i for a scale of 1 and equal extents, whatever the extents are.
  bool keeps_unscaled() const;

 private:
  std::vector<ResizeTap> neighbours(double x) const;

  Coordinates coordinates_;
  Rounding rounding_;
  Mode mode_;
  bool exclude_outside_, antialias_;
  double cubic_a_;
  int64_t in_, out_;
  double scale_, start_, end_;
};

// Keys' cubic kernel; interpolates for every a.
TENON_API double cubic_weight(double x, double a);

}  // namespace tenon
